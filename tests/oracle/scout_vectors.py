"""Turn recorded vectors into calls of the library, and its answers into the recorded names."""

from __future__ import annotations

from typing import Any

import polars as pl

from brokerlab import scouts
from brokerlab.gdpconfig import Config
from brokerlab.scouts import tables as columns
from brokerlab.scouts.settings import remove_tag, tag_value
from tests.oracle.vectors import Case

POLARS = {"Int64": pl.Int64, "Float64": pl.Float64, "String": pl.String, "Boolean": pl.Boolean}
PRODUCTION = scouts.ScoutRules("production")

DATA = {
    "cpuTime": "cputime",
    "cpuTimeUnit": "cputimeunit",
    "ramCount": "ramcount",
    "ramUnit": "ramunit",
    "outDiskCount": "outdiskcount",
    "outDiskUnit": "outdiskunit",
    "workDiskCount": "workdiskcount",
    "workDiskUnit": "workdiskunit",
    "ioIntensity": "iointensity",
    "ioIntensityUnit": "iointensityunit",
    "diskIO": "diskio",
    "diskIOUnit": "diskiounit",
    "walltime": "walltime",
    "walltimeUnit": "walltimeunit",
    "memory_leak_core": "memory_leak_core",
    "memory_leak_x2": "memory_leak_x2",
    "newNG": "newng",
}
EXTRA = {
    "oldCpuTime": "old_cputime",
    "oldRamCount": "old_ramcount",
    "shortExecTime": "short_exec_time",
    "cpuEfficiencyCap": "cpu_efficiency_cap",
    "successRate": "success_rate",
    "expectedNumJobs": "expected_jobs",
    "expectedNumJobsWithEvent": "expected_jobs_event",
    "nNewJobs": "new_jobs",
    "numFinishedJobs": "num_finished_jobs",
    "nFiles": "nfiles",
    "nFilesFinished": "nfilesfinished",
    "maxCpuConsumptionTime": "max_cpu_time",
    "maxExecTime": "max_cpu_time_duration",
    "defCoreCount": "max_cpu_time_cores",
    "execTime": "exec_time",
    "minCpuEfficiency": "min_cpu_efficiency",
    "n_all_short_jobs": "n_short",
    "n_short_jobs_with_copy_to_scratch": "n_short_copy",
    "total_jobs_including_short_jobs": "total_short_base",
    "longestShortExecTime": "longest_short",
    "nInefficientJobs": "n_inefficient",
    "nTotalForIneff": "n_total_for_ineff",
}


def frame(rows: list[dict[str, Any]], columns: dict[str, Any]) -> pl.DataFrame:
    """Build a table from recorded rows; absent keys are null."""
    names = dict.fromkeys([*columns, *(key for row in rows for key in row)])
    data: dict[str, pl.Series] = {}
    for name in names:
        values = [row.get(name) for row in rows]
        dtype = columns.get(name)
        if dtype is None:
            data[name] = pl.Series(name, values, strict=False)
        elif "Datetime" in str(dtype):
            data[name] = pl.Series(name, values, dtype=pl.String).str.to_datetime(time_unit="us")
        else:
            data[name] = pl.Series(name, values, dtype=POLARS[str(dtype)], strict=False)
    return pl.DataFrame(data)


def arguments(inputs: dict[str, Any]) -> tuple[dict[str, pl.DataFrame], dict[str, Any]]:
    """Return the tables by name and the keyword arguments of one recorded case."""
    options = inputs.get("options", {})
    task = dict(inputs["tasks"][0])
    config = list(inputs.get("gdpconfig", []))
    if not options.get("with_task_params", True):
        task = {key: value for key, value in task.items() if not key.startswith("orig_")}
    if not options.get("with_task", True):
        target = tag_value(task.get("splitrule"), "TN")
        # a limit keeps the expected number of jobs as it is, as without a task
        task["splitrule"] = "MF=1" if target is None else f"TN={target},MF=1"
    if "required_success_rate" in options:
        # the recorded function is given the threshold; nothing lowers it there
        rule = remove_tag(task.get("splitrule"), "SS")
        task["splitrule"] = ",".join(filter(None, [rule, f"SS={options['required_success_rate']}"]))
    if options.get("use_exhausted") is None:
        config = [c for c in config if not c["key"].startswith("SCOUT_MIN_OK_RATE_EXHAUSTED")]
        if "required_success_rate" not in options:
            task["splitrule"] = remove_tag(task.get("splitrule"), "SS")
    queues = frame(inputs["queues"], columns.QUEUE_COLUMNS)
    with_sites = options.get("with_sites", options.get("use_exhausted") is not None)
    if not with_sites or not options.get("with_task", True):
        queues = queues.drop("maxinputsize", "direct_access_lan")
    job_columns = columns.JOB_COLUMNS | columns.HOST_COLUMN | columns.HISTORY_COLUMNS
    tables = {
        "jobs": frame(inputs["jobs"], job_columns),
        "files": frame(inputs["files"], columns.FILE_COLUMNS),
        "tasks": frame([task], columns.TASK_COLUMNS),
        "datasets": frame(inputs["datasets"], columns.DATASET_COLUMNS),
        "queues": queues,
    }
    keywords: dict[str, Any] = {
        "rules": PRODUCTION,
        "config": Config.from_frame(config_frame(config)),
    }
    if "jobs_files" in inputs:
        tables["jobs_files"] = frame(inputs["jobs_files"], columns.JOBS_FILES_COLUMNS)
    if with_sites and "worker_nodes" in inputs:
        tables["worker_nodes"] = pl.DataFrame(inputs["worker_nodes"], infer_schema_length=None)
        tables["cpu_benchmarks"] = pl.DataFrame(inputs["cpu_benchmarks"], infer_schema_length=None)
    return tables, keywords


def config_frame(rows: list[dict[str, Any]]) -> pl.DataFrame:
    """Build a gdpconfig table from recorded entries."""
    names = ["app", "component", "key", "value", "value_json", "type", "vo"]
    return pl.DataFrame(
        {name: pl.Series(name, [row.get(name) for row in rows], dtype=pl.String) for name in names}
    )


PLACES = ("panda_queue", "computingsite", "atlas_site", "site")
PROCESSORS = ("cpu_model_normalized", "cpu_type_normalized")


def batches(cases: list[Case]) -> list[list[Case]]:
    """Put cases together that one call can answer: with the same settings and options, and no id in common."""
    found: dict[str, list[tuple[set[Any], list[Case]]]] = {}
    for case in cases:
        inputs = case["inputs"]
        merging = tag_value(inputs["tasks"][0].get("splitrule"), "MO") is not None
        tables = [name for name in ("jobs_files", "worker_nodes") if name in inputs]
        asked = case["function"], inputs.get("options"), inputs.get("gdpconfig"), merging, tables
        own = {
            (column, row[column])
            for name in ("tasks", "jobs")
            for row in inputs[name]
            for column in ("jeditaskid", "pandaid", "jobsetid")
            if row.get(column)
        }
        for ids, batch in found.setdefault(repr(asked), []):
            if ids.isdisjoint(own):
                ids.update(own)
                batch.append(case)
                break
        else:
            found[repr(asked)].append((own, [case]))
    return [batch for some in found.values() for _, batch in some]


def together(cases: list[Case]) -> tuple[dict[str, pl.DataFrame], dict[str, Any]]:
    """Return the tables of all cases and the keyword arguments that they share; places and processors get names of their own."""
    given = [arguments(case["inputs"]) for case in cases]
    parts: dict[str, list[pl.DataFrame]] = {}
    for number, (tables, _) in enumerate(given):
        for name, table in tables.items():
            own = [column for column in (*PLACES, *PROCESSORS) if column in table.columns]
            renamed = table.with_columns(
                pl.format("{}/{}", pl.lit(number), column).alias(column) for column in own
            )
            parts.setdefault(name, []).append(renamed)
    merged = {name: pl.concat(some, how="diagonal_relaxed") for name, some in parts.items()}
    return merged, given[0][1]


def recorded(result: scouts.ScoutResult, task: int) -> dict[str, Any]:
    """Return our answer for one task under the recorded names."""
    row = result.parameters.row(by_predicate=pl.col("jeditaskid") == task, named=True)
    tags = result.tags.filter(jeditaskid=task)
    return {
        "succeeded": row["succeeded"],
        "data": {name: row[column] for name, column in DATA.items() if row[column] is not None},
        "extra": {name: row[column] for name, column in EXTRA.items()},
        "tags": sorted([job, name] for job, name in tags.select("pandaid", "parameter").rows()),
    }


def differences(expected: dict[str, Any], ours: dict[str, Any]) -> list[str]:
    """List what differs: numbers to 1e-9 relative, all else exactly; absent extras are null."""
    found = [
        f"{part}: {_short(expected[part], ours[part])}"
        for part in ("succeeded", "data", "tags")
        if part in expected and expected[part] != ours[part]
    ]
    for name, value in expected.get("extra", {}).items():
        if name not in ours["extra"] or not _same(value, ours["extra"][name]):
            found.append(f"extra.{name}: recorded {value}, ours {ours['extra'].get(name)}")
    found += [
        f"extra.{name}: not recorded, ours {value}"
        for name, value in ours["extra"].items()
        if value is not None and name not in expected.get("extra", {}) and name == "successRate"
    ]
    return found


def _same(recorded_value: Any, ours: Any) -> bool:
    if isinstance(recorded_value, float) and isinstance(ours, int | float):
        return abs(recorded_value - ours) <= 1e-9 * max(abs(recorded_value), abs(ours))
    return bool(recorded_value == ours)


def _short(expected: Any, ours: Any) -> str:
    if isinstance(expected, dict):
        keys = sorted(expected.keys() | ours.keys())
        return str(
            {k: (expected.get(k), ours.get(k)) for k in keys if expected.get(k) != ours.get(k)}
        )
    return f"recorded {expected}, ours {ours}"


def answer_data(cases: list[Case]) -> list[dict[str, Any]]:
    """Answer ``scout_data`` cases of one batch."""
    tables, keywords = together(cases)
    merge = cases[0]["inputs"].get("options", {}).get("merge", False)
    result = scouts.estimate(tables, **keywords, merge=merge, by_host=True)
    return [recorded(result, task_of(case)) for case in cases]


def task_of(case: Case) -> int:
    number: int = case["inputs"]["tasks"][0]["jeditaskid"]
    return number


def answer_set(cases: list[Case]) -> list[dict[str, Any]]:
    """Answer ``scout_set`` cases of one batch: parameters, merge parameters, exhausted checks, the written task."""
    tables, keywords = together(cases)
    tasks, config = tables["tasks"], keywords["config"]
    result = scouts.estimate(tables, **keywords)
    merge = None
    if tag_value(tasks["splitrule"][0], "MO") is not None:
        merge = scouts.estimate(tables, **keywords, merge=True)
    use_exhausted = cases[0]["inputs"]["options"]["use_exhausted"]
    verdict = scouts.exhausted(
        {"tasks": tasks}, scouts=result, config=config, use_exhausted=use_exhausted
    )
    written = scouts.write_tasks(tasks, result, exhausted=verdict, merge_scouts=merge)
    return [_answer(task_of(case), tasks, result, merge, verdict, written) for case in cases]


def _answer(
    task: int,
    tasks: pl.DataFrame,
    result: scouts.ScoutResult,
    merge: scouts.ScoutResult | None,
    verdict: scouts.ExhaustedResult,
    written: pl.DataFrame,
) -> dict[str, Any]:
    own = pl.col("jeditaskid") == task
    row, before, decided = (
        table.row(by_predicate=own, named=True) for table in (written, tasks, verdict.verdicts)
    )
    answer = recorded(result, task) | {
        "status": row["status"],
        "split_rule": _items(row["splitrule"]),
        "reason": decided["message_code"],
        "task_changes": {
            name: row[name]
            for name in row
            if name not in ("status", "oldstatus", "splitrule") and row[name] != before.get(name)
        },
        "merge_succeeded": None,
    }
    if merge is not None:
        ours = recorded(merge, task)
        answer |= {f"merge_{part}": ours[part] for part in ("succeeded", "data", "extra")}
    return answer


def _items(splitrule: str | None) -> list[str]:
    return sorted(item for item in (splitrule or "").split(",") if item)


def differences_set(expected: dict[str, Any], ours: dict[str, Any]) -> list[str]:
    """List what differs in a ``scout_set`` case."""
    found = differences(expected, ours)
    wanted = {
        "status": expected["status"],
        "split_rule": _items(expected["split_rule"]),
        "reason": _reason(expected["error_dialog"]),
        "task_changes": expected["task_changes"],
        "merge_succeeded": expected["merge_succeeded"],
    }
    found += [
        f"{part}: {_short(value, ours[part])}"
        for part, value in wanted.items()
        if value != ours[part]
    ]
    if "merge_data" in expected:
        found += differences(
            {part: expected[f"merge_{part}"] for part in ("succeeded", "data", "extra")},
            {part: ours[f"merge_{part}"] for part in ("succeeded", "data", "extra")},
        )
    return found


def _reason(dialog: str | None) -> str | None:
    return None if dialog is None else dialog.split("reason=")[1].split()[0]

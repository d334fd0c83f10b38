"""Every recorded choice of a nucleus, those with the same settings in one batch, under the production rule set."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import Any

import polars as pl

from brokerlab.brokerage.production_tasks import TaskDecisions, decide
from brokerlab.brokerage.production_tasks.contracts import TABLES
from brokerlab.brokerage.rules import ProductionRules
from brokerlab.gdpconfig import Config
from tests.oracle import vectors

NAME = "prod_taskbrokerage"
HINTS = {"jeditaskid": pl.Int64, "snapshot": pl.Int64, "panda_queue": pl.String}


def settings_of(case: dict[str, Any]) -> tuple[tuple[str, Any], ...]:
    rows = case["inputs"].get("gdpconfig", ())
    return tuple(
        sorted((row["key"], row["value"]) for row in rows if row["component"] == "taskbrokerage")
    )


def tables_of(cases: dict[int, dict[str, Any]]) -> dict[str, pl.DataFrame]:
    """Put the tables of many cases together, each case as one snapshot."""
    rows: dict[str, list[dict[str, Any]]] = {name: [] for name in TABLES}
    for snapshot, case in cases.items():
        inputs = case["inputs"]
        task = {"at": inputs["now"], "workqueue_name": inputs["task"]["gshare"]}
        given = inputs | {"tasks": [inputs["task"] | task]}
        for name, contract in TABLES.items():
            columns = contract.columns().keys()
            rows[name] += [
                {key: row.get(key) for key in columns} | {"snapshot": snapshot}
                for row in given.get(name, ())
            ]
    return {name: pl.DataFrame(part, infer_schema_length=None) for name, part in rows.items()}


def decided(cases: dict[int, dict[str, Any]]) -> TaskDecisions:
    """Decide cases with the same settings in one batch."""
    keys = {
        n: {"jeditaskid": c["inputs"]["task"]["jeditaskid"], "snapshot": n}
        for n, c in cases.items()
    }
    hints = [
        keys[n] | {"panda_queue": queue}
        for n, case in cases.items()
        for queue in case["inputs"]["hint_queues"] or ()
    ]
    settings = settings_of(next(iter(cases.values())))
    return decide(
        tables_of(cases),
        rules=ProductionRules("production"),
        config=Config.empty().with_values(dict(settings)),
        hint_queues=pl.DataFrame(hints, schema=HINTS),
        draws=pl.DataFrame([keys[n] | {"draw": c["inputs"]["draw"]} for n, c in cases.items()]),
    )


def differences(expected: dict[str, Any], got: dict[str, list[dict[str, Any]]]) -> list[str]:
    task = got["tasks"][0]
    wrong = [
        f"{name} {task[name]}, expected {expected[name]}"
        for name in ("outcome", "nucleus", "locality")
        if task[name] != expected[name]
    ]
    nuclei = {row["nucleus"]: row for row in got["nuclei"]}
    for want in expected["nuclei"]:
        row = nuclei.pop(want["nucleus"], None)
        if row is None:
            wrong.append(f"{want['nucleus']} was not looked at")
        elif want["skipped"]:
            if (row["check"], row["detail"]) != (want["check"], want["detail"]):
                wrong.append(f"{want} but {row['check']} {row['detail']}")
        elif not math.isclose(row["weight"] or -1.0, want["weight"] or -1.0, rel_tol=1e-12):
            wrong.append(f"{want} but {row['weight']} {row['check']}")
    wrong += [
        f"{name} has no record, but passed" for name, row in nuclei.items() if row["check"] is None
    ]
    tokens = [{name: row[name] for name in ("datasetname", "token")} for row in got["datasets"]]
    if tokens != expected.get("datasets", []):
        wrong.append(f"datasets {tokens}, expected {expected.get('datasets')}")
    return wrong


def test_every_recorded_choice_agrees() -> None:
    cases = vectors.load(NAME)
    alike: dict[Any, dict[int, dict[str, Any]]] = defaultdict(dict)
    for number, case in enumerate(cases):
        alike[settings_of(case)][number] = case
    wrong = []
    for group in alike.values():
        result = decided(group)
        for number, case in group.items():
            own = {
                name: getattr(result, name).filter(pl.col("snapshot") == number).to_dicts()
                for name in ("tasks", "nuclei", "datasets")
            }
            found = differences(case["expected"], own)
            wrong += [f"{case['id']}: " + "; ".join(found)] if found else []
    vectors.report(NAME, len(cases), len(cases) - len(wrong))
    assert not wrong, f"{NAME}: {len(wrong)} of {len(cases)} differ:\n" + "\n".join(wrong[:10])


def test_the_document_rules_decide_what_production_aborts() -> None:
    cases = {n: case for n, case in enumerate(vectors.load(NAME)) if "error" in case["expected"]}
    result = decide(tables_of(cases), rules=ProductionRules("document"))
    assert result.tasks.height == len(cases)
    assert "abort" not in set(result.tasks["outcome"])
    assert result.tasks["outcome"].null_count() == 0

"""What a user task asks for (analysis-jobs.md 1 and 4)."""

from __future__ import annotations

from brokerlab.matching.architecture import parse_architecture
from brokerlab.matching.software_pairs import analysis_task
from tests.twins.analysis_throttle import quota_of
from tests.twins.analysis_world import Row, World
from tests.twins.task import MB, UNITS

DAY = 86400
MARGIN = 300 * MB


class Task:
    """One task with its chunk, in front of one world."""

    def __init__(self, world: World, row: Row):
        self.world, self.row = world, row
        get = row.get
        self.id, self.gshare = get("jeditaskid"), get("gshare")
        self.merging = bool(get("is_merging"))
        self.scout = bool(get("chunk_usescout"))
        self.user = get("username")
        self.cores = get("corecount")
        self.site: str | None = None
        self.include: list[str] | None = None
        self.exclude: list[str] = []
        self.from_endpoint = False
        self.over_quota = set(quota_of(world, row).get("endpoints_over_local_quota") or ())
        self.request = parse_architecture(get("architecture"))
        self.software = analysis_task(
            get("architecture"), get("transhome"), get("container_name"), get("transuses")
        )
        self.jobs = get("n_jobs_to_submit") or 0
        failures = world.task_rows("failure_counts", self.id)
        self.ended: dict[tuple[str, str], int] = {}
        for one in failures:
            key = one["computingsite"], one["jobstatus"]
            self.ended[key] = self.ended.get(key, 0) + (one.get("njobs") or 0)
        self.used = {one["computingsite"] for one in world.task_rows("sites_used", self.id)}

    def ended_at(self, queue: str, status: str) -> int:
        return self.ended.get((queue, status), 0)

    @property
    def multi_core(self) -> bool:
        return self.cores not in (None, 0, 1)

    def memory(self, corecount: int | None) -> float:
        """Return the memory a job needs at a queue of so many cores [MB], 0 for none (4.8)."""
        ram, chunk = self.row.get("ramcount"), self.row.get("chunk_ramcount") or 0
        base = max(ram, chunk) if ram else chunk
        by_code = self.world.rules.merge_memory == "deployed"
        if self.merging:
            merge = self.row.get("mergeramcount")
            if by_code:
                base = max(merge, chunk, 2000) if merge else chunk
            else:
                base = max(merge or ram or 0, chunk)
        if not base:
            return 0
        per_core = self.row.get("ramunit") in ("MBPerCore", "MBPerCoreFixed")
        if per_core and not (self.merging and by_code):
            base *= corecount or 1
        if self.world.rules.use_base_ram:
            base += self.row.get("baseramcount") or 0
        return self._cut(0.9 * base)

    def _cut(self, number: float) -> float:
        """Return whole numbers, or a number as it is."""
        return int(number) if self.world.rules.whole_numbers else number

    def reads_directly(self, queue: Row) -> bool:
        """Say whether jobs read their input without copying it (4.9)."""
        if not self.world.rules.direct_asks_task:
            return queue.get("maxinputsize") == -1 or bool(queue.get("direct_access_lan"))
        by_lan = (
            not self.row.get("uselocalio")
            and bool(self.row.get("allowinputlan"))
            and bool(queue.get("direct_access_lan"))
        )
        return not self.merging and (queue.get("maxinputsize") == -1 or by_lan)

    def scratch(self, queue: Row) -> float:
        """Return the space a job needs in the working directory of a queue [MB] (4.9)."""
        row = self.row
        atom, effective = row.get("atom_size") or 0, row.get("atom_size_effective") or 0
        if self.world.rules.scratch_need == "sum":
            return self._scratch_of_page(queue, atom / MB)
        if self.merging:
            return 2 * atom // MB
        out = max(row.get("outdiskcount") or 0, 0) * _unit(row.get("outdiskunit"))
        work = 0
        if row.get("workdiskcount") is not None:
            work = row["workdiskcount"] * _unit(row.get("workdiskunit")) + MARGIN
        per_job = (row.get("ngbperjob") or 0) * 1024
        if not self.reads_directly(queue):
            return max((out * effective + work + atom) // MB, per_job)
        need: float = (out * effective + work) // MB
        if per_job and not row.get("uselocalio"):
            need = max(need, (out * per_job + work) / MB)
        return need

    def _scratch_of_page(self, queue: Row, input_mb: float) -> float:
        """Return the sum that the page gives [MB]."""
        row = self.row
        out = max(row.get("outdiskcount") or 0, 0) * _unit(row.get("outdiskunit"))
        work = (row.get("workdiskcount") or 0) * _unit(row.get("workdiskunit"))
        need: float = (out * input_mb + work) / MB
        return need if self.reads_directly(queue) else input_mb + need

    def hs06(self) -> bool:
        unit = self.row.get("cputimeunit") or ""
        return unit.removesuffix("Fixed") in ("HS06sPerEvent", "mHS06sPerEvent")

    def walltime(self) -> float:
        """Return the work of the largest sub-chunk, 0 where it is undefined (4.11)."""
        if not self.hs06():
            need: float = (self.row.get("walltime") or 0) * (
                self.row.get("atom_size_effective") or 0
            )
            return need
        need = self.row.get("cputime") or 0
        if self.row["cputimeunit"].startswith("m"):
            need /= 1000
        return need * (self.row.get("atom_nevents") or 0)

    def capacity(self, queue: Row, seconds: float) -> float:
        """Return the work that a slot of a queue does in some time (4.11, site value)."""
        cores = queue.get("corecount")
        if not self.hs06():
            return seconds * cores if cores else seconds
        value = seconds - (self.row.get("basewalltime") or 0)
        if value and cores:
            value *= cores
        if value:
            value *= queue.get("corepower") or 0
        efficiency = self.row.get("cpuefficiency")
        return self._cut(value * (90 if efficiency is None else efficiency) / 100)

    def scales(self) -> bool:
        """Say whether the work scales with events: not with an efficiency of 0."""
        rejects = self.world.rules.zero_efficiency_rejects
        return rejects or not self.hs06() or self.row.get("cpuefficiency") != 0

    def walltime_undefined(self) -> bool:
        """Say whether nothing is known of how long jobs run (4.12)."""
        row = self.row
        unit = row.get("cputimeunit")
        if unit:
            return not row.get("cputime") or not self.hs06()
        return not row.get("walltime") and not row.get("walltimeunit")


def _unit(name: str | None) -> int:
    return UNITS.get((name or "")[:2], 1)

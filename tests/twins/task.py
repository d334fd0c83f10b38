"""What a task asks for: derived once per task, read by checks and weights (chapter sections 1.1, 1.2, 4)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from tests.twins.network import links_to, queued_key
from tests.twins.text import Software, software, software_task
from tests.twins.weights import Counts, slots_lookup
from tests.twins.world import Row, World, grouped, when

MB = 1024 * 1024
UNITS = {"kB": 1024, "MB": MB, "GB": 1024 * MB}
DAY = timedelta(hours=24)
FROZEN = timedelta(hours=6)
STATUSES = ("running", "defined", "assigned", "activated", "starting")


class Task:
    """One task with its chunk of input, in front of one world."""

    def __init__(self, world: World, row: Row, *, hint: bool = False):
        self.world, self.row, self.hint = world, row, hint
        get = row.get
        self.id = get("jeditaskid")
        self.at = when(get("at")) or world.now
        self.prio = get("currentpriority") or 0
        self.scout = bool(get("use_scout"))
        self.merging = bool(get("is_merging"))
        self.nucleus = get("nucleus") or None
        self.label = get("prodsourcelabel") or ""
        above = self.prio >= 1000 if world.rules.express_from_1000 else self.prio > 1000
        kind = get("processingtype") or ""
        urgent = "urgent" in kind if world.rules.urgent_is_pattern else kind == "urgent"
        self.express = urgent or above
        self.event_service = get("eventservice") in (1, 2)
        self.es = self.event_service and not get("usejobcloning")
        self.jumbo = get("usejumbo") in ("W", "R", "P", "L")
        self.urgent = self.prio >= 800 or self.scout
        self.first_class = self.prio >= 900 or self.scout
        self.iointensity = get("iointensity") or 0
        self.site_preassigned = self.list_preassigned = False
        self._counted_by()
        self._input()
        bare = world.bare_mode(self.nucleus)
        self.chained = get("fullchain") in ("only", "require", "capable") and bool(bare)

    def look_around(self, state: Any) -> None:
        """Take what depends on the nucleus: its queues, links, and the state of the input."""
        world = self.world
        self.input = state
        self.links: dict[str, dict[str, float]] = {}
        self.nucleus_queued = 0.0
        self.nucleus_queues: set[str] = set()
        self.sharing_queues: set[str] = set()
        self.asks_for = software_task(self.row)
        self._software: dict[str, Software] = {}
        if self.nucleus is None:
            if self.hint:  # the nucleus is yet to be chosen: near any of them
                nuclei = world.nuclei.values()
                every = [
                    row["nucleus"] for row in nuclei if (row.get("role") or "nucleus") == "nucleus"
                ]
                self.sharing_queues = {queue for name in every for queue in world.near(name)}
            return
        self.links = links_to(world, self.nucleus, self.at)
        key = queued_key(self.express)
        self.nucleus_queued = sum(link.get(key, 0) for link in self.links.values())
        self.nucleus_queues = world.owned(self.nucleus)
        self.sharing_queues = world.sharing(self.nucleus)

    def jumbo_at(self, name: str) -> bool:
        """Say whether a queue for jumbo jobs meets a task that has them."""
        takes = self.world.catchall[name].use_jumbo_jobs
        return bool(self.world.rules.jumbo_queues and self.jumbo and takes)

    def is_near_nucleus(self, parent: str) -> bool:
        """Say whether a queue belongs to the nucleus or shares its storage (4.6)."""
        return parent in self.nucleus_queues or parent in self.sharing_queues

    def counts(self, parent: str, queue: Row) -> Counts:
        """Return the jobs at a queue: all, or those of the share or work queue of the task (6)."""
        world, tag = self.world, self.tag
        if world.rules.counted_jobs == "queue":
            found = Counts(*(world.all_shares.get((parent, status), 0) for status in STATUSES))
            found.defined += world.live.get(parent, 0)
            return found
        table = world.by_workqueue if self.by_workqueue else world.by_share
        apart = self.by_workqueue and self.es and self.first_class
        if apart and queue.get("jobseed") == "eshigh":
            table, tag = world.by_share_only, self.row.get("gshare")
        found = Counts(*(table.get((parent, tag, status), 0) for status in STATUSES))
        found.defined += world.live.get(parent, 0)
        return found

    def types_at(self, parent: str) -> set[str | None]:
        """Return the resource types of the task's jobs at a queue; without any, the task's (1.6)."""
        rows = self.resource_types.get(parent)
        return {row.get("resource_type") for row in rows or [self.row]}

    def counts_by_type(self, parent: str) -> list[Row]:
        """Return the rows of ``job_stats_rt`` at a queue of the task's share or work queue."""
        rows = self.world.by_resource_type.get(parent, [])
        return [row for row in rows if row.get("gshare") in (None, self.queue_name)]

    def slots(self, parent: str) -> int | None:
        return slots_lookup(
            self.world.slots.get(parent, []), self.queue_name, self.row.get("resource_type")
        )

    def software(self, queue: Row) -> Software:
        """Return what the software chapter says of a parent queue."""
        name = queue["panda_queue"]
        if name not in self._software:
            world = self.world
            self._software[name] = software(
                self.asks_for, world.software[name], world.every_tag, world.matching
            )
        return self._software[name]

    @property
    def single_or_list(self) -> bool:
        return self.site_preassigned or self.list_preassigned

    def _counted_by(self) -> None:
        """Jobs are counted by share, or by the resource work queue of the task (6)."""
        queues = self.world.resource_queues
        self.by_workqueue = self.row.get("workqueue_id") in queues
        self.tag = self.row["workqueue_id"] if self.by_workqueue else self.row.get("gshare")
        self.queue_name = queues[self.tag] if self.by_workqueue else self.row.get("gshare")

    def _input(self) -> None:
        """Sizes of the input and where its files are (6.1)."""
        world = self.world
        self.datasets = world.task_rows("datasets", self.id)
        self.sizes = {
            row["lfn"]: row.get("fsize") or 0 for row in world.task_rows("files", self.id)
        }
        self.total = sum(self.sizes.values())
        self.nfiles = len(self.sizes)
        self._available: dict[tuple[str, bool], tuple[int, int]] = {}
        self.on_disk: dict[str, set[str]] = {}
        self.on_tape: dict[str, set[str]] = {}
        for row in world.task_rows("file_locations", self.id):
            if row["kind"] in ("localdisk", "cache"):
                self.on_disk.setdefault(row["panda_queue"], set()).add(row["lfn"])
            elif row["kind"] == "localtape":
                self.on_tape.setdefault(row["panda_queue"], set()).add(row["lfn"])
        self.resource_types = grouped(
            world.task_rows("task_resource_types", self.id), "computingsite"
        )
        self.locked = {row["panda_queue"] for row in world.task_rows("locks", self.id)}

    def available(self, parent: str, *, tape: bool = False) -> tuple[int, int]:
        """Return size [B] and number of the files at a queue, on disk or on disk and tape."""
        key = (parent, tape)
        if key not in self._available:
            there = self.on_disk.get(parent, set())
            if tape:
                there = there | self.on_tape.get(parent, set())
            there &= self.sizes.keys()
            self._available[key] = sum(self.sizes[lfn] for lfn in there), len(there)
        return self._available[key]

    def memory_base(self) -> int:
        """Return the requirement before scaling [MB], 0 for none (4.2)."""
        ram = self.row.get("ramcount") or 0
        chunk = self.row.get("chunk_ramcount") or 0
        if not self.world.rules.memory_by_unit:
            merge = self.merging and self.row.get("mergeramcount")
            return max(merge or ram, chunk)
        if self.merging:
            merge = self.row.get("mergeramcount") or 0
            return max(merge, chunk, 2000) if merge else chunk
        return max(ram, chunk) if ram else chunk

    def memory(self, corecount: int | None) -> float:
        """Return the memory needed at a queue of so many cores [MB]."""
        base = self.memory_base()
        if not base and self.world.rules.memory_by_unit:
            return 0
        if not self.world.rules.memory_by_unit:
            base = base * (corecount or 1) + (self.row.get("baseramcount") or 0)
            return self._cut(base * 0.9)
        per_core = self.row.get("ramcountunit") in ("MBPerCore", "MBPerCoreFixed")
        if per_core and not self.merging:
            base = base * (corecount or 1) + (self.row.get("baseramcount") or 0)
        return self._cut(base * 0.9)

    def _cut(self, need: float) -> float:
        """Return whole numbers, or a number as it is."""
        return int(need) if self.world.rules.whole_numbers else need

    def stays_at_nucleus(self) -> bool:
        """Say whether t1weight keeps the jobs at the nucleus."""
        given = self.row.get("t1weight") or 0
        asked = given < 0 if self.world.rules.any_negative_t1weight else given == -1
        return bool(asked and not self.merging)

    def scratch(self, queue: Row) -> float:
        """Return the space a job needs in the working directory of a queue [MB] (4.3)."""
        row = self.row
        unit = row.get("outdiskunit") or ""
        per_event = unit.endswith("PerEvent")
        inputs = row.get("atom_size_effective")
        if not self.world.rules.output_of_master:
            inputs = (row.get("atom_size") or 0) / MB
        amount = row.get("atom_nevents") if per_event else inputs
        out = max(row.get("outdiskcount") or 0, 0) * UNITS.get(unit[:2], 1) * (amount or 0)
        work = row.get("workdiskcount")
        work_bytes = (work or 0) * UNITS.get((row.get("workdiskunit") or "")[:2], 1)
        if self.world.rules.workdisk_adds:
            work_bytes = 0 if work is None else work_bytes + 300 * MB
        else:
            work_bytes = max(work_bytes, 300 * MB)
        need = max(out, 1500 * MB) + work_bytes
        if not self.reads_directly(queue):
            need += row.get("atom_size") or 0
        return self._cut(need / MB)

    def reads_directly(self, queue: Row) -> bool:
        """Say whether jobs read their input without copying it (4.3)."""
        if not self.world.rules.direct_asks_task:
            return bool(queue.get("maxinputsize") == -1 or queue.get("direct_access_lan"))
        by_lan = (
            not self.row.get("uselocalio")
            and self.row.get("allowinputlan")
            and queue.get("direct_access_lan")
        )
        return not self.merging and bool(queue.get("maxinputsize") == -1 or by_lan)

    def hs06(self) -> bool:
        unit = self.row.get("cputimeunit") or ""
        return unit.removesuffix("Fixed") in ("HS06sPerEvent", "mHS06sPerEvent")

    def cputime(self) -> float | None:
        """Return HS06 s per event."""
        value: float | None = self.row.get("cputime")
        if value is None:
            return None
        return value / 1000 if (self.row.get("cputimeunit") or "").startswith("m") else value

    def walltime_need(self) -> float | None:
        """Return the work of the smallest job, HS06 s or s x cores; none where undefined (4.4)."""
        row = self.row
        per_unit = self.cputime() if self.hs06() else row.get("walltime")
        amount = row.get("atom_nevents") if self.hs06() else row.get("atom_size_effective")
        if per_unit is None:
            return None
        need: float = per_unit * (amount or 0)
        if self.es:
            attempts = row.get("maxattemptesjob")
            need /= (row.get("nesconsumers") or 1) * (3 if attempts is None else attempts + 1)
        return need

    def dynamic_needs(self) -> tuple[float, float] | None:
        """Return need_dyn and need_dyn_max [HS06 s]; none where numbers of events are not dynamic."""
        granularity, cputime = self.row.get("dynamicnumevents"), self.cputime()
        if not self.hs06() or not granularity or cputime is None:
            return None
        longest = self.row.get("max_consecutive_events") or 0
        most = self.row.get("maxeventsperjob")
        return cputime * granularity, cputime * (longest if not most else min(longest, most))

    def walltime_undefined(self) -> bool:
        row = self.row
        nothing = not row.get("walltime") and not row.get("walltimeunit")
        unit = row.get("cputimeunit")
        return bool((nothing and not unit) or (unit and not row.get("cputime")))

    def efficiency(self) -> float:
        given = self.row.get("cpuefficiency")
        return 90 if given is None else given

    def capacity(self, queue: Row, seconds: float) -> float:
        """Return the work that a slot of a queue does in some time, in the unit of the need."""
        cores = max(1, queue.get("corecount") or 0)
        if not self.hs06():
            return seconds * cores
        power = (queue.get("corepower") or 0) * self.efficiency() / 100
        return self._cut((seconds - (self.row.get("basewalltime") or 0)) * cores * power)

    def t1_factor(self) -> float:
        """Return the preference for queues of the nucleus (4.6)."""
        given = self.row.get("t1weight") or 0
        t1 = 1 if given < 0 else given or (4 if self.iointensity > 500 else 1)
        high = self.first_class and not self.event_service and not self.single_or_list
        return max(t1, 100 if high else 1)

    def premerge_timed_out(self) -> bool:
        """Say whether the queue of a pre-merge dataset no longer binds (3)."""
        changed = when(self.row.get("master_modificationtime"))
        created = when(self.row.get("master_creationtime"))
        frozen = when(self.row.get("frozentime"))
        if self.world.rules.merging_freed_by == "waiting":
            return frozen is not None and self.at is not None and frozen <= self.at - DAY
        if changed is None or frozen is None or self.at is None:
            return False
        return changed != created and changed < self.at - DAY and frozen < self.at - FROZEN

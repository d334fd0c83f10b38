"""A brokerage of queues that stands: prepared once, asked again and again with other counts, by the very same rules."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any

import dataframely as dy
import numpy as np
import polars as pl

from brokerlab.brokerage.analysis_jobs.settings import AnalysisRules
from brokerlab.brokerage.engine.brokerage import Brokerage
from brokerlab.brokerage.engine.decide import (
    ask_again,
    asked_of,
    changes,
    in_parts,
    lowest_bit,
    named,
    parts,
    patch,
)
from brokerlab.brokerage.engine.decisions import Results, with_names
from brokerlab.brokerage.engine.lookup import Known, Lookup, lazy_sides, number_of, with_facts
from brokerlab.brokerage.engine.pairs import Facts, Frames, Lazy, Plans, looked_up, matched
from brokerlab.brokerage.engine.rule import Rule
from brokerlab.brokerage.engine.steps import Derived, names_of, reads_of
from brokerlab.brokerage.engine.world import World, with_some_place
from brokerlab.brokerage.inputs.frames import at_every
from brokerlab.brokerage.production_jobs.brokerage import BROKERAGE
from brokerlab.brokerage.production_jobs.ranking import shares
from brokerlab.brokerage.rules import ProductionRules
from brokerlab.errors import ConfigError, DataError, SchemaError, nearest
from brokerlab.frames import polars_frame, prepared
from brokerlab.gdpconfig import Config
from brokerlab.numerics import BoolArray, IntArray, repeated

KEY = ["jeditaskid", "snapshot", "world"]

Tables = dict[str, pl.DataFrame]


def asked(wanted: Any, known: pl.DataFrame, n_settings: int) -> pl.DataFrame:
    """Return what is wanted (see :func:`prepare`), sorted, with ``t``, the number of the task, and ``instant``.

    ``known``: the tasks prepared, ``jeditaskid, snapshot, t``. The instant is the number of what a task sees, its
    state's where no state is asked for at several snapshots.

    Raises:
        SchemaError: Missing columns, values of another type, nulls.
        DataError: Tasks or numbers of settings that were not prepared, rows that repeat a key.
    """
    rows = prepared({"wanted": wanted}, {"wanted": _Wanted})["wanted"]
    state = pl.coalesce("state", "world")
    rows = rows.with_columns(pl.col("snapshot", "setting").fill_null(0), state=state).sort(KEY)
    result = rows.join(known, on=KEY[:2], how="left", maintain_order="left")
    strange = pl.col("t").is_null() | ~pl.col("setting").is_between(0, n_settings - 1)
    odd = result.filter(strange | pl.struct(KEY).is_duplicated())
    if odd.height:
        raise DataError(
            f"wanted: {odd.height} rows repeat a key, or are of tasks or settings that were not prepared, such as "
            f"{odd.row(0, named=True)}"
        )
    if result["state"].n_unique() == result.n_unique(["state", "snapshot"]):
        return result.with_columns(instant="state")
    instants = result.select("state", "snapshot").unique().sort("state", "snapshot")
    instants = instants.with_columns(instant=pl.int_range(pl.len(), dtype=pl.Int64))
    return result.join(instants, on=["state", "snapshot"], how="left", maintain_order="left")


class _Wanted(dy.Schema):
    jeditaskid = dy.Int64(nullable=False)
    snapshot = dy.Int64(nullable=True)
    world = dy.Int64(nullable=False)
    state = dy.Int64(nullable=True)
    at = dy.Datetime(nullable=True, time_unit="us")
    setting = dy.Int64(nullable=True)


def states(
    state: Mapping[str, Any],
    contracts: Mapping[str, type[dy.Schema]],
    allowed: Collection[str],
    instants: pl.DataFrame,
) -> Tables:
    """Return the tables of a state, held to their contracts; ``snapshot`` is the instant, see :func:`asked`.

    ``state`` has frames of any engine with ``world`` instead of ``snapshot`` (null: every world), ``instants`` are
    ``world, instant`` of what is asked for.

    Raises:
        SchemaError: Tables that may not change, rows of no world, whatever else the contracts do not allow.
    """
    given = {}
    for name, table in state.items():
        if name not in allowed:
            raise SchemaError(f"state: '{name}' may not change: {nearest(name, allowed)}")
        frame = polars_frame(table, contracts[name])
        world = frame.schema.get("world", pl.Unknown())
        if not (world.is_integer() or world == pl.Null) or "snapshot" in frame.columns:
            raise SchemaError(
                f"state: {name} must have a world, a whole number (null: every one), in the place of snapshot; found "
                f"{', '.join(f'{key} {kind}' for key, kind in frame.schema.items())}"
            )
        given[name] = frame.rename({"world": "snapshot"})
    held = prepared(given, {name: contracts[name] for name in given})
    worlds = instants.select(snapshot="world").unique()
    result = {name: at_every(frame, worlds, name) for name, frame in held.items()}
    if instants["world"].equals(instants["instant"]):
        return result
    return {name: at_instants(frame, instants, "world") for name, frame in result.items()}


def at_instants(frame: pl.DataFrame, instants: pl.DataFrame, of: str) -> pl.DataFrame:
    """Return rows for the instants; the frame's ``snapshot`` is a world or a snapshot, as ``of`` says."""
    if frame.is_empty():
        return frame
    known = instants.select(of, "instant").unique()
    joined = frame.join(known, left_on="snapshot", right_on=of, maintain_order="left")
    return joined.with_columns(snapshot="instant").drop("instant")


def with_others(
    given: Tables,
    rows: pl.DataFrame,
    prepared_tables: Mapping[str, pl.DataFrame],
    together: Iterable[Iterable[str]],
) -> Tables:
    """Add the tables that are read together with some that are given, as they were prepared."""
    lost = [
        name
        for names in together
        if given.keys() & set(names)
        for name in names
        if name not in given
    ]
    if not lost:
        return given
    snapshots = rows.select("snapshot").unique()
    others = {
        name: at_every(prepared_tables[name], snapshots, name) for name in dict.fromkeys(lost)
    }
    return given | {name: at_instants(frame, rows, "snapshot") for name, frame in others.items()}


@dataclass(frozen=True)
class Cycle:
    """What stands while some tables change.

    Attributes:
        lookups: What is looked up in tables that change.
        checks: All checks of single queues, in order.
        asked: Numbers of those that read facts that change.
        lasting: Bits of the checks that remove a queue at once.
        columns: Facts of pairs that stand and are read by the others and the ranking.
        kept: What stands of pairs, by locality loop.
        plans: Plans made at the first question.
    """

    lookups: tuple[Lookup, ...]
    checks: tuple[Rule, ...]
    asked: tuple[int, ...]
    lasting: int
    columns: frozenset[str]
    kept: dict[int, Kept] = field(default_factory=dict)
    plans: Plans = field(default_factory=Plans)

    @classmethod
    def of(cls, world: World, lookups: tuple[Lookup, ...]) -> Cycle:
        """Sort the checks out by the facts that change."""
        changing = {name for each in lookups for name in each.facts}
        checks = world.checks
        asked = tuple(bit for bit, check in enumerate(checks) if changing & {*check.reads})
        read = {*world.step_reads, *(name for bit in asked for name in checks[bit].reads)}
        of_pairs = {name for side in world.facts.sides for name in side.missing}
        columns = frozenset(of_pairs & read - changing)
        return cls(lookups, checks, asked, world.lasting, columns)

    def closed(self, failed: IntArray) -> IntArray:
        """Return the check that removed a pair whatever the others say; -1: that is open."""
        first = lowest_bit(failed, self.lasting)
        others = [bit for bit in self.asked if self.lasting >> bit & 1]
        limit = min(others, default=len(self.checks))
        return np.where((first >= 0) & (first < limit), first, -1)

    def hopeful(self, numbers: pl.Series) -> pl.Series:
        """Tell of numbers of tasks whether one may find a queue, in some loop."""
        result = []
        for kept in self.kept.values():
            places = kept.places(numbers)
            result.append((places >= 0) & np.append(kept.hopeful, False)[places])
        return pl.Series(np.any(result, axis=0))


@dataclass(frozen=True, eq=False)
class Kept:
    """What stands of the pairs.

    Attributes:
        tasks: Numbers of the tasks, sorted.
        closed: Pairs that each check (column) removed whatever the others say, by task (row).
        start: Place of the first open pair of each task.
        n: Open pairs of each task.
        open: ``q, failed`` (by the checks that stand) of the pairs that are open, and the columns of the cycle.
        failed: Bits of the standing checks that skip each pair, in the order of :func:`~.pairs.matched`, in parts.
    """

    tasks: IntArray
    closed: IntArray
    start: IntArray
    n: IntArray
    open: pl.DataFrame
    failed: tuple[IntArray, ...] = ()

    @classmethod
    def of(
        cls, cycle: Cycle, facts: Facts, before: Kept | None, changed: Mapping[str, pl.Series]
    ) -> Kept:
        """Ask the checks that stand about every pair.

        ``before``: what stands of the same pairs under other settings; only what reads a fact that is ``changed`` is then
        worked out again.
        """
        again = [bit for bit in range(len(cycle.checks)) if bit not in cycle.asked]
        if before is not None:
            anew = ask_again(cycle.checks, changed)
            again = [bit for bit in again if bit in anew]
            if not again and not cycle.columns & changed.keys():
                return before
        tasks = facts.tasks["t"].to_numpy()
        closed = np.zeros((len(tasks), len(cycle.checks)), dtype=np.int64)
        n = np.zeros(len(tasks), dtype=np.int64)
        kept, failed = [], []
        for number, part in enumerate(in_parts(facts)):
            pairs = matched(part)
            old = np.zeros(pairs.height, np.int64) if before is None else before.failed[number]
            bits = patch(old, part, cycle.checks, again)
            failed.append(bits)
            place, first = np.searchsorted(tasks, pairs["t"].to_numpy()), cycle.closed(bits)
            np.add.at(closed, (place[first >= 0], first[first >= 0]), 1)
            n += np.bincount(place[first < 0], minlength=len(tasks))
            left = pairs.with_columns(failed=pl.Series(bits)).filter(pl.Series(first < 0))
            numbers = looked_up(part, left.select("t", "q"), {*cycle.columns})
            kept.append(left.drop("t").hstack(numbers.drop("t", "q")))
        start = np.cumsum(n) - n
        return cls(tasks, closed, start, n, pl.concat(kept, rechunk=True), tuple(failed))

    @classmethod
    def stacked(cls, parts: Sequence[Kept], n_tasks: int) -> Kept:
        """Put what stands under several settings together: tasks of the i-th ones are numbered from ``i * n_tasks`` on."""
        if len(parts) == 1:
            return parts[0]
        distinct = list(dict.fromkeys(parts))
        heights = np.cumsum([0, *(part.open.height for part in distinct)])
        first = [heights[distinct.index(part)] for part in parts]
        return cls(
            np.concatenate([part.tasks + i * n_tasks for i, part in enumerate(parts)]),
            np.concatenate([part.closed for part in parts]),
            np.concatenate([part.start + at for part, at in zip(parts, first, strict=True)]),
            np.concatenate([part.n for part in parts]),
            pl.concat([part.open for part in distinct], rechunk=True),
        )

    @cached_property
    def hopeful(self) -> BoolArray:
        """Tasks with a pair that passes every check that stands; what fails one is removed, at once or as marked."""
        passes = np.append(0, np.cumsum(self.open["failed"].to_numpy() == 0))
        hopes: BoolArray = passes[self.start + self.n] > passes[self.start]
        return hopes

    def places(self, numbers: pl.Series) -> IntArray:
        """Return at which place each number of a task stands; -1: it may go nowhere."""
        wanted = numbers.to_numpy()
        place = np.searchsorted(self.tasks, wanted)
        there = np.append(self.tasks, -1)[place] == wanted
        return np.where(there, place, -1)

    def pairs(self, rows: IntArray, places: IntArray) -> pl.DataFrame:
        """Return the open pairs of tasks, which may come several times: ``t`` (of ``rows``), ``q, failed`` and the facts kept."""
        row, of = repeated(self.start[places], self.n[places])
        return pl.DataFrame({"t": rows[row]}).hstack(self.open[pl.Series(of)])


def per_instant(tasks: pl.DataFrame, instants: IntArray, keys: Collection[str]) -> pl.DataFrame:
    """Return the facts of tasks, one row each, as those who look at what changes want them.

    They have ``t`` (number of the row), ``snapshot`` (the instant) and ``keys`` numbered anew, which stand for a state of the
    grid, too.
    """
    names, number = np.unique(instants, return_inverse=True)
    own = {
        key: np.unique(tasks[key].to_numpy() * len(names) + number, return_inverse=True)[1]
        for key in keys
    }
    return tasks.with_columns(
        t=pl.Series(np.arange(len(instants))),
        snapshot=pl.Series(instants),
        **{key: pl.Series(values, dtype=pl.Int64) for key, values in own.items()},
    )


STAGES = ("jobs", "analysis")
"""Stages that can stand."""


@dataclass(frozen=True)
class Ranked:
    """The queues that may receive jobs.

    Attributes:
        queues: One row per candidate that is ranked: ``jeditaskid, snapshot, world, panda_queue`` (Enum of all
            queues), ``weight``, ``share`` (of the task's jobs expected there; 1 in all of a task's candidates),
            ``rank``; sorted by the first four.
        outcomes: One row per row wanted, sorted: ``jeditaskid, snapshot, world``, ``outcome`` (``candidates``,
            ``no_candidates``..., as ``decide`` says), ``check`` (why most queues were skipped, the first of equals; null:
            none was), ``n_queues`` looked at, ``n_candidates``, and what else of it is said before any queue is looked at.
    """

    queues: pl.DataFrame
    outcomes: pl.DataFrame


def prepare(
    tables: Mapping[str, Any],
    *,
    brokerage: Brokerage[Any, Any] = BROKERAGE,
    rules: ProductionRules | AnalysisRules | str | None = None,
    config: Config | None = None,
) -> Standing:
    """Prepare a brokerage that is asked again and again with other counts.

    What does not change from cycle to cycle is worked out here and at the first question, the rest at every question, by
    the same functions as in ``decide``. ``tables`` are those of ``decide`` of the brokerage (of production jobs or of users);
    ``tasks`` has one row per (jeditaskid, snapshot), a snapshot being a time over which queues, endpoints, links and replicas
    stay as they are.

    Returns:
        The brokerage. ``standing.decide(wanted, state)`` answers with :class:`Ranked`:

        * ``wanted``: ``jeditaskid, snapshot`` (null = 0), ``world`` (i64: number of the simulated world that asks), perhaps
          ``state`` (i64: number of the world whose state the task sees; of one snapshot; null: its own) and ``at`` (time
          of the cycle, for the age of what the state tells; null: that of the task's row). The same task may come with
          several worlds.
        * ``state``: some of the tables of :func:`tables_that_change` by name, ``world`` in the place of ``snapshot``. A table
          that is not given keeps what ``tables`` said, and has no rows if that did not have it either. Each new choice of
          tables costs as much as the first question.

        ``standing.with_config(config)`` is the same brokerage under other settings; ``standing.with_config(*configs)`` asks
        it under several at once, ``setting`` in ``wanted`` (i64, null = 0) being the number of a task's.

    Raises:
        SchemaError: Unknown tables, values of another type.
        ConfigError: Settings that no rule can work with, or another brokerage: the choice of a nucleus cannot stand.
    """
    if not isinstance(brokerage, Brokerage):
        raise ConfigError(
            f"brokerage={brokerage!r}: allowed are values of Brokerage, such as brokerage.plugins.get(name)"
        )
    if brokerage.stage not in STAGES:
        raise ConfigError(f"stage {brokerage.stage!r} cannot stand; allowed are {STAGES}")
    later = tables_that_change(brokerage)
    return Standing((brokerage.prepare(tables, rules=rules, config=config, later=later),))


@lru_cache(maxsize=16)
def tables_that_change(brokerage: Brokerage[Any, Any]) -> tuple[str, ...]:
    """Return the names of the input tables that may change from cycle to cycle."""
    lookups = brokerage.lookups(brokerage.rule_set())
    return tuple(dict.fromkeys(name for each in lookups for name in each.tables))


@dataclass(frozen=True)
class Standing:
    """See :func:`prepare`.

    Attributes:
        worlds: What is decided on, under each of the settings; what no setting changes is the same in all of them.
        root: The brokerage that this one differs from in its settings only; null: it is none of another's.
        cycles: What stands, by the names of the tables that change.
    """

    worlds: tuple[World, ...]
    root: Standing | None = None
    cycles: dict[frozenset[str], Cycle] = field(default_factory=dict)

    @property
    def world(self) -> World:
        """Rules, the first settings, tables and facts."""
        return self.worlds[0]

    def with_config(self, *configs: Config) -> Standing:
        """Return the same brokerage under other settings, or under several at once; only what they change is worked out anew."""
        root = self.root or self
        return Standing(tuple(root.world.with_config(config) for config in configs), root)

    def decide(self, wanted: Any, state: Mapping[str, Any], *, hopeless: bool = True) -> Ranked:
        """Decide for tasks in worlds; see :func:`prepare`.

        Without the ``hopeless`` ones, those that find no queue whatever changes, outcomes are of the others, and queues are the same.
        """
        world, n_tasks = self.world, self.world.tasks.height
        rows = asked(wanted, self._known, len(self.worlds))
        rows = rows.with_columns(number=pl.col("setting") * n_tasks + pl.col("t"))
        allowed = tables_that_change(world.brokerage)
        cycle = self.cycle(frozenset({*allowed} & state.keys()))
        if not hopeless:
            rows = rows.filter(cycle.hopeful(rows["number"]))
        seen = rows.select("instant", world="state")
        given = states(state, world.brokerage.tables, allowed, seen)
        tables = with_others(given, rows, world.tables, {each.tables for each in self._changing})
        tasks = self._tasks(rows, tables, cycle)
        ended = self._ended(rows, tasks, cycle)
        going = ended["outcome"].is_null() & pl.Series(cycle.kept[1].places(rows["number"]) >= 0)
        made = {name: world.base.made[name] for each in self._changing for name in each.made}
        made = {name: at_instants(frame, rows, "snapshot") for name, frame in made.items()}
        sides = cycle.plans.sides(
            "sides", {"tasks": tasks, **made, **tables},
            lambda lazy: lazy_sides(
                [each for each in cycle.lookups if each.of_pairs], self._made(lazy["tasks"], lazy)
            ),
        )  # fmt: skip
        none = world.facts.listed.clear()
        facts = replace(world.facts, tasks=tasks.filter(going), sides=sides, listed=none)
        order = pl.Enum(names_of(world.checks, world.steps))
        counts = np.zeros((rows.height, len(order.categories)), dtype=np.int64)
        left = np.zeros(rows.height, dtype=np.int64)
        checks = [cycle.checks[bit] for bit in cycle.asked]
        bits = {check.name: bit for check, bit in zip(checks, cycle.asked, strict=True)}
        read = {name for check in checks for name in check.when.meta.root_names()}

        def failures(part: Facts, loop: int) -> pl.DataFrame:
            """Ask the checks that do not stand about the pairs that are open; those that are closed only count."""
            kept, t = cycle.kept[loop], part.tasks["t"].to_numpy()
            places = kept.places(part.tasks["number"])
            counts[t] = 0
            counts[t, : kept.closed.shape[1]] = kept.closed[places]
            result = kept.pairs(t, places)
            numbers = looked_up(part, result.select("t", "q"), read - cycle.columns)
            result = result.hstack(numbers.drop("t", "q"))
            if not checks:
                return result
            anew = asked_of(result, checks, bits)["failed"]
            return result.with_columns(pl.col("failed") | anew)

        ranked = [pl.DataFrame(schema={"t": pl.Int64, "q": pl.Int64, **world.brokerage.ranks})]
        for part in parts(replace(world, facts=facts), failures):
            t, codes = part.pairs["t"].to_numpy(), part.pairs["check"].to_physical()
            removed = codes.is_not_null().to_numpy()
            np.add.at(counts, (t[removed], codes.drop_nulls().to_numpy()), 1)
            left += np.bincount(t[~removed], minlength=len(left))
            best = pl.col("rank").is_not_null() & pl.col("check").is_null()
            ranked.append(part.pairs.filter(best).select(ranked[0].columns))
        queues = pl.concat(ranked).sort("t", "q").with_columns(share=shares(pl.col("weight")))
        keys = rows.select(*KEY, t=pl.int_range(pl.len(), dtype=pl.Int64))
        named_queues = with_names(world.facts, keys, queues)
        skipped = counts.sum(axis=1)
        most = np.where(skipped > 0, counts.argmax(axis=1), -1)
        outcomes = rows.select(KEY).with_columns(
            outcome=self._outcomes(tasks, ended["outcome"], counts, left, order),
            check=named(most, order),
            n_queues=pl.Series(skipped + left),
            n_candidates=pl.Series(left),
        )
        return Ranked(
            named_queues.select(*KEY, "panda_queue", "weight", "share", "rank"),
            outcomes.with_columns(ended.drop("outcome").get_columns()),
        )

    def cycle(self, names: frozenset[str]) -> Cycle:
        """Return what stands while these tables change."""
        if names not in self.cycles:
            self.cycles[names] = self._cycle(names)
        return self.cycles[names]

    def _cycle(self, names: frozenset[str]) -> Cycle:
        """Work out what stands; what settings do not change is that of the root, where they leave the same tasks."""
        lookups = tuple(each for each in self._changing if names & {*each.tables})
        cycle = Cycle.of(self.world, lookups)
        root = None if self.root is None else self.root.world
        before = {} if self.root is None else self.root.cycle(names).kept
        first = None if root is None else self._open(root)
        open_ = [(world, self._open(world)) for world in self.worlds]
        for loop in (1,) if self.world.second is None else (1, 2):
            kept = []
            for world, facts in open_:
                same = first is not None and first.tasks["t"].equals(facts.tasks["t"])
                changed = changes(first, facts) if first is not None and same else {}
                local = replace(world, facts=facts).in_loop(facts.tasks.select("t"), loop)
                kept.append(Kept.of(cycle, local, before[loop] if same else None, changed))
            cycle.kept[loop] = Kept.stacked(kept, self.world.tasks.height)
        return cycle

    @cached_property
    def _known(self) -> pl.DataFrame:
        """The tasks that may be asked for: ``jeditaskid, snapshot, t``."""
        tasks = self.world.tasks.select(*KEY[:2], "t")
        return tasks.unique(KEY[:2], keep="first", maintain_order=True)

    @cached_property
    def _changing(self) -> tuple[Lookup, ...]:
        """What is looked up in tables that may change."""
        return tuple(each for each in self.world.lookups if each.tables)

    @cached_property
    def _derived(self) -> tuple[Derived, ...]:
        """What is made of facts of tasks."""
        return self.world.brokerage.derived(self.world.rules)

    @cached_property
    def _results(self) -> Results:
        """How decisions end."""
        result: Results = self.world.brokerage.decisions.results(self.world)
        return result

    @cached_property
    def _numbers(self) -> set[str]:
        """Numbers of tasks that stand for a state of the grid, too."""
        pairs = (each.task for each in self._changing if each.of_pairs)
        return {number_of(task) for task in pairs if "snapshot" in task}

    @cached_property
    def _reads(self) -> set[str]:
        """Facts of tasks that are read at a question, but for those of checks."""
        made_of = (name for each in self._changing for name in (*each.task, *each.reads))
        before = self.world.brokerage.before(self.world.rules)
        ending = (name for rule in before for name in rule.reads)
        own = {"t", "jeditaskid", "at", *self._numbers, *self.world.reads}
        return {*own, *made_of, *ending, *reads_of(self._derived)}

    @cached_property
    def _set(self) -> pl.DataFrame:
        """The facts of tasks that are not the same under all settings, one setting after the other."""
        first, *others = (world.tasks for world in self.worlds)
        names = [
            name for name in first.columns if any(not first[name].equals(o[name]) for o in others)
        ]
        return pl.concat(
            [frame.select(names) for frame in (first, *others)], how="vertical_relaxed"
        )

    @cached_property
    def _known_ends(self) -> pl.DataFrame:
        """``number, outcome`` (and why) of the tasks that end before any queue is looked at, under what was prepared."""
        n_tasks = self.world.tasks.height
        return pl.concat(
            world.outcomes.drop("detail", strict=False).with_columns(pl.col("t") + setting * n_tasks)
            for setting, world in enumerate(self.worlds)
        ).rename({"t": "number"})  # fmt: skip

    def _open(self, world: World) -> Facts:
        """Return the facts of the tasks that may be looked at, whatever of what may change held them back."""
        changing = {name for each in self._changing for name in each.facts}
        before = world.brokerage.before(world.rules)
        free = [rule.name for rule in before if changing & {*rule.when.meta.root_names()}]
        ended = world.outcomes.filter(~pl.col("throttle").is_in(free)) if free else world.outcomes
        tasks = world.tasks.join(ended, on="t", how="anti", maintain_order="left")
        return with_some_place(replace(world.facts, tasks=tasks, listed=world.known.lists))

    def _made(self, tasks: pl.LazyFrame, lazy: Lazy) -> Known:
        """Return what is known at a question."""
        made = {name: frame for name, frame in lazy.items() if name not in self.world.tables}
        return replace(self.world.known, tasks=tasks, tables=lazy, made=made)

    def _tasks(self, rows: pl.DataFrame, tables: Frames, cycle: Cycle) -> pl.DataFrame:
        """Return the facts of the tasks wanted, one row each, as what changes is keyed by."""
        world, checks = self.world, cycle.checks
        read = {*self._reads, *(name for bit in cycle.asked for name in checks[bit].reads)}
        columns = [name for name in world.tasks.columns if name in read]
        chosen = world.tasks.select(columns)[rows["t"]]
        if differ := [name for name in columns if name in self._set.columns]:
            chosen = chosen.with_columns(self._set.select(differ)[rows["number"]].get_columns())
        own = {"at": rows["at"], "t_at_s": rows["at"].dt.epoch("s")}
        times = {name: pl.coalesce(at, name) for name, at in own.items() if name in columns}
        placed = chosen.with_columns(rows["number"], **times)
        keyed = per_instant(placed, rows["instant"].to_numpy(), self._numbers)
        of_tasks = [each for each in cycle.lookups if not each.place]
        if not of_tasks:
            return keyed

        def make(lazy: Lazy) -> pl.LazyFrame:
            tasks = lazy["plain"]
            for each in of_tasks:
                tasks = with_facts(tasks, each, self._made(tasks, lazy))
            for derived in self._derived:
                tasks = tasks.with_columns(**derived.columns)
            return tasks

        names = sorted({name for each in of_tasks for name in each.tables})
        frames = {"plain": keyed, **{name: tables[name] for name in names}}
        return cycle.plans.frame("tasks", frames, make)

    def _ended(self, rows: pl.DataFrame, tasks: pl.DataFrame, cycle: Cycle) -> pl.DataFrame:
        """Return ``outcome`` (and why) of the rows that end before any queue is looked at; null: they do not."""
        brokerage, rules = self.world.brokerage, self.world.rules
        reads = {name for rule in brokerage.before(rules) for name in rule.reads}
        if not reads & {name for each in cycle.lookups for name in each.facts}:
            numbers = rows.select("number")
            known = numbers.join(self._known_ends, on="number", how="left", maintain_order="left")
            return known.drop("number")

        def make(lazy: Lazy) -> pl.LazyFrame:
            ended = brokerage.ends(self._made(lazy["tasks"], lazy))
            return lazy["tasks"].select("t").join(ended, on="t", how="left", maintain_order="left")

        return cycle.plans.frame("ends", {"tasks": tasks}, make).drop("t")

    def _outcomes(
        self, tasks: pl.DataFrame, ended: pl.Series, counts: Any, left: Any, names: pl.Enum
    ) -> pl.Series:
        """Return how the rows end, as decisions say it of the checks that removed their queues."""
        how = tasks.with_columns(ended, n_candidates=pl.Series(left))
        if self._results.sums:
            row, check = np.nonzero(counts)
            removed = pl.DataFrame({"t": row, "check": named(check, names)})
            sums = removed.group_by("t").agg(**self._results.sums)
            how = how.join(sums, on="t", how="left", maintain_order="left")
        return how.select(outcome=self._results.outcome)["outcome"]

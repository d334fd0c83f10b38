"""What goes wrong in a synthetic archive, so that every rule of the chapters finds something.

Sources: waiting.md 2 to 4; analysis-jobs.md 2 and 4 (rows 9, 22 to 25), 5.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from brokerlab.worlds.orders import CONTAINERS
from brokerlab.worlds.story_frames import DAY, HOUR, Path, Story, steps, until
from brokerlab.worlds.tasks import GROUPS, HEAVY_USERS, MEMBERS
from brokerlab.worlds.world import World

STORY_SHARE = 0.04
"""Most of the jobs that stories may have; in small archives the last ones are left out."""
PATTERN = {"architecture": "x86_64-(el9|alma9)-gcc13-opt", "container_name": CONTAINERS[0]}
"""A platform that is a pattern, in a container that queues take which have no such platform."""
ASKED: tuple[dict[str, object], ...] = (
    {},
    {"cloud": "C1"},
    {"allowinputlan": 2, "splitrule": "US=1,NF=1,IL=2"},
)
"""What tasks beside piles ask for in turn: nothing, a cloud, to read in place."""
MEASURED = {"walltime": 1, "walltimeunit": "kSI2kseconds"}
"""A task whose jobs are known to be short."""
URGENT, CALM = 900, 500
"""Priorities above and below the limit of the rules."""
WAITS: tuple[tuple[str, str, float, float, int | None], ...] = (
    ("pending", "pending", 1.5, 6, None),
    ("defined", "defined", 5, 9, None),
    ("assigned", "assigned", 13, 30, None),
    ("activated", "activated", 50, 90, None),
    ("starting", "starting", 50, 80, None),
    ("sent", "sent", 0.7, 3, None),
    ("holding_hi", "holding", 3.5, 9, URGENT),
    ("holding_lo", "holding", 50, 70, CALM),
    ("transferring_hi", "transferring", 100, 130, URGENT),
    ("transferring_lo", "transferring", 172, 190, CALM),
    ("waiting", "waiting", 1.5, 4, None),
    ("merging", "merging", 10, 20, None),
    ("throttled", "throttled", 172, 190, None),
    ("assigned_week", "assigned", 170, 190, None),
    ("activated_week", "activated", 170, 195, None),
)
"""Name, status, shortest and longest stay in it [h], priority: all longer than some limit."""
LARGEST = 10
"""Most jobs of a task of a story, unless some are tried again."""
PAST, LIVE = 3, 2
"""Jobs per wait and label that go on after it, and that wait at the end of the archive."""


def stories(world: World) -> list[Story]:
    """Return what goes wrong, as much of it as the archive has room for; what needs longer than the period is left out."""
    teller = _Teller(world)
    room = int(STORY_SHARE * world.settings.jobs)
    chosen = []
    for story in (part for whole in teller.tell() for part in _parts(whole)):
        paths = story.paths
        fits = min(p.created_s for p in paths) >= 0 and story.changed_s <= teller.end
        if fits and len(paths) <= room:
            room -= len(paths)
            chosen.append(story)
    return chosen


def _parts(story: Story) -> Iterator[Story]:
    """Divide a story of many jobs into tasks too small for anybody to learn from their jobs what jobs need."""
    whole = len(story.paths) <= LARGEST or any(p.again is not None for p in story.paths)
    if whole or story.course:
        yield story
        return
    for first in range(0, len(story.paths), LARGEST):
        yield replace(story, paths=story.paths[first : first + LARGEST])


class _Teller:
    """Lays stories out over the period of an archive."""

    def __init__(self, world: World) -> None:
        self.rng = world.generator(110)
        self.end = world.settings.end_s
        self.submit = int(world.settings.submit_s)
        self.roles = world.roles
        status = world.queues["status"].to_numpy()
        down = np.flatnonzero(np.isin(status, ["offline", "test"]) & world.production)
        self.down = int(down[0]) if len(down) else world.roles["paused"]

    def tell(self) -> Iterator[Story]:
        """Yield every story, the small ones first."""
        yield from self._waits()
        yield from self._silent()
        yield from self._urgent()
        yield from self._spared()
        yield from self._event_service()
        yield from self._builds()
        yield from self._again()
        yield from self._bad()
        yield from self._long_runs()
        yield from self._stopped()
        yield from self._groups()
        yield from self._piles()

    def _between(self, low: float, high: float) -> int:
        """Draw a time [s], given in hours."""
        return int(self.rng.uniform(low, high) * HOUR)

    def _begin(self, length_s: int) -> int:
        """Draw when something of this length begins."""
        return int(self.rng.uniform(0.03, 0.6) * max(self.submit - length_s, HOUR))

    def _user(self) -> int:
        """Draw a user that is in no group and not heavy."""
        return int(self.rng.integers(MEMBERS, 50))

    def _story(self, name: str, label: str, paths: list[Path], **more: object) -> Story:
        """Return a story of a production task or of some user."""
        user = more.pop("user", self._user() if label == "user" else -1)
        return Story(name=name, label=label, paths=tuple(paths), user=user, **more)  # type: ignore[arg-type]

    def _waits(self) -> Iterator[Story]:
        """Jobs that stay too long in a status and go on, and that stay there to this day."""
        late = self.roles["late"]
        for name, status, low, high, priority in WAITS:
            columns = {} if priority is None else {"currentpriority": priority}
            usual = {"transferring": {"holding": 0}}.get(status, {})
            for label in ("user", "managed"):
                stay = [self._between(low, high) for _ in range(PAST + LIVE)]
                begin = self._begin(max(stay))
                paths = [
                    Path(_bare(steps(begin + 40 * i, {**usual, status: s})), late, columns)
                    for i, s in enumerate(stay[:PAST])
                ]
                yield self._story(f"wait_{name}", label, paths)
                live = [
                    Path(_bare(until(self.end, status, s, usual)), late, columns)
                    for s in stay[PAST:]
                ]
                yield self._story(f"live_{name}", label, live)

    def _silent(self) -> Iterator[Story]:
        """Workers that gave their last sign of life hours ago: at jobs that run, start, or move their outputs."""
        late, pushes = self.roles["late"], self.roles["pushes"]
        for label in ("user", "managed"):
            quiet = [self._between(3, 40) for _ in range(5)]
            paths = [
                Path(
                    until(self.end, "running", q + self._between(0.5, 6)),
                    late,
                    signed_s=self.end - q,
                )
                for q in quiet
            ]
            paths.append(Path(until(self.end, "starting", self._between(3, 9)), late))
            yield self._story("silent", label, paths)
            moving = [self._between(6, 20) for _ in range(3)]
            columns = {"jobsubstatus": "stageout"}
            yield self._story("silent_transferring", label, [
                Path(_bare(until(self.end, "transferring", m, {"holding": 0})), pushes, columns)
                for m in moving
            ])  # fmt: skip
            held_back = [
                Path(
                    _bare(until(self.end, "holding", self._between(12, 30))),
                    late,
                    {"currentpriority": CALM},
                    signed_s=self.end - self._between(3.5, 9),
                )
                for _ in range(2)
            ]
            yield self._story("silent_holding", label, held_back)
            lost = [self._begin(DAY) + 60 * i for i in range(3)]
            yield self._story("lost", label, [
                Path(
                    steps(t, {"running": self._between(3, 8)}, last="failed", skip=("holding",)), late,
                    {"jobdispatchererrorcode": 100, "maxpss": None},
                )
                for t in lost
            ])  # fmt: skip

    def _urgent(self) -> Iterator[Story]:
        """Urgent jobs at a queue that is down, or that has started nothing for hours."""
        for where in (self.down, self.roles["week"]):
            for label in ("user", "managed"):
                columns = {"currentpriority": URGENT, "relocationflag": 0}
                live = [until(self.end, "activated", self._between(5, 20)) for _ in range(2)]
                live.append(until(self.end, "starting", self._between(5, 20)))
                yield self._story("urgent", label, [Path(s, where, columns) for s in live])

    def _spared(self) -> Iterator[Story]:
        """Jobs that no rule touches, as their queue is paused or keeps its jobs."""
        for role in ("stay", "paused"):
            for label in ("user", "managed"):
                live = [until(self.end, "activated", self._between(50, 90)) for _ in range(2)]
                live.append(_bare(until(self.end, "holding", self._between(50, 70))))
                yield self._story(
                    f"spared_{role}", label, [Path(s, self.roles[role]) for s in live]
                )

    def _event_service(self) -> Iterator[Story]:
        """Event service jobs that wait or run for too long."""
        late = self.roles["late"]
        wait = [until(self.end, "waiting", self._between(0.4, 0.9)) for _ in range(2)]
        run = [until(self.end, "running", self._between(26, 40)) for _ in range(2)]
        columns = {"eventservice": 1, "currentpriority": 950}
        yield self._story("event_service", "managed", [
            *[Path(_bare(s), late, {"eventservice": 2}) for s in wait],
            *[Path(s, late, columns, signed_s=self.end - 600) for s in run],
        ])  # fmt: skip

    def _builds(self) -> Iterator[Story]:
        """Builds that are defined for hours."""
        late = self.roles["late"]
        columns = {
            "prodsourcelabel": "panda", "transformation": "buildGen-00-00-02", "ninputdatafiles": 0,
            "inputfilebytes": 0,
        }  # fmt: skip
        paths = [
            Path(until(self.end, "defined", self._between(5, 9)), late, columns) for _ in range(2)
        ]
        paths.append(
            Path(until(self.end, "defined", self._between(5, 9)), late, {"lockedby": None})
        )
        yield self._story("late_build", "user", paths)

    def _again(self) -> Iterator[Story]:
        """Waiting sets of analysis jobs that are brokered again: by age, by their group's limit, as the queue is down."""
        higgs = 0
        places = (
            (self.roles["late"], 14, -1, self._user(), "activated"),
            (self.roles["late"], 7, higgs, higgs, "activated"),
            (self.down, 4, -1, self._user(), "activated"),
            (self.roles["pushes"], 13, -1, self._user(), "assigned"),
        )
        for queue, hours, group, user, status in places:
            paths = [
                Path(until(self.end - 30 * i, status, hours * HOUR), queue, {"jobdefinitionid": 2})
                for i in range(4)
            ]
            yield self._story("waiting_set", "user", paths, user=user, group=group)

    def _bad(self) -> Iterator[Story]:
        """Tasks whose jobs fail or are sent back at one queue, and go on elsewhere."""
        bad, other = self.roles["bad"], self.roles["late"]
        for _ in range(3):
            begin, user = self._begin(DAY), int(self.rng.integers(0, HEAVY_USERS))
            failed = [
                Path(
                    steps(begin + i, {"running": 300 + 20 * i}, last="failed"),
                    bad,
                    {"piloterrorcode": 1305, "exeerrorcode": 65, "maxpss": None},
                )
                for i in range(8)
            ]
            sent_back = [
                Path(
                    steps(begin + 10 + i, {"activated": 2700}, last="closed",
                          skip=("starting", "running", "holding")),
                    bad, {"jobsubstatus": "toreassign", "relocationflag": 1},
                )
                for i in range(5)
            ]  # fmt: skip
            again = [
                Path(steps(begin + 5000 + 10 * i), other if i % 3 else bad, again=i)
                for i in range(13)
            ]
            later = [Path(steps(begin + 9000 + 10 * i), other) for i in range(6)]
            yield self._story("bad_queue", "user", failed + sent_back + again + later, user=user)

    def _long_runs(self) -> Iterator[Story]:
        """Jobs that run for three weeks."""
        late, long = self.roles["late"], int(21.4 * DAY)
        for label in ("user", "managed"):
            begin = int(0.3 * DAY) + LEAD_IN
            yield self._story("long_run", label, [
                Path(steps(begin + 60 * i, {"running": long + 900 * i}), late) for i in range(2)
            ])  # fmt: skip
            yield self._story("live_long_run", label, [
                Path(until(self.end, "running", long + 900 * i), late, signed_s=self.end - 900)
                for i in range(2)
            ])  # fmt: skip

    def _stopped(self) -> Iterator[Story]:
        """Tasks that are paused or get stuck on the way; one is paused to this day."""
        late = self.roles["late"]
        for status in ("paused", "pending", "throttled"):
            begin = self._begin(3 * DAY)
            first = [Path(steps(begin + 20 * i), late) for i in range(4)]
            second = [Path(steps(begin + 2 * DAY + 20 * i), late) for i in range(6)]
            course = ((status, begin + 5 * HOUR), ("running", begin + 2 * DAY - 1200))
            yield self._story(f"task_{status}", "user", first + second, course=course)
        begin = self.end - 2 * DAY
        done = [Path(steps(begin + 20 * i), late) for i in range(4)]
        kept = [Path(until(self.end, "activated", 40 * HOUR), late)]
        stop = (("paused", begin + 8 * HOUR),)
        yield self._story("task_paused", "user", done + kept, course=stop)

    def _groups(self) -> Iterator[Story]:
        """Working groups above a cap each, and a small task of the same group soon after."""
        crowds = (
            ("phys-susy", "running", 25, 1),
            ("phys-top", "activated", 45, 1),
            ("phys-higgs", "running", 6, 8),
            ("perf-muons", "activated", 12, 8),
        )
        for name, status, count, cores in crowds:
            group = GROUPS.index(name)
            begin = self._begin(DAY)
            paths = [
                Path(steps(begin + 5 * i, {status: 4 * HOUR + 60 * i}), self._anywhere(i))
                for i in range(count)
            ]
            yield self._story("group_cap", "user", paths, user=group, group=group, cores=cores)
            small = [Path(steps(begin + 2 * HOUR + 30 * i), self._anywhere(i)) for i in range(3)]
            yield self._story("after_cap", "user", small, user=group + len(GROUPS), group=group)

    def _anywhere(self, number: int) -> int:
        """Return one of a few queues."""
        return self.roles[("late", "bad", "pushes")[number % 3]]

    def _piles(self) -> Iterator[Story]:
        """Queues with many waiting jobs of users: one user's, many users', few; tasks that would go there come later."""
        for begin in (int(0.3 * self.submit), int(0.62 * self.submit)):
            yield from self._pile("own", begin, {35: 14, 36: 2})
            yield from self._pile("crowd", begin, {0: 10, 2: 10, 30: 6})
            yield from self._pile("pile", begin, {0: 40, 1: 12, 31: 8})
            yield from self._pile("virtual", begin, {3: 14, 34: 12})
            yield from self._beside(begin)
        for role, users in (("pile", {0: 30, 3: 20, 32: 10}), ("stay", {2: 36, 33: 4})):
            for user, count in users.items():
                paths = [
                    Path(until(self.end - 20 * i, "activated", 20 * HOUR), self.roles[role])
                    for i in range(count)
                ]
                yield self._story(f"live_{role}", "user", paths, user=user)

    def _beside(self, begin: int) -> Iterator[Story]:
        """Tasks that could go to the piles: to all, to one alone, where data are virtual, where a part of them is."""
        late, only = self.roles["late"], {"taskpriority": 2100}
        for i in range(6):
            at = begin + (4 + 5 * i) * HOUR
            paths = [Path(steps(at + 30 * j), self._anywhere(j)) for j in range(4)]
            yield self._story(
                "beside_pile", "user", paths, user=i % 3, data=self._crowded(), columns=ASKED[i % 3]
            )
        for i in range(3):
            at = begin + (6 + 7 * i) * HOUR
            own = [Path(steps(at, {"activated": 30 * HOUR}), self.roles["own"])]
            yield self._story("only_pile", "user", own, user=35, columns=only)
            paths = [Path(steps(at + 900 + 30 * j), late) for j in range(2)]
            yield self._story("virtual_data", "user", paths, copies="virtual", columns=MEASURED)
            paths = [Path(steps(at + 1800 + 30 * j), late) for j in range(2)]
            data = (self.roles["week"], self.roles["bad"])
            yield self._story("partial_data", "user", paths, data=data, copies="partial")
            wide = (*data, self.roles["starting"])
            for later, platform in ((2700, PATTERN), (4500, {"architecture": None})):
                paths = [Path(steps(at + later + 30 * j), late) for j in range(2)]
                yield self._story("odd_platform", "user", paths, data=wide, columns=platform)
            yield self._story("on_tape", "user", [Path(steps(at + 6300), late)], copies="tape")
        paths = [Path(steps(begin + 5 * HOUR), late)]
        yield self._story("no_whole_copy", "user", paths, copies="none")

    def _crowded(self) -> tuple[int, ...]:
        """Return the queues with piles, and some without."""
        names = ("pile", "crowd", "own", "stuck", "starting", "hospital", "week")
        return tuple(self.roles[name] for name in names)

    def _pile(self, role: str, begin: int, users: dict[int, int]) -> Iterator[Story]:
        """Jobs that wait together for a day and a half and then run one after the other."""
        for user, count in users.items():
            paths = [
                Path(steps(begin + 15 * i, {"activated": 36 * HOUR + 240 * i}), self.roles[role])
                for i in range(count)
            ]
            yield self._story(f"pile_{role}", "user", paths, user=user)


LEAD_IN = 1000
"""Time before the first long runs, in which their task is registered [s]."""


def _bare(path: tuple[tuple[str, int], ...]) -> tuple[tuple[str, int], ...]:
    """Leave statuses out that last no time."""
    following = [*[second for _, second in path[1:]], None]
    return tuple(step for step, after in zip(path, following, strict=True) if step[1] != after)

"""The grid simulator as a simulation of thresholds: its worlds are read once, and judge within their period only."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from brokerlab.archive.store import open_archive
from brokerlab.calibrate import simulation
from brokerlab.calibrate.simulation.capacity import read_capacity
from brokerlab.calibrate.thresholds.outcomes import Period
from brokerlab.errors import ConfigError
from brokerlab.gdpconfig import Config
from brokerlab.gdpconfig.values import digest_of
from brokerlab.rulesets import RuleSetName, differences
from brokerlab.times import duration_us

if TYPE_CHECKING:
    from brokerlab.archive import Archive

MOST_JOBS = 5_000_000
"""Jobs of all worlds that are simulated side by side at most; each takes some 400 bytes."""
VERSION = 8
"""Changes when the simulator's answers do, other than by a switch of its rule sets: kept results are then not found."""


@dataclass(frozen=True)
class GridWhatIf:
    """Simulations of an archive's periods, see :func:`of_archive`; ``worlds`` are read as far as they are needed.

    Another process reads the worlds itself: they are larger than what they are read from. ``digest`` is of the archive, the rules
    that decide and everything the worlds depend on; ``given`` the file of known slots, empty: none.
    """

    path: Path
    periods: tuple[Period, ...]
    drain: str
    options: dict[str, Any]
    digest: str
    given: str = ""
    worlds: dict[Period, simulation.World] = field(default_factory=dict, repr=False, compare=False)

    def __call__(
        self, configs: Sequence[Config], seeds: tuple[int, ...], period: Period
    ) -> Iterator[simulation.Outcome]:
        """Simulate a period under several settings, as many side by side as fit into memory."""
        world = self.world(period)
        together = max(MOST_JOBS // max(len(seeds) * world.jobs.height, 1), 1)
        for first in range(0, len(configs), together):
            yield from simulation.run_each(world, configs[first:][:together], seeds=seeds)

    def __getstate__(self) -> dict[str, Any]:
        """Leave the worlds behind."""
        return {**vars(self), "worlds": {}}

    def world(self, period: Period) -> simulation.World:
        """Return the world of a period, read once."""
        if period not in self.worlds:
            left = timedelta(microseconds=duration_us(self.drain, "drain"))
            self.worlds[period] = simulation.of_archive(
                open_archive(self.path), start=period.start, end=period.end - left, drain=self.drain,
                **self.options,
            )  # fmt: skip
        return self.worlds[period]

    @property
    def cycle(self) -> str:
        """From one brokerage to the next."""
        return str(self.options["cycle"])

    @property
    def conditions(self) -> dict[str, str]:
        """What a proposal says of the simulation, so that a later archive can be simulated under the same conditions."""
        known = {"capacity": self.given} if self.given else {}
        return {"stage": self.options.get("stage", "jobs"), "cycle": self.cycle, **known}

    def sources(self) -> pl.DataFrame:
        """Return ``panda_queue``, ``source`` of the slots in the first world that was read, see ``simulation.capacity``."""
        worlds = [self.worlds[period] for period in self.periods if period in self.worlds]
        return worlds[0].sources if worlds else pl.DataFrame()

    @property
    def n_unmade(self) -> int:
        """Jobs of the worlds that were read that the archive never made."""
        return sum(world.n_unmade for world in self.worlds.values())

    def unknown(self) -> tuple[str, ...]:
        """Return the queues of which only a lower bound of the slots is known in some period."""
        names = {name for period in self.periods for name in self.world(period).unknown}
        return tuple(sorted(names))

    def larger(self, most: float) -> GridWhatIf:
        """Return the simulation with so many times as many slots where they are a lower bound."""
        options = {**self.options, "capacity_most": most}
        return replace(self, options=options, digest=digest_of([self.digest, most]), worlds={})

    def validate(self, period: Period, **options: Any) -> simulation.Validation:
        """Compare a period, as it was set, with what was seen; see :func:`simulation.validate`."""
        return simulation.validate(self.world(period), **options)


def of_archive(
    archive: Archive,
    periods: Sequence[Period],
    *,
    drain: str = "1d",
    cycle: str = "",
    capacity: pl.DataFrame | str | Path | None = None,
    rules: RuleSetName = "document",
    **options: Any,
) -> GridWhatIf:
    """Simulate some periods of an archive.

    The tasks that are judged are made in a period but its last ``drain``, in which they may end: nothing after the period
    is looked at but how long jobs that were made in it took, so that what is chosen on one knows nothing of a later one.
    An empty ``cycle`` is what the archive shows; ``capacity`` are known slots (:func:`.capacity.read_capacity`; null or an empty
    text: none but the archive's); further options are those of :func:`simulation.of_archive`.

    Raises:
        ConfigError: A period that is not longer than ``drain``; no such file of slots.
        DataError: What is given as slots is none.
    """
    left = timedelta(microseconds=duration_us(drain, "drain"))
    short = [
        f"{period.start} to {period.end}" for period in periods if period.end - period.start <= left
    ]
    if short:
        raise ConfigError(f"periods {'; '.join(short)}: must be longer than drain={drain}")
    given = None if isinstance(capacity, str) and not capacity else capacity
    known = None if given is None else read_capacity(given)
    options |= {"cycle": cycle or simulation.cycle_seen(archive, options.get("stage", "jobs"))}
    about = {name: repr(value) for name, value in sorted(options.items())}
    slots = "" if known is None else known.write_csv()
    switches = differences().select("chapter", "switch", rules).rows()
    digest = digest_of([VERSION, switches, archive.digest, drain, about, slots])
    options |= {"capacity": known, "rules": rules}
    source = "a frame, not a file" if isinstance(given, pl.DataFrame) else str(given or "")
    return GridWhatIf(archive.path, tuple(periods), drain, options, digest, source)

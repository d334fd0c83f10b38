"""Make a month of a grid that lives: a million jobs drawn for 400 queues over 30 days, which wait because slots are taken.

``wrong``  settings are planted: a cap lets many tasks starve, so that about half of the jobs drawn are made (the demo of
           ``make report`` is such a world).
``none``   nothing is planted, and nearly all of them are made.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

from benchmarks.sides import Figures, Line, main, million

SIZE = 1_000_000
DAYS, QUEUES = 30, 400
PLANTED = ("wrong", "none")


def make(folder: Path, jobs: int) -> None:
    """Write down how many jobs are to be drawn."""
    (folder / "jobs").write_text(str(jobs), encoding="utf-8")


def live(planted: str, folder: Path) -> Figures:
    """Make one world."""
    from brokerlab import worlds

    made = worlds.synthesise(
        folder / planted,
        jobs=int((folder / "jobs").read_text(encoding="utf-8")),
        days=DAYS,
        queues=QUEUES,
        seed=1,
        lived=True,
        planted=planted,
    )
    return {"jobs": made.counts["jobs"]}


SIDES = {planted: partial(live, planted) for planted in PLANTED}


def lines(figures: dict[str, Figures], size: int) -> list[Line]:
    """Tell how long each takes."""
    return [
        Line(
            what=f"synthesise --lived --planted {planted}, {million(size)} jobs drawn, {QUEUES} queues, {DAYS} days",
            ours=f"{figures[planted]['wall_s']:.0f} s for {figures[planted]['jobs']:,.0f} jobs made",
            against="",
            ratio=None,
            asked="below 300 s, 4 GB",
            cpu_s=figures[planted]["cpu_s"],
            peak_gb=figures[planted]["peak_gb"],
        )
        for planted in PLANTED
    ]


if __name__ == "__main__":
    main("benchmarks.worlds", __doc__)

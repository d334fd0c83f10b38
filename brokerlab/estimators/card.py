"""What a person should know of a saved model before using it: one frozen value, shown and saved."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from markupsafe import escape

from brokerlab.errors import DataError
from brokerlab.estimators.records import UNITS, Quantity

FILE = "model_card.md"
LICENCE = "Apache-2.0"


@dataclass(frozen=True, kw_only=True)
class Measured:
    """What was measured of the bound of one level, on jobs that the model was not fitted to."""

    level: float  # share of jobs that are to stay below their bound
    jobs: int  # it was measured on
    coverage: float  # share of them that did stay below
    # bounds above use, in sum / use, in sum; None: not measured
    over_allocation: float | None = None


@dataclass(frozen=True, kw_only=True)
class Card:
    """A model card (Mitchell et al., Model Cards for Model Reporting, FAT* 2019, doi:10.1145/3287560.3287596)."""

    name: str  # of the estimator
    quantity: Quantity  # what it bounds
    intended_use: tuple[str, ...]  # for what it was made, one sentence each
    trained_on: tuple[str, ...]  # whose jobs, how many, of when, one sentence each
    features: tuple[str, ...]  # what it reads of a job, all known when the job is decided
    measured: tuple[Measured, ...]  # one row per level
    do_not_trust: tuple[str, ...]  # where it should not be believed, one sentence each; never empty
    licence: str = LICENCE  # under which it may be used
    versions: Mapping[str, str]  # library to version that it was made with

    def __post_init__(self) -> None:
        """Refuse a card without limits: every model has some."""
        if not self.do_not_trust:
            raise DataError("model card: do_not_trust is empty; say where the model does not hold")

    @property
    def title(self) -> str:
        """Heading of the card."""
        return f"Model card: {self.name}, {self.quantity} [{UNITS[self.quantity]}]"

    def sections(self) -> dict[str, list[str]]:
        """Return the card part by part: lines of Markdown, by heading."""
        measured = [
            (
                f"{100 * each.level:g} %",
                f"{each.jobs:,}".replace(",", " "),
                f"{100 * each.coverage:.1f} %",
                "not measured" if each.over_allocation is None else f"{each.over_allocation:.3f}",
            )
            for each in self.measured
        ]
        columns = ("level", "jobs", "stayed below their bound", "over-allocation")
        return {
            "Intended use": _points(self.intended_use),
            "Trained on": _points(self.trained_on),
            "Reads of a job": _points([", ".join(self.features)]),
            "Measured": _table(columns, measured),
            "Where not to trust it": _points(self.do_not_trust),
            "Licence": _points([self.licence]),
            "Made with": _table(("library", "version"), sorted(self.versions.items())),
        }

    def to_markdown(self) -> str:
        """Return the card as Markdown; texts are escaped, so data cannot add markup."""
        parts = [f"## {title}\n\n" + "\n".join(lines) for title, lines in self.sections().items()]
        return "\n\n".join([f"# {_plain(self.title)}", *parts]) + "\n"

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, as JSON keeps them."""
        return asdict(self)


def _points(sentences: Iterable[str]) -> list[str]:
    return [f"* {_plain(each)}" for each in sentences]


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    lines = [f"| {' | '.join(map(_plain, cells))} |" for cells in (columns, *rows)]
    return [lines[0], "|" + " --- |" * len(columns), *lines[1:]]


def _plain(text: str) -> str:
    """Return text in one line in which no character means anything to Markdown or HTML."""
    escaped = str(escape(" ".join(text.split())))
    for mark in "\\`*_[]|":
        escaped = escaped.replace(mark, f"&#{ord(mark)};")
    return escaped

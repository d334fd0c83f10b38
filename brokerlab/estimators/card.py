"""What a person should know of a saved model before using it: one frozen value, shown and saved."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from markupsafe import Markup, escape

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
class Section:
    """A heading with sentences, or with a table where there are columns."""

    title: str
    sentences: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()


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

    def sections(self) -> tuple[Section, ...]:
        """Return the card part by part, as pages and the Markdown file show it."""
        return (
            Section(title="Intended use", sentences=self.intended_use),
            Section(title="Trained on", sentences=self.trained_on),
            Section(title="Reads of a job", sentences=(", ".join(self.features),)),
            Section(
                title="Measured",
                columns=("level", "jobs", "stayed below their bound", "over-allocation"),
                rows=tuple(_row(each) for each in self.measured),
            ),
            Section(title="Where not to trust it", sentences=self.do_not_trust),
            Section(title="Licence", sentences=(self.licence,)),
            Section(
                title="Made with",
                columns=("library", "version"),
                rows=tuple(sorted(self.versions.items())),
            ),
        )

    def to_markdown(self) -> str:
        """Return the card as Markdown; texts are escaped, so data cannot add markup."""
        from jinja2 import Environment, StrictUndefined

        made = Environment(
            autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
        )
        made.filters["plain"] = _plain
        return made.from_string(_TEMPLATE).render(title=self.title, sections=self.sections())

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, as JSON keeps them."""
        return asdict(self)


def _row(measured: Measured) -> tuple[str, ...]:
    over = measured.over_allocation
    return (
        f"{100 * measured.level:g} %",
        f"{measured.jobs:,}".replace(",", " "),
        f"{100 * measured.coverage:.1f} %",
        "not measured" if over is None else f"{over:.3f}",
    )


def _plain(text: str) -> Markup:
    """Return text in one line in which no character means anything to Markdown or HTML."""
    escaped = str(escape(" ".join(text.split())))
    for mark in "\\`*_[]|#":
        escaped = escaped.replace(mark, f"&#{ord(mark)};" if mark != "#" else mark)
    return Markup(escaped)  # noqa: S704 - escaped in the lines above


_TEMPLATE = """\
# {{ title|plain }}
{% for section in sections %}

## {{ section.title|plain }}

{% for sentence in section.sentences %}
* {{ sentence|plain }}
{% endfor %}
{% if section.columns %}
| {{ section.columns|map("plain")|join(" | ") }} |
|{{ " --- |" * section.columns|length }}
{% for row in section.rows %}
| {{ row|map("plain")|join(" | ") }} |
{% endfor %}
{% endif %}
{% endfor %}
"""

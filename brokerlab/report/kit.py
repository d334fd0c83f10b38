"""What every report is made of: parameters, blocks over frames, a page; `publish` writes it.

A report is one file: a `Params` (what may be asked), `load` and `study` (library calls, frames, no words) and `page` (a
literal of tables, charts and caveats over these frames). A number is never formatted by a report: a frame holds ``x,
x_lo, x_hi``, a label holds the unit, and the three are written here.
"""

from __future__ import annotations

import ast
import functools
import json
import math
import os
import string
import types
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, ParamSpec, Self, TypeVar

import polars as pl
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import ErrorDetails

from brokerlab import words
from brokerlab.errors import ConfigError, DataError, InsufficientDataError, nearest, shown
from brokerlab.report.needs import Needs
from brokerlab.report.results import RESERVED, Kind
from brokerlab.rulesets import RuleSet, RuleSetName
from brokerlab.times import duration_us

if TYPE_CHECKING:
    import altair as alt

    from brokerlab.archive import Archive
    from brokerlab.gdpconfig import Config
    from brokerlab.gdpconfig.proposal import Proposal

BEFORE_AFTER, GAINS, CERTAINTY = "Before and after", "Who gains, who loses", "How sure"
"""Sections of a page that compares settings, in this order; a report may name others."""
VARIABLE, USUAL = "BROKERLAB_DATA", "../shared/data"
"""Environment variable that names the folder of real data, and the usual one."""
HEADLINE_WORDS = 20  # longest headline
MOST_PERCENT = 9999  # a larger percentage is a change of almost nothing; the files have it


# --- what may be asked ------------------------------------------------------------------------------------------------


def _without_zone(at: datetime | None) -> datetime | None:
    if at is not None and at.tzinfo is not None:
        raise ValueError("times are UTC, leave the zone out")
    return at


Instant = Annotated[datetime | None, AfterValidator(_without_zone)]
"""A time without zone, UTC; null: no bound."""
Share = Annotated[float, Field(ge=0, le=1)]  # a part of a whole [1]


def allowed(check: Callable[[], object]) -> None:
    """Turn what a library call refuses into what a parameter may not be."""
    try:
        check()
    except ConfigError as error:
        raise ValueError(str(error)) from None


def _a_duration(text: str) -> str:
    try:
        duration_us(text)
    except ConfigError as error:
        raise ValueError(str(error).partition(": ")[2]) from None
    return text


Duration = Annotated[str, AfterValidator(_a_duration)]
"""A whole number of s, m, h or d, such as 10m."""
AnyDuration = Annotated[str, AfterValidator(lambda text: text and _a_duration(text))]
"""A `Duration`, or empty text."""


def data_folder(data: str = "") -> Path | None:
    """Return the folder of real data; without a name that of ``BROKERLAB_DATA`` or ``../shared/data``, None if not there."""
    if data:
        folder = Path(data)
        if not folder.is_dir():
            raise DataError(
                f"data={data!r}: no such folder; leave it empty to do without real data"
            )
        return folder
    usual = Path(os.environ.get(VARIABLE, "") or USUAL)
    return usual if usual.is_dir() else None


def now() -> datetime:
    """Return the present second, UTC without zone as all times."""
    return datetime.now(UTC).replace(tzinfo=None, microsecond=0)


class Bare(BaseModel):
    """Parameters without any: how text is converted, and how problems are named."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)
    report: ClassVar[str] = ""
    question: ClassVar[str] = ""

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, given: Any) -> Any:
        """Read text as the command line gives it: lists as ``50,99`` or JSON, empty text as nothing; paths become text."""
        if not isinstance(given, Mapping):
            return given
        given = {n: os.fspath(v) if isinstance(v, os.PathLike) else v for n, v in given.items()}
        return {
            name: _read(value, cls.model_fields[name].annotation)
            if isinstance(value, str) and name in cls.model_fields
            else value
            for name, value in given.items()
        }

    @classmethod
    def checked(cls, values: Mapping[str, Any]) -> Self:
        """Return the parameters."""
        try:
            return cls.model_validate(dict(values))
        except ValidationError as error:
            known = [name for name in cls.model_fields if name != RESERVED]
            raise ConfigError("; ".join(_problem(one, known) for one in error.errors())) from None

    @classmethod
    def of(cls, names: Mapping[str, Any]) -> Self:
        """Return the parameters of a notebook from its names; paths that only exist one folder up are found there."""
        values = {name: names[name] for name in cls.model_fields if name in names}
        for name, entry in cls.model_fields.items():
            value = values.get(name)
            if name != RESERVED and "[path" in (entry.description or "") and value:
                above = Path("..") / str(value)
                if not Path(str(value)).exists() and above.exists():
                    values[name] = above.as_posix()
        return cls.checked(values)


class Basic(Bare):
    """Parameters that every report has; a report adds its own as fields with a description.

    The notebook's tagged cell is `parameters_cell`, ``brokerlab report NAME --parameters`` lists the fields, text is
    converted and every problem is named here. A description that ends in ``[path]`` names a file or folder whose content
    is part of what a run was made from. ``needs`` says what is read of the archive.
    """

    needs: ClassVar[Needs] = Needs()
    archive: str = Field("data/demo", description="archive folder [path]")
    out_dir: str = Field("out", description="where everything goes [path]")


class Common(Basic):
    """Those of a report with intervals by bootstrap."""

    n_boot: int = Field(2000, ge=20, description="bootstrap replicates [1]")
    seed: int = Field(1, ge=0, description="seed of the bootstrap")


class Dated(Common):
    """Those of a report that can look at a part of the archive's time."""

    start: Instant = Field(
        None, description="only from this instant on, empty for all [ISO 8601, UTC]"
    )
    end: Instant = Field(
        None, description="only before this instant, empty for all [ISO 8601, UTC]"
    )

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.start and self.end and self.start > self.end:
            raise ValueError(f"start={self.start}, end={self.end}: the end is before the start")
        return self


class Params(Dated):
    """Those of a report that also re-decides under a rule set."""

    rules: RuleSetName = Field("document", description="rule set, document or production [name]")


def _read(text: str, annotation: Any) -> Any:
    """Turn text into what a field of another type can take."""
    kinds = {typing.get_origin(kind) or kind for kind in _alternatives(annotation)}
    if not text.strip() and types.NoneType in kinds:
        return None
    if kinds & {list, tuple, dict}:
        try:
            value = json.loads(text)
        except json.JSONDecodeError:
            value = None
        if isinstance(value, list | dict):
            return value
        return text if dict in kinds else [item.strip() for item in text.split(",") if item.strip()]
    return text


def _alternatives(annotation: Any) -> Iterator[Any]:
    origin = typing.get_origin(annotation)
    if origin is Annotated:
        yield from _alternatives(typing.get_args(annotation)[0])
    elif origin in (types.UnionType, typing.Union):
        for each in typing.get_args(annotation):
            yield from _alternatives(each)
    else:
        yield annotation


def _problem(error: ErrorDetails, known: Sequence[str]) -> str:
    name = str(error["loc"][0]) if error["loc"] else ""
    if error["type"] == "extra_forbidden":
        return f"unknown parameter {name!r}: {nearest(name, known)}"
    reason = error["msg"].removeprefix("Value error, ").replace("Input should be", "must be", 1)
    place = "".join(f"[{part}]" for part in error["loc"][1:])
    return f"{name}{place}={error['input']!r}: {reason}" if name else reason


def parameters_cell(params: type[Bare]) -> str:
    """Return the tagged cell of a report's notebook: ``name: type = default  # description``."""
    lines = []
    for name, entry in params.model_fields.items():
        default = entry.get_default(call_default_factory=True)
        if isinstance(default, datetime) or (default is None and _is_time(entry.annotation)):
            default = "" if default is None else default.isoformat()
        if isinstance(default, tuple):
            default = list(default)
        shown = (
            json.dumps(default, ensure_ascii=False) if isinstance(default, str) else repr(default)
        )
        if isinstance(default, list | dict):
            shown = repr(ast.literal_eval(repr(default))).replace("'", '"')
        lines.append(f"{name}: {type(default).__name__} = {shown}  # {entry.description}")
    return "\n".join(lines)


def _is_time(annotation: Any) -> bool:
    return datetime in set(_alternatives(annotation))


# --- numbers in text --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Measured:
    """A number with its interval.

    In a template ``{x}`` writes it, ``{x:%}`` as per cent, ``{x:h}`` with a unit, ``{x:#job}`` without the
    interval and with the noun that it counts.
    """

    value: float | None
    lo: float | None = None
    hi: float | None = None

    def __format__(self, spec: str) -> str:
        if spec.startswith("#"):
            return f"{_count(self.value)} {words.plural(self.value, spec[1:])}"
        if spec and (spec[0] == "." or spec[-1] in "dfg"):
            return words.number(self.value, int(spec.strip(".dfg") or 0))
        if spec == "%":
            return words.percent(self.value, self.lo, self.hi)
        text = (
            _count(self.value) if self.lo is None else words.measured(self.value, self.lo, self.hi)
        )
        return words.with_unit(text, spec) if spec and text != words.MISSING else text


def say(template: str, row: Mapping[str, Any] | None = None, **values: Any) -> str:
    """Fill a template; a name with ``_lo`` and ``_hi`` beside it in ``row`` is written with its interval."""
    known = dict(row or {}) | values
    names = {name for _, name, _, _ in string.Formatter().parse(template) if name}
    return template.format_map({name: _put_in_words(known, name) for name in names})


def _put_in_words(known: Mapping[str, Any], name: str) -> Any:
    value = known[name]
    if value is None or (isinstance(value, int | float) and not isinstance(value, bool)):
        return Measured(value, known.get(f"{name}_lo"), known.get(f"{name}_hi"))
    if isinstance(value, str):
        return shown(value)
    return words.instant(value) if isinstance(value, datetime) else value


def _count(value: float | None) -> str:
    """Write a number without interval: as it is where it is short, else with three digits that count.

    Example:
        >>> _count(0.5), _count(12.98), _count(13.0), _count(None)
        ('0.5', '13.0', '13', '–')
    """
    most = words.decimals_for(value)
    exact = (n for n in range(most) if math.isclose(value or 0, round(value or 0, n), abs_tol=5e-7))
    return words.number(value, next(exact, most))


# --- blocks -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """The answer in at most twenty words, with the number that matters."""

    kind: Kind
    sentence: str
    subject: str = ""


@dataclass(frozen=True)
class Number:
    """One of the at most three numbers of the first screen; ``%``: `value` is a share [1]."""

    label: str
    value: float | None
    lo: float | None = None
    hi: float | None = None
    unit: str = ""
    note: str = ""

    @classmethod
    def of(
        cls, row: Mapping[str, Any], name: str, *, label: str, unit: str = "", note: str = ""
    ) -> Number:
        """Take ``name, name_lo, name_hi`` of a row; a name that ends in ``_pct`` holds per cent already."""
        times = 0.01 if name.endswith("_pct") and unit == "%" else 1
        ends = [row.get(f"{name}{end}") for end in ("", "_lo", "_hi")]
        value, lo, hi = (None if end is None else times * end for end in ends)
        return cls(label, value, lo, hi, unit=unit, note=note)

    @property
    def text(self) -> str:
        """The number with its unit, then its interval."""
        text = cell(self.value, self.lo, self.hi, self.unit)
        if text == words.MISSING or not self.unit:
            return text
        return words.with_unit(text, self.unit).replace(" %", f"{words.THIN}%")


@dataclass(frozen=True, kw_only=True)
class Table:
    """A frame shown as a table, and written as Parquet and CSV."""

    name: str  # stable and unique in its part
    frame: pl.DataFrame  # one row per line
    caption: str  # what it says, with the finding where there is one
    # Column to ``Label [unit]``; ``x`` shows ``x (x_lo to x_hi)`` where the frame has the ends. A unit that
    # begins with ``%`` shows shares times 100, unless the column's name ends in ``_pct``.
    columns: Mapping[str, str]
    # below the table: what its words mean; a line that stands in an earlier note of the page is left out
    note: str = ""
    mark: str | None = None  # column with the word that marks a row (worst, limit, current)
    # column with the unit of each row, where rows are quantities: the first column names it, and it is that of
    # the other columns without a unit of their own that hold no whole numbers
    unit: str | None = None
    most: int = 20  # rows shown; the files have all
    # column to the column with its hrefs, relative to the page
    links: Mapping[str, str] = field(default_factory=dict)

    def cells(self) -> list[list[str]]:
        """Return the text of every cell that is shown."""
        return [
            [self._cell(row, key, label) for key, label in self.columns.items()]
            for row in self.frame.head(self.most).iter_rows(named=True)
        ]

    def _cell(self, row: Mapping[str, Any], key: str, label: str) -> str:
        value = row[key]
        if isinstance(value, str):
            of_row = row[self.unit] if self.unit and key == next(iter(self.columns)) else None
            return f"{cell(value)} [{of_row}]" if of_row else cell(value)
        unit = unit_of(label)
        if self.unit and not unit and self.frame.schema[key].is_float():  # counts have no unit
            unit = str(row[self.unit] or "")
        if key.endswith("_pct"):
            unit = unit.replace("%", "per cent")
        return cell(value, row.get(f"{key}_lo"), row.get(f"{key}_hi"), unit)


def unit_of(label: str) -> str:
    """Return the unit in brackets at the end of a label.

    Example:
        >>> unit_of("Kills [% of jobs]"), unit_of("Tasks")
        ('% of jobs', '')
    """
    return label.rpartition("[")[2].rstrip("]") if label.endswith("]") else ""


def cell(value: Any, lo: float | None = None, hi: float | None = None, unit: str = "") -> str:
    """Return the text of a cell; digits are those that the interval supports."""
    if value is None or isinstance(value, str):
        return shown(value or words.MISSING)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, datetime):
        return words.instant(value)
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Sequence):
        return ", ".join(cell(item) for item in value)
    times = 100 if unit.startswith("%") else 1
    value, lo, hi = (None if part is None else times * part for part in (value, lo, hi))
    if unit.startswith(("%", "per cent")) and abs(value) > MOST_PERCENT:
        return f"{'<' if value < 0 else '>'}{words.THIN}{words.number(math.copysign(MOST_PERCENT, value))}"
    if lo is None or hi is None or lo == hi == value:
        return _count(value)
    places = words.decimals_for(value, lo, hi, fewest=0)
    small = unit.startswith("%") and abs(value) < 100  # limits are stated with one decimal
    return words.measured(value, lo, hi, max(places, 1) if small else places)


@dataclass(frozen=True, kw_only=True)
class Chart:
    """A chart function of `brokerlab.charts` over a frame; the finding is its title and alternative text."""

    draw: Callable[..., alt.TopLevelMixin]  # called with the frame and the options
    frame: pl.DataFrame  # aggregated; written as a table, too
    finding: str  # a sentence
    sample: str = ""  # sample size, and what bars and bands mean
    options: Mapping[str, Any] = field(default_factory=dict)  # of the function
    name: str | None = None  # stable and unique in its part; null: that of the function
    note: str = ""  # below the chart: what its words mean

    @property
    def stem(self) -> str:
        """The chart's name."""
        return self.name or getattr(self.draw, "__name__", "chart").removesuffix("_chart")

    def drawn(self) -> Any:
        """Return the chart, without its title: an analyst adds to it, the page has the finding beside it."""
        return self.draw(self.frame, **self.options)


@dataclass(frozen=True, kw_only=True)
class Listing:
    """Text to be copied as it stands, such as commands or statements."""

    caption: str
    text: str


def frames_of(study: Any, prefix: str = "") -> dict[str, pl.DataFrame]:
    """Return the frames among the fields of a study, to be written under their names."""
    fields = vars(study).items()
    return {f"{prefix}{name}": each for name, each in fields if isinstance(each, pl.DataFrame)}


Block = str | Table | Chart | Listing
Sections = Mapping[str, Sequence[Block | None]]
"""Heading to blocks; left out are null blocks, charts and (on the page) tables without rows, headings without any."""


@dataclass(frozen=True)
class Caveat:
    """What cannot be told: `n` is how many rows, jobs or tasks make it so; with 0 it is not said."""

    n: int
    text: str

    @classmethod
    def of(
        cls, n: int, template: str, row: Mapping[str, Any] | None = None, **values: Any
    ) -> Caveat:
        """Fill a template as `say` does; `n` is known in it."""
        return cls(n, say(template, row, **{"n": n, **values}))


@dataclass(frozen=True, kw_only=True)
class Part:
    """One subject of a page that has several; one that is ``folded`` opens on a click, and in print."""

    name: str
    title: str
    verdict: Verdict
    numbers: Sequence[Number] = ()
    chart: Chart | None = None
    sections: Sections = field(default_factory=dict)
    folded: bool = False


@dataclass(frozen=True, kw_only=True)
class Page:
    """A page as data."""

    verdict: Verdict  # the answer as a whole
    numbers: Sequence[Number] = ()  # at most three
    chart: Chart | None = None  # the one that shows why
    # several subjects: one line each, on the first screen; null: made from the parts
    overview: Table | None = None
    sections: Sections = field(default_factory=dict)  # of a page with one subject
    parts: Sequence[Part] = ()  # of one with several, the most consequential first
    caveats: Sequence[Caveat] = ()  # what it cannot tell
    # how it was made, beside what the writer knows (archive, rules, configuration, parameters, versions)
    facts: Mapping[str, str] = field(default_factory=dict)
    archive: Archive | None = None  # what was read
    config: Config | None = None  # the settings it was judged under
    rules: RuleSet | None = None  # the rule set
    window: str = ""  # which part of the archive
    filters: str = ""  # which rows of that part
    digests: Mapping[str, str] = field(default_factory=dict)  # of further inputs
    # by the end of their file's name; an empty one is ``proposal.json``
    proposals: Mapping[str, Proposal] = field(default_factory=dict)
    # frames that are written and not shown; a table shown under the same name is written in its place
    also: Mapping[str, pl.DataFrame] = field(default_factory=dict)
    values: Mapping[str, Any] = field(default_factory=dict)  # further numbers of `results.json`
    synthetic: bool | None = None  # whether the data are generated; null: as the archive says
    # called with the run's folder: writes further files that the page links; null: none
    beside: Callable[[Path], object] | None = None


# --- not enough data is an answer ---------------------------------------------------------------------------------------


def no_answer(reason: str) -> Page:
    """Return the page of a question that these data cannot answer: what is missing, and how many would do."""
    head = reason.partition("; ")[0].rstrip(".")
    if len(head.split()) > HEADLINE_WORDS:
        head = "Too few data: what is missing is said below"
    sections: Sections = {"What is missing": [f"{reason.rstrip('.')}."]}
    sentence = f"{head[:1].upper()}{head[1:]}."
    return Page(verdict=Verdict(kind="no_answer", sentence=sentence), sections=sections)


def unanswered(name: str, title: str, reason: str) -> Part:
    """Return the part of a subject that these data cannot answer."""
    page = no_answer(reason)
    verdict = Verdict(kind="no_answer", subject=title, sentence=page.verdict.sentence)
    return Part(name=name, title=title, verdict=verdict, sections=page.sections)


P = ParamSpec("P")
T = TypeVar("T")


def answers(function: Callable[P, T]) -> Callable[P, T]:
    """Write the page "No answer" where a step of a report has too little data, and let the error go on.

    One argument of the function is the report's parameters.
    """

    @functools.wraps(function)
    def step(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return function(*args, **kwargs)
        except InsufficientDataError as error:
            for given in (*args, *kwargs.values()):
                if isinstance(given, Basic):
                    publish(no_answer(str(error)), given)
            raise

    return step


def publish(page: Page, params: Basic) -> dict[str, Any]:
    """Write charts, tables, proposals, `results.json` and the page into ``params.out_dir``."""
    from brokerlab.report import publishing

    return publishing.publish(page, params)

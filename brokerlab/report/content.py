"""The content of a report page as frozen values, and its way to and from JSON.

A report builds one `Page`; `results.json` keeps it; the HTML is rendered from what is read back, so
the page and the numbers beside it cannot differ. The seven sections stand in the order of the page:
verdict, picture, before and after, gains and losses, how sure, what it cannot tell, how it was made;
a report that compares no two settings gives sections 2 to 5 headings of its own.
"""

import dataclasses
import math
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any, Literal, TypeVar

from brokerlab.errors import ReportError

Kind = Literal["change", "keep", "no_answer", "finding", "failed"]
"""The three answers of a calibration, the answer of a report that proposes nothing, and the run that broke before
it could give one."""

KIND_WORDS: Mapping[str, str] = types.MappingProxyType(
    {
        "change": "Change",
        "keep": "Keep",
        "no_answer": "No answer",
        "finding": "Finding",
        "failed": "Failed",
    }
)
"""How a page and the index name the kinds."""

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """One sentence with numbers and its certainty; `subject` says about which setting."""

    kind: Kind
    sentence: str
    subject: str = ""


@dataclass(frozen=True, kw_only=True)
class Picture:
    """A chart of the run: `chart` is its name in `charts/`, `alt` its finding in words."""

    chart: str
    alt: str
    caption: str = ""


@dataclass(frozen=True, kw_only=True)
class Num:
    """A number of a table with its interval; `decimals` null means what the data support."""

    value: float | None
    lo: float | None = None
    hi: float | None = None
    decimals: int | None = None


@dataclass(frozen=True, kw_only=True)
class Column:
    """One column of a table; the unit is shown in brackets after the label."""

    key: str
    label: str
    unit: str = ""


@dataclass(frozen=True, kw_only=True)
class Link:
    """A file, relative to the page: of the run, or the page of another run."""

    label: str
    href: str
    folder: str = ""


@dataclass(frozen=True, kw_only=True)
class Row:
    """One line of a table; `note` marks it (``worst``, ``limit``) in words and weight."""

    cells: Mapping[str, Num | Link | str | None]
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class Table:
    """A small table; the first column names the rows. `name` is stable and unique in the page."""

    name: str
    caption: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    footnote: str = ""


@dataclass(frozen=True, kw_only=True)
class Listing:
    """Text to be copied as it stands, such as commands or statements, and what it is."""

    caption: str
    text: str


Block = str | Picture | Listing | Table
"""A piece of a section: a paragraph, a chart, a table or text to be copied."""


def blocks(*found: Block | None) -> tuple[Block, ...]:
    """Leave out what has nothing to say."""
    return tuple(block for block in found if block)


HEADINGS: Mapping[str, str] = types.MappingProxyType(
    {
        "picture": "The picture",
        "before_after": "Before and after",
        "gains": "Who gains, who loses",
        "certainty": "How sure",
    }
)
"""Sections of a part and what they are called where the part says nothing else."""


@dataclass(frozen=True, kw_only=True)
class Part:
    """Sections 1 to 5 for one setting; a page about one setting has one part.

    `headings` are other names of its sections, by those of `HEADINGS`.
    """

    name: str
    title: str
    verdict: Verdict
    picture: tuple[Block, ...] = ()
    before_after: tuple[Block, ...] = ()
    gains: tuple[Block, ...] = ()
    certainty: tuple[Block, ...] = ()
    headings: dict[str, str] = field(default_factory=dict)

    @property
    def sections(self) -> tuple[tuple[str, tuple[Block, ...]], ...]:
        """Heading and content of every section that has any, in the order of the page."""
        found = [
            (self.headings.get(name, word), getattr(self, name)) for name, word in HEADINGS.items()
        ]
        return tuple((heading, blocks) for heading, blocks in found if blocks)


@dataclass(frozen=True, kw_only=True)
class Fact:
    """One line of "how it was made"."""

    label: str
    value: str


@dataclass(frozen=True, kw_only=True)
class Made:
    """Provenance: what the report knows, completed by the runner (parameters, versions, time)."""

    facts: tuple[Fact, ...] = ()
    command: str = ""
    links: tuple[Link, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Page:
    """Everything a report page shows.

    Args:
        report: Name of the report as typed, such as ``scout-percentiles``.
        question: What was asked, one sentence.
        verdict: The answer as a whole; the first line of the page and the line of the index.
        parts: One per setting, the most consequential first.
        cannot_tell: Sentences written from what was found, not boilerplate.
        archive: Name of the archive; `window` the days it was asked about.
        synthetic: Whether the data were generated; page and index say so.
        made: Provenance.
    """

    report: str
    question: str
    verdict: Verdict
    parts: tuple[Part, ...] = ()
    cannot_tell: tuple[str, ...] = ()
    archive: str = ""
    window: str = ""
    synthetic: bool = False
    made: Made = field(default_factory=Made)

    def to_json(self) -> dict[str, Any]:
        """Return plain dictionaries, lists, text and numbers."""
        plain: dict[str, Any] = jsonable(dataclasses.asdict(self))
        return plain

    @classmethod
    def from_json(cls, plain: Mapping[str, Any]) -> "Page":
        """Rebuild the page from `to_json`.

        Raises:
            ReportError: A field is missing, unknown or of another kind; says which.
        """
        page: Page = _build(cls, plain, "page")
        return page


def jsonable(value: Any) -> Any:
    """Return the value as JSON can hold it: NaN and infinity become null, times ISO 8601 text.

    Example:
        >>> jsonable({"rank": 75, "loss": float("nan"), "days": (1, 2)})
        {'rank': 75, 'loss': None, 'days': [1, 2]}
    """
    if isinstance(value, Mapping):
        return {str(key): jsonable(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [jsonable(item) for item in value]
    if isinstance(value, datetime | date):
        return value.isoformat()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return jsonable(dataclasses.asdict(value))
    if hasattr(value, "item") and not isinstance(value, str):  # numpy scalars
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _build(kind: Any, value: Any, where: str) -> Any:
    """Build a value of an annotated kind from plain JSON; unions are told apart by their fields."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is Literal:
        return _checked(value, value in arguments, where, f"one of {', '.join(arguments)}")
    if origin in (types.UnionType, typing.Union):
        return _build_union(arguments, value, where)
    if origin is tuple:
        _checked(value, isinstance(value, list | tuple), where, "a list")
        return tuple(_build(arguments[0], item, f"{where}[{i}]") for i, item in enumerate(value))
    if origin in (dict, Mapping):
        _checked(value, isinstance(value, Mapping), where, "an object")
        return {key: _build(arguments[1], item, f"{where}.{key}") for key, item in value.items()}
    if dataclasses.is_dataclass(kind):
        return _build_record(kind, value, where)
    if kind is float:
        return _checked(value, isinstance(value, int | float), where, "a number")
    if kind is type(None):
        return _checked(value, value is None, where, "null")
    return _checked(value, isinstance(value, kind), where, f"{kind.__name__}")


def _build_union(kinds: tuple[Any, ...], value: Any, where: str) -> Any:
    """Build the first alternative that fits."""
    problems = []
    for kind in kinds:
        try:
            return _build(kind, value, where)
        except ReportError as problem:
            problems.append(str(problem))
    raise ReportError(problems[-1])


def _build_record(kind: Any, value: Any, where: str) -> Any:
    """Build a dataclass, naming every missing and unknown field at once."""
    _checked(value, isinstance(value, Mapping), where, "an object")
    hints = typing.get_type_hints(kind)
    fields = dataclasses.fields(kind)
    needed = {f.name for f in fields if _has_no_default(f)}
    missing, unknown = needed - set(value), set(value) - {f.name for f in fields}
    if missing or unknown:
        raise ReportError(
            f"results.json: {where} is not a {kind.__name__}: "
            f"missing {sorted(missing)}, unknown {sorted(unknown)}"
        )
    return kind(**{key: _build(hints[key], item, f"{where}.{key}") for key, item in value.items()})


def _has_no_default(entry: dataclasses.Field[Any]) -> bool:
    """Tell whether a field must be given."""
    return entry.default is dataclasses.MISSING and entry.default_factory is dataclasses.MISSING


def _checked(value: T, ok: bool, where: str, wanted: str) -> T:  # noqa: FBT001
    """Return the value or say what was wanted where."""
    if not ok:
        raise ReportError(f"results.json: {where} is {value!r:.80}, must be {wanted}")
    return value

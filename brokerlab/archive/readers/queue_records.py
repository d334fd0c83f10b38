"""Read queue records as schedconfig and CRIC write them in JSON: one record, a list, or by name (section 5).

Every name of a record that is no column of ``queues`` stays in ``params``: the record's own ``params`` at
the top, as production has them, the rest under ``schedconfig``. The storages of a queue become rows of
``queue_endpoints``. Exports of the database hold the same records as JSON in a column. Nothing is looked up, nothing is run.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import polars as pl

from brokerlab.archive.contracts import polars_schema
from brokerlab.archive.parsing import by_low, low
from brokerlab.archive.readers.records import (
    Batch,
    Record,
    Refusal,
    Rows,
    as_json,
    entries,
    parse,
    unfit,
    words,
)
from brokerlab.frames import doubled

REST = "schedconfig"
"""Name in ``params`` under which the rest of a record stands."""
PER_CORE = "per_core_attr"
"""Item of ``catchall`` (or of ``params``) that says ``maxrss, minrss, maxwdir`` are per core."""

_OWN_NAMES = ("panda_queue", "nickname", "siteid", "panda_resource")
_FROM = {
    "panda_queue": _OWN_NAMES,
    "atlas_site": ("atlas_site", "pandasite", "panda_site"),
    "pandasite_state": ("pandasite_state", "site_state"),
    "resource_type_q": ("resource_type_q", "resource_type"),
    "last_update": ("last_update", "last_modified"),
}
"""Names in a record, best first, of columns that have another name there."""
_PLAIN = [c for c in polars_schema("queues") if c not in ("releases", "params", "ts", "catchall")]
_TELLING = {
    *("status", "type", "maxrss", "maxtime", "maxwdir", "maxinputsize", "corecount", "corepower"),
    *(
        "cloud",
        "catchall",
        "fairsharepolicy",
        "wnconnectivity",
        "capability",
        "jobseed",
        "workflow",
    ),
    *("atlas_site", "resource_type", "releases", "astorages", "copytools"),
    *_OWN_NAMES,
}
"""Names that tell a queue record; three of them must be there."""
_NEEDED = 3
_DATA = "data"
"""Column of the database table ``SCHEDCONFIG_JSON``: the record as JSON ..."""
BESIDE = ("panda_queue", "last_update")
"""... and what is read beside it: whose it is, and when it changed."""
_OTHERS = {"pandaid", "jeditaskid"}
"""Names that only records of jobs and tasks have."""


def looks(data: Any) -> bool:
    """Whether a document is one queue record, a list of them, or an object of them by name."""
    if isinstance(data, list):
        return any(_is_queue(item) and _is_named(item) for item in data)
    inside = any(_is_queue(value) for _, value in entries(data))
    return inside or (_is_queue(data) and _is_named(data))


def _is_queue(value: Any) -> bool:
    names = set(value) if isinstance(value, dict) else set()
    return len(names & _TELLING) >= _NEEDED and not names & _OTHERS


def _is_named(record: Record) -> bool:
    """Whether a record has the name of its queue as schedconfig writes it."""
    return any(isinstance(record.get(name), str) for name in _OWN_NAMES[1:])


def read(data: Any) -> Iterator[Batch]:
    """Read one record, a list of records, or an object that names each of them; rows are numbered by record.

    Yields ``queues``, then ``queue_endpoints`` if a record has storages.

    Source:
        archive.md sections 5 and 6; production-jobs.md for ``per_core_attr``.
    """
    result = Queues()
    for number, (name, record) in enumerate(_items(data), start=1):
        result.add(number, name, record)
    yield from result.batches()


def _items(data: Any) -> list[tuple[str | None, Any]]:
    """Return (name outside of the record, record)."""
    if isinstance(data, list):
        return [(None, item) for item in data]
    if _is_queue(data) and _is_named(data):
        return [(None, data)]
    return [(name, item) for name, item in entries(data)]


class Queues:
    """Rows of ``queues`` and of ``queue_endpoints``, collected record by record."""

    def __init__(self) -> None:
        self.rows = Rows("queues", *_PLAIN, "catchall", "releases", "params")
        self.endpoints = Rows("queue_endpoints", *polars_schema("queue_endpoints"))
        self.per_core = self.renamed = 0
        self.rest: set[str] = set()

    def add(self, number: int, name: str | None, record: Any) -> None:
        """Add one record or refuse it with all that is wrong in it."""
        key = None if name is None else f"panda_queue={name}"
        if reason := unfit(record):
            self.rows.refuse(number, key, reason)
            return
        values = _Told(record)
        row = values.row(name)
        if values.problems:
            key = f"panda_queue={row['panda_queue']}"
            self.rows.refuse(number, key, "; ".join(values.problems))
            return
        self.renamed += name is not None and row["panda_queue"] != name
        self.per_core += _to_slot(row, values.own)
        self.rest |= set(values.rest)
        self.rows.add(number, *(row[column] for column in self.rows.columns))
        self._add_storages(number, str(row["panda_queue"]), values.storages)

    def _add_storages(self, number: int, queue: str, storages: Record) -> None:
        """Add the rows of one queue; roles are ``read_lan`` and ``write_lan``, with a scope or without."""
        for role, names in storages.items():
            way, direction = ("write", "output") if role.startswith("write") else ("read", "input")
            if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
                reason = f"astorages.{role} is {words(names)}, allowed: a list of endpoints"
                self.endpoints.refuse(number, f"panda_queue={queue}", reason)
                continue
            scope = role.removeprefix(f"{way}_lan").removeprefix("_") or "default"
            for order, name in enumerate(names, start=1):
                row = {
                    "panda_queue": queue,
                    "ddm_endpoint_name": name,
                    "direction": direction,
                    "scope": scope,
                    f"order_{way}": order,
                    "is_default": order == 1,
                }
                self.endpoints.add(number, *(row.get(column) for column in self.endpoints.columns))

    def batches(self) -> Iterator[Batch]:
        """Yield ``queues`` with what is to be told, and ``queue_endpoints`` if a record has storages."""
        notes = []
        if self.per_core:
            notes.append(
                f"{self.per_core} queue(s) with {PER_CORE}: maxrss, minrss and maxwdir times corecount"
            )
        if self.renamed:
            notes.append(
                f"{self.renamed} record(s) stand under another name than their own, which counts"
            )
        if self.rest:
            notes.append(
                f"{len(self.rest)} name(s) without a column of their own kept in params.{REST}: "
                + ", ".join(sorted(self.rest)[:8])
                + ("..." if len(self.rest) > 8 else "")
            )
        yield self.rows.batch(*notes)
        if self.endpoints.numbers or self.endpoints.refused:
            yield self.endpoints.batch(
                "queue_endpoints: read_lan is input, write_lan is output, numbered from 1, the first is the "
                "default; other roles stay in params; is_local is not in a queue record"
            )


class _Told:
    """What one record says, name by name; what was not asked for is the rest."""

    def __init__(self, record: Record) -> None:
        """Take the names in lower case, as the columns are."""
        items = [(low(name), value) for name, value in record.items()]
        self.rest = {name: value for name, value in items if not _is_missing(value)}
        self.problems: list[str] = []
        self.own: Record = {}
        self.storages: Record = {}
        names = [name for name, _ in items]
        if twice := doubled(names):
            self.problems.append(f"names occur twice: {', '.join(twice)}")

    def row(self, name: str | None) -> Record:
        """Return the columns of ``queues``; ``name`` stands for a record without one of its own."""
        self.own = self._own_params()
        row = {column: self._scalar(column) for column in _PLAIN}
        if row["panda_queue"] is None:
            row["panda_queue"] = name
        if row["max_io_intensity"] is None:
            row["max_io_intensity"] = self.own.pop("max_io_intensity", None)
        row["catchall"] = self._names("catchall", joined=True)
        row["releases"] = self._names("releases", joined=False)
        self.storages = self._lan_storages()
        row["params"] = self._params()
        return row

    def _scalar(self, column: str) -> Any:
        """Take one value; an object, a list, or a truth value for a text is a problem."""
        for name in _FROM.get(column, (column,)):
            if name not in self.rest:
                continue
            value = self.rest.pop(name)
            is_text = polars_schema("queues")[column] == pl.String()
            # the chapter reads any maxwdir that is no number
            nested = isinstance(value, list | dict) and column != "maxwdir"
            if nested or (is_text and isinstance(value, bool)):
                self.problems.append(
                    f"{name} is {words(value)}, allowed: {'text' if is_text else 'one value'}"
                )
                return None
            return value
        return None

    def _names(self, column: str, *, joined: bool) -> str | None:
        """Take a list of names: as comma list, or as JSON."""
        value = self.rest.pop(column, None)
        if isinstance(value, str) and joined:
            return value
        if isinstance(value, str):
            value = _parse(value) if value.lstrip().startswith("[") else _list(value)
        if value is None:
            return None
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            self.problems.append(f"{column} is {words(value)}, allowed: a list of names")
            return None
        return ",".join(value) if joined else json.dumps(value)

    def _own_params(self) -> Record:
        """Take the queue's extra parameters."""
        value = self.rest.pop("params", {})
        result = _parse(value) if isinstance(value, str) else value
        if not isinstance(result, dict):
            self.problems.append(f"params is {words(value)}, allowed: names and values")
            return {}
        if REST in result:
            self.problems.append(f"params has the name '{REST}', which is reserved; rename it")
        return dict(result)

    def _lan_storages(self) -> Record:
        """Take the storages read and written over LAN; other roles stay where they are."""
        value = self.rest.pop("astorages", {})
        if not isinstance(value, dict):
            self.problems.append(
                f"astorages is {words(value)}, allowed: a list of endpoints per role"
            )
            return {}
        lan = {role: v for role, v in value.items() if role.startswith(("read_lan", "write_lan"))}
        if others := {role: v for role, v in value.items() if role not in lan}:
            self.rest["astorages"] = others
        if not value and isinstance(self.rest.get("ddm"), str):  # the form before astorages
            names = _list(self.rest.pop("ddm"), "")
            lan = {"read_lan": names, "write_lan": names}
        return lan

    def _params(self) -> str | None:
        """Write what is left as JSON, in the order of the names."""
        result = {**self.own, REST: self.rest} if self.rest else self.own
        text = as_json(result) if result else None
        if result and text is None:
            self.problems.append("NaN or Infinity among the names kept in params, allowed: numbers")
        return text


def _is_missing(value: Any) -> bool:
    """Whether a value says nothing: null, blanks, an empty list or object."""
    return value is None or value in ([], {}) or (isinstance(value, str) and not value.strip())


def _parse(value: str) -> Any:
    """Parse JSON inside of a text; a text that is none stays."""
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


def _list(value: str, also: str = "|") -> list[str]:
    """Cut a list that is written as text."""
    parts = (value.replace(also, ",") if also else value).split(",")
    return [part.strip() for part in parts if part.strip()]


def _to_slot(row: Record, own: Record) -> bool:
    """Multiply limits that are per core by the cores; an extra parameter wins over ``catchall``."""
    per_core = any(item.startswith(PER_CORE) for item in (row["catchall"] or "").split(","))
    cores = _whole(row["corecount"])
    if not own.get(PER_CORE, per_core) or not cores or cores < 0:
        return False
    for column in ("maxrss", "minrss", "maxwdir"):
        number = _whole(row[column])
        row[column] = row[column] if number is None else number * cores
    return True


def _whole(value: Any) -> int | None:
    """Read a whole number; None for anything else."""
    if isinstance(value, str) and value.strip().isdecimal():
        return int(value) if len(value) < 20 else None  # no limit is longer
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def is_export(table: str, names: Iterable[str]) -> bool:
    """Whether columns are those of an export with the record of a queue as JSON."""
    has = by_low(names)
    return table == "queues" and _DATA in has and not {"type", "status"} & has.keys()


def expanded(batch: Batch) -> Iterator[Batch]:
    """Turn rows of CSV or Parquet that hold a queue record as JSON into those of its tables; pass all others on.

    ``last_update`` of the row is that of its queue.

    Source:
        archive.md section 5.
    """
    names = by_low(batch.frame.columns)
    if not is_export(batch.table, names) or batch.frame.schema[names[_DATA]] != pl.String:
        yield batch
        return
    result = Queues()
    result.rows.refused += batch.refused.rows()
    texts = [_texts(batch.frame, names.get(name)) for name in (*BESIDE, _DATA)]
    for number, name, time, data in zip(batch.rows, *texts, strict=True):
        record = _parse_record(number, name, data)
        if isinstance(record, tuple):
            result.rows.refuse(*record)
        else:
            result.add(number, name, {**record, "last_update": time} if time else record)
    for one in result.batches():
        yield replace(one, notes=batch.notes + one.notes)


def _texts(frame: pl.DataFrame, name: str | None) -> list[str | None]:
    """Return a column as text; nulls if it is absent."""
    return [None] * len(frame) if name is None else frame[name].cast(pl.String).to_list()


def _parse_record(number: int, name: str | None, data: str | None) -> dict[str, Any] | Refusal:
    """Parse the record of a row, or say why that cannot be done."""
    where = None if name is None else f"panda_queue={name}"
    try:
        record = parse(data or "null")
    except (ValueError, RecursionError) as error:
        return number, where, f"data is no JSON ({str(error)[:80]}): {words(data)}"
    if not isinstance(record, dict):
        return number, where, f"data is no record of names and values: {words(record)}"
    return record

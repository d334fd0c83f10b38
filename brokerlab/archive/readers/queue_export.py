"""Read exports of the database table ``SCHEDCONFIG_JSON``: a queue record as JSON in the column ``data``."""

from collections.abc import Iterable, Iterator
from typing import Any

import polars as pl

from brokerlab.archive.readers.batch import Batch
from brokerlab.archive.readers.queue_records import Queues
from brokerlab.archive.readers.records import Refusal, parse, words

_NAME, _DATA, _UPDATED = "panda_queue", "data", "last_update"


def is_export(table: str, names: Iterable[str]) -> bool:
    """Whether columns are those of an export with the record of a queue as JSON."""
    low = {name.strip().lower() for name in names}
    return table == "queues" and _DATA in low and not {"type", "status"} & low


def expanded(batch: Batch) -> Iterator[Batch]:
    """Turn rows of CSV or Parquet that hold a queue record as JSON into those of its tables; pass all others on.

    ``last_update`` of the row is that of its queue.

    Source:
        archive.md section 5.
    """
    names = {name.strip().lower(): name for name in batch.frame.columns}
    if not is_export(batch.table, names) or batch.frame.schema[names[_DATA]] != pl.String:
        yield batch
        return
    found = Queues()
    found.rows.refused += batch.refused.rows()
    text = {name: _texts(batch.frame, names.get(name)) for name in (_NAME, _DATA, _UPDATED)}
    for number, name, data, time in zip(batch.rows, *text.values(), strict=True):
        record = _record(number, name, data)
        if isinstance(record, tuple):
            found.rows.refuse(*record)
        else:
            found.add(number, name, {**record, _UPDATED: time} if time else record)
    yield from found.batches()


def _texts(frame: pl.DataFrame, name: str | None) -> list[str | None]:
    """Return a column as text; nulls if it is absent."""
    return [None] * len(frame) if name is None else frame[name].cast(pl.String).to_list()


def _record(number: int, name: str | None, data: str | None) -> dict[str, Any] | Refusal:
    """Parse the record of a row, or say why that cannot be done."""
    where = None if name is None else f"panda_queue={name}"
    try:
        record = parse(data or "null")
    except (ValueError, RecursionError) as error:
        return number, where, f"data is no JSON ({str(error)[:80]}): {words(data)}"
    if not isinstance(record, dict):
        return number, where, f"data is no record of names and values: {words(record)}"
    return record

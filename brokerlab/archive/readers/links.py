"""Read the metrics of links between sites: the nested JSON that PanDA loads, and flat tables of one row per link (section 7).

Every value becomes a row of ``network_matrix`` under the key that the brokerage reads, with the time at
which it was measured. What looks odd is kept and told: the brokerage's own age limit decides.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl

from brokerlab.archive.parsing import low
from brokerlab.archive.readers import columnar, delimited
from brokerlab.archive.readers.detect import LINK_KEYS, Detected
from brokerlab.archive.readers.records import Batch, Rows, Told, entries, no_record, words
from brokerlab.errors import SchemaError

_PARTS = {"closeness", "mbps", "files", "bytes"}
_ABOUT = {"src", "dst"}
_FAR = timedelta(days=1)
"""A time this far from the middle one is told."""
_SHOWN = 3
_MBPS_TIME = "mbps_timestamp"


def looks(data: Any) -> bool:
    """Whether a document is an object of links ``SRC:DST``."""
    inside = entries(data)
    return any(":" in name and isinstance(v, dict) and set(v) & _PARTS for name, v in inside)


def read(data: Any) -> Iterator[Batch]:
    """Read an object of links by ``SRC:DST`` into one batch of ``network_matrix``, rows numbered by link.

    ``closeness`` becomes ``AGIS_closeness``; ``mbps.<system>.<window>`` becomes ``<system>_mbps_<window>``
    (MB/s); ``files.queued`` and ``files.done`` become ``<activity>_queued``, ``_done_1h``, ``_done_6h``
    (files); ``bytes.queued`` becomes ``<activity>_queued_bytes``. Totals over activities are checked against
    their sum, which replaces them. A value without a time, or that is no number, is refused by the contract.

    Source:
        archive.md section 7; network-weight.md 2.
    """
    links = _Links()
    for number, (name, record) in enumerate(entries(data), start=1):
        links.add(number, name, record)
    yield links.rows.batch(*links.notes())


@dataclass
class _Links:
    """Rows of ``network_matrix``, collected link by link."""

    rows: Rows = field(
        default_factory=lambda: Rows("network_matrix", "src", "dst", "key", "value", "ts")
    )
    times: list[tuple[str, Any]] = field(default_factory=list)
    idle: int = 0
    totals: int = 0
    silent: int = 0
    unknown: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    _now: tuple[int, str, str] = (0, "", "")

    def add(self, number: int, name: str, record: Any) -> None:
        """Add the values of one link, or say what is wrong with it."""
        ends = name.split(":")
        if len(ends) != 2 or not all(end.strip() for end in ends):
            self.rows.refuse(number, f"link={name}", "the name of a link is not SRC:DST")
            return
        self._now = (number, ends[0].strip(), ends[1].strip())
        if not isinstance(record, dict):
            self._refuse("", no_record(record))
            return
        written = (record.get("src", ends[0]), record.get("dst", ends[1]))
        if written != tuple(ends):
            self._refuse(
                "", f"src, dst inside of it are {words(list(written))}; allowed: as its name"
            )
            return
        before = len(self.rows.numbers) + len(self.rows.refused)
        for part, value in record.items():
            if part in _PARTS:
                getattr(self, f"_{part}")(value)
            elif part not in _ABOUT:
                self.unknown[part] += 1
        self.silent += len(self.rows.numbers) + len(self.rows.refused) == before

    def _refuse(self, key: str, reason: str) -> None:
        number, src, dst = self._now
        where = f"src={src}, dst={dst}" + (f", key={key}" if key else "")
        self.rows.refuse(number, where, reason)

    def _put(self, key: str, value: Any, ts: Any) -> None:
        if isinstance(value, list | dict):
            self._refuse(key, f"value is {words(value)}, allowed: a number")
            return
        number, src, dst = self._now
        time = ts if ts is None or isinstance(ts, str) else words(ts)
        self.rows.add(number, src, dst, key, value, time)
        self.times.append((f"{src}:{dst}", ts))

    def _objects(self, part: str, value: Any) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the objects inside a part; refuse what is none."""
        if not isinstance(value, dict):
            self._refuse(part, no_record(value))
            return
        for name, inside in value.items():
            if isinstance(inside, dict):
                yield name, inside
            else:
                self._refuse(f"{part}.{name}", no_record(inside))

    def _closeness(self, value: Any) -> None:
        if isinstance(value, dict):
            self._put("AGIS_closeness", value.get("latest"), value.get("timestamp"))
        elif value is not None:
            self._put("AGIS_closeness", value, None)

    def _mbps(self, value: Any) -> None:
        for system, windows in self._objects("mbps", value):
            when = windows.get("timestamp")
            numbers = {window: value for window, value in windows.items() if window != "timestamp"}
            for window, number in numbers.items():
                self._put(f"{system}_mbps_{window}", number, when)
            if not numbers:
                self.idle += 1
                self.times.append((":".join(self._now[1:]), when))

    def _files(self, value: Any) -> None:
        if not isinstance(value, dict):
            self._refuse("files", no_record(value))
            return
        queued = self._queued(value.get("queued", {}), "files.queued", "_queued")
        sums = {"queued-total": queued, "done-total-1h": [], "done-total-6h": []}
        for activity, counts in self._objects("files.done", value.get("done", {})):
            for window, number in counts.items():
                if window != "timestamp":
                    self._put(f"{activity}_done_{window}", number, counts.get("timestamp"))
                    sums.setdefault(f"done-total-{window}", []).append(number)
        self._check_totals("files", value, sums, {"queued", "done"})

    def _bytes(self, value: Any) -> None:
        if not isinstance(value, dict):
            self._refuse("bytes", no_record(value))
            return
        queued = self._queued(value.get("queued", {}), "bytes.queued", "_queued_bytes")
        self._check_totals("bytes", value, {"queued-total": queued}, {"queued"})

    def _queued(self, value: Any, part: str, suffix: str) -> list[Any]:
        """Put what waits per activity; return the numbers."""
        result = []
        for activity, counts in self._objects(part, value):
            self._put(f"{activity}{suffix}", counts.get("latest"), counts.get("timestamp"))
            result.append(counts.get("latest"))
        return result

    def _check_totals(
        self, part: str, value: dict[str, Any], sums: dict[str, list[Any]], read: set[str]
    ) -> None:
        """Compare totals with the sum of the activities; refuse those that say something else."""
        for name, total in value.items():
            if name in read:
                continue
            if name not in sums:
                self.unknown[f"{part}.{name}"] += 1
                continue
            numbers = [n for n in sums[name] if isinstance(n, int | float)]
            if total == sum(numbers):
                self.totals += 1
            else:
                reason = f"total {words(total)} is not the sum of its activities, {sum(numbers)}"
                self._refuse(f"{part}.{name}", reason)

    def notes(self) -> Told:
        """Say what was left out and what looks odd."""
        result = []
        if self.totals:
            result.append(f"{self.totals} total(s) equal the sum of their activities: not kept")
        if self.silent:
            result.append(f"{self.silent} link(s) hold no value: no row")
        if self.idle:
            result.append(f"{self.idle} mbps object(s) hold a time and no value: no row")
        result += [f"{name}: not read, in {n} link(s)" for name, n in self.unknown.items()]
        return tuple(result + self._far_times() + self._mirrored())

    def _far_times(self) -> list[str]:
        """Tell times far from the others."""
        read = [(link, _time(ts)) for link, ts in self.times]
        known = sorted(ts for _, ts in read if ts is not None)
        if not known:
            return []
        middle = known[len(known) // 2]
        far = [
            f"{link} {ts.isoformat()}"
            for link, ts in read
            if ts is not None and abs(ts - middle) > _FAR
        ]
        if not far:
            return []
        shown = dict.fromkeys(far)
        note = f"{len(far)} time(s) are more than a day from the others"
        return [
            f"{note} ({middle.isoformat()}), kept as they are: {', '.join(list(shown)[:_SHOWN])}"
        ]

    def _mirrored(self) -> list[str]:
        """Tell links that repeat all values of another one, as sites with shared storage do."""
        values: dict[tuple[str, str], list[tuple[str, str]]] = defaultdict(list)
        for src, dst, key, value, _ in zip(*self.rows.columns.values(), strict=True):
            if key != "AGIS_closeness":
                values[src, dst].append((key, str(value)))
        links = [frozenset(result) for result in values.values()]
        repeated = len(links) - len(set(links))
        note = f"{repeated} of {len(links)} link(s) with traffic repeat all values of another one"
        return [f"{note} (shared storage, or few values): kept"] if repeated else []


def _time(value: Any) -> datetime | None:
    """Read a time for a comparison; None where the contract will have to judge."""
    try:
        return datetime.fromisoformat(value).replace(tzinfo=None)
    except (TypeError, ValueError):
        return None


# --- flat tables ------------------------------------------------------------------------------------------------------


def read_table(path: Path, detected: Detected) -> Iterator[Batch]:
    """Read Parquet or CSV with ``src, dst``, columns of ``detect.LINK_KEYS`` and ``mbps_timestamp`` (the time of the three ``mbps``).

    Yields ``network_matrix``, one row per value that is there, numbered by link.

    Source:
        archive.md section 7.
    """
    for piece in (delimited if detected.delimiter else columnar).read(path, detected):
        named = piece.frame.rename(low)
        table, notes = _long(named.with_columns(piece.rows.alias("row")))
        yield Batch("network_matrix", table.drop("row"), table["row"], piece.refused, notes)


def _long(links: pl.DataFrame) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """Turn columns into rows; values without a time of their own get the usual one of the table."""
    metrics = [name for name in LINK_KEYS if name in links.columns]
    nested = [name for name in metrics if links.schema[name].is_nested()]
    if nested:
        raise SchemaError(
            "\n".join(
                f"network_matrix.{n}: found type {links.schema[n]}, allowed: a number"
                for n in nested
            )
        )
    if _MBPS_TIME not in links.columns:
        links = links.with_columns(pl.lit(None, dtype=pl.String).alias(_MBPS_TIME))
    links = links.with_columns(
        pl.col(*metrics, _MBPS_TIME).cast(pl.String).str.strip_chars().replace("", None)
    )
    usual = links[_MBPS_TIME].drop_nulls().mode(maintain_order=True)
    when = usual[0] if len(usual) else None
    own = pl.col("key").str.starts_with("dashb_mbps")
    table = (
        links.unpivot(
            metrics,
            index=["src", "dst", "row", _MBPS_TIME],
            variable_name="key",
            value_name="value",
        )
        .drop_nulls("value")
        .with_columns(pl.col("key").replace_strict(LINK_KEYS))
        .select(
            "src",
            "dst",
            "key",
            "value",
            "row",
            pl.when(own).then(_MBPS_TIME).otherwise(pl.lit(when)).alias("ts"),
        )
        .sort("row", maintain_order=True)
    )
    note = "closeness, files and bytes have no time in a flat table"
    notes = [f"{note}; the most frequent mbps_timestamp ({when}) stands for it"]
    silent = len(links) - table["row"].n_unique()
    if silent:
        notes.append(f"{silent} link(s) hold no value: no row")
    return table, tuple(notes)

"""The split rule of a task: ``US=2,NF=3,NG=14``, read, edited, and turned into columns.

A rule is a comma-separated list of ``XX=value``. The value is the digits after the equals sign and the
first occurrence of a tag wins. Items that are not of that form (the further numbers of the list-valued
``AN=1,2,3``) are passed over.

Source: docs/rules/scouts.md 1 and 15.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, partial
from types import MappingProxyType

import polars as pl

from brokerlab.archive.contracts.tasks import INT64_DIGITS, split_rule_digits, split_rule_pattern
from brokerlab.units import GB

SCOUT_TAGS = ("US", "SS", "NF", "NE", "NG", "MF", "TN", "LI", "IL", "MC")
"""Tags that the parameters and the exhausted checks read."""

ALLOW_INPUT_LAN = MappingProxyType({1: "use", 2: "only"})  # meaning of the numbers of ``IL``


@cache
def _compiled(tag: str) -> re.Pattern[str]:
    return re.compile(split_rule_pattern(tag))


def tag_value(splitrule: str | None, tag: str) -> int | None:
    """Return the number behind one tag."""
    found = _compiled(tag).search(splitrule or "")
    if found is None or len(found[1].lstrip("-")) > INT64_DIGITS:
        return None
    return int(found[1])


def tag_column(tag: str, splitrule: str = "splitrule") -> pl.Expr:
    """Return the expression of one tag's number: :func:`tag_value` of a whole column."""
    digits = split_rule_digits(pl.col(splitrule), tag)
    return digits.cast(pl.Int64, strict=False).alias(tag)


def tag_columns(tags: Iterable[str] = SCOUT_TAGS, splitrule: str = "splitrule") -> list[pl.Expr]:
    """Return :func:`tag_column` of several tags, to be given to ``select`` or ``with_columns``."""
    return [tag_column(tag, splitrule) for tag in tags]


@dataclass(frozen=True)
class SplitRule:
    """A task's split rule in words; null means that the tag is absent.

    Attributes:
        usescout: Scouts are to be used, exactly ``US=2`` (``US=3``, after the avalanche, does not count).
        ispostscout: ``US=3``.
        nfilesperjob: Files per job: ``NF``, times ``EI // DY`` if ``EI > DY > 0``.
        neventsperjob: Events per job.
        ngbperjob: Input per job [GB].
        nmaxfilesperjob: Most files per job.
        tgtmaxoutputforng: Target size of the largest output [GB].
        scoutsuccessrate: Required success rate of the scouts [tenths].
        mincpuefficiency: Least CPU efficiency [%].
        uselocalio: Copy to scratch is forced: ``LI`` present and not 0.
        allowinputlan: Input over the local network: ``use``, ``only`` or null.
        mergeoutput: Output is merged: ``MO`` present.
        useexhausted: The task may be exhausted: ``UX`` present.
        disableautofinish: The task is not finished by itself: ``DF`` present.
        t1weight: Weight of tier-1 queues, may be negative; 0 if absent.
        dynamicnumevents: Granularity of a dynamic number of events.
        neventsperinput: Events per input file.
    """

    usescout: bool
    ispostscout: bool
    nfilesperjob: int | None
    neventsperjob: int | None
    ngbperjob: int | None
    nmaxfilesperjob: int | None
    tgtmaxoutputforng: int | None
    scoutsuccessrate: int | None
    mincpuefficiency: int | None
    uselocalio: bool
    allowinputlan: str | None
    mergeoutput: bool
    useexhausted: bool
    disableautofinish: bool
    t1weight: int
    dynamicnumevents: int | None
    neventsperinput: int | None

    @property
    def maxsizeperjob(self) -> int | None:
        """Input per job [bytes], null if ``NG`` is absent."""
        return None if self.ngbperjob is None else self.ngbperjob * GB


def _files_per_job(files: int | None, dynamic: int | None, per_input: int | None) -> int | None:
    """Return files per job: with a dynamic number of events a file counts once for each of its parts."""
    if files is None or not dynamic or per_input is None or per_input <= dynamic:
        return files
    return files * (per_input // dynamic)


def parse(splitrule: str | None) -> SplitRule:
    """Read a split rule (docs/rules/scouts.md 1 and 15)."""
    value = partial(tag_value, splitrule)
    lan = value("IL")
    return SplitRule(
        usescout=value("US") == 2,
        ispostscout=value("US") == 3,
        nfilesperjob=_files_per_job(value("NF"), value("DY"), value("EI")),
        neventsperjob=value("NE"),
        ngbperjob=value("NG"),
        nmaxfilesperjob=value("MF"),
        tgtmaxoutputforng=value("TN"),
        scoutsuccessrate=value("SS"),
        mincpuefficiency=value("MC"),
        uselocalio=bool(value("LI")),
        allowinputlan=None if lan is None else ALLOW_INPUT_LAN.get(lan),
        mergeoutput=value("MO") is not None,
        useexhausted=value("UX") is not None,
        disableautofinish=value("DF") is not None,
        t1weight=value("TW") or 0,
        dynamicnumevents=value("DY"),
        neventsperinput=value("EI"),
    )


def _items(splitrule: str | None) -> list[str]:
    return splitrule.split(",") if splitrule else []


def _has_tag(item: str, tag: str) -> bool:
    return item.lstrip(" \t").startswith(f"{tag}=")


def remove_tag(splitrule: str | None, tag: str) -> str:
    """Delete every item of one tag; the others keep their order (docs/rules/scouts.md 15, ``split_rule_edit``)."""
    return ",".join(item for item in _items(splitrule) if not _has_tag(item, tag))


def set_tag(splitrule: str | None, tag: str, value: int) -> str:
    """Replace one tag's number in place, every time it occurs, or append it.

    Source: docs/rules/scouts.md 15, ``split_rule_edit``.
    """
    new = f"{tag}={value}"
    items = _items(splitrule)
    if not any(_has_tag(item, tag) for item in items):
        return ",".join([*items, new])
    return ",".join(new if _has_tag(item, tag) else item for item in items)

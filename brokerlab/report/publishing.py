"""The one writer of a run: charts, tables, proposals, `results.json`, and the page that is rendered from it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import polars as pl

from brokerlab.archive import approximate
from brokerlab.charts import theme
from brokerlab.report import rendering
from brokerlab.report.kit import (
    Bare,
    Basic,
    Block,
    Chart,
    Listing,
    Page,
    Part,
    Sections,
    Table,
    unit_of,
)
from brokerlab.report.made import command, typed, versions
from brokerlab.report.results import RESERVED, jsonable, write_json
from brokerlab.report.runs import UNFINISHED

ROWS_IN_RESULTS = 2000
"""Tables with at most so many rows are also written as CSV, and stand in `results.json`."""
FORMULA = r"^[=+\-@\t\r]"  # texts that a spreadsheet would take for a formula


def publish(page: Page, params: Basic) -> dict[str, Any]:
    """Write everything of a run into ``params.out_dir``, and return what `results.json` holds.

    These are ``report``, ``page`` (what is shown), ``numbers`` (rows of every frame by name), ``values``, ``digests``,
    ``derived`` (tables made from the archive's jobs), ``parameters``.
    """
    folder = Path(params.out_dir)
    folder.mkdir(parents=True, exist_ok=True)
    if page.beside:
        page.beside(folder)
    frames = _frames(page)
    write_tables(folder / "tables", frames)
    for part, chart in _charts(page):
        titled = chart.drawn().properties(title=theme.title(chart.finding, chart.sample))
        theme.save(titled, folder / "charts", _name(part, chart.stem))
    for name, proposal in page.proposals.items():
        path = folder / f"proposal{f'-{name}' if name else ''}.json"
        path.write_text(proposal.to_json(), encoding="utf-8")
    results = results_of(page, params, frames)
    write_json(folder / "results.json", results)
    # else the runner, whose folder it is, knows more, and writes the page
    if folder.suffix != UNFINISHED:
        (folder / "index.html").write_text(rendering.render(results, folder), encoding="utf-8")
    return results


def results_of(
    page: Page, params: Bare, frames: Mapping[str, pl.DataFrame] | None = None
) -> dict[str, Any]:
    """Return what `results.json` holds of a page."""
    frames = frames or {}
    results: dict[str, Any] = jsonable(
        {
            "report": params.report,
            "page": _shown(page, params),
            "numbers": {n: f.to_dicts() for n, f in frames.items() if f.height <= ROWS_IN_RESULTS},
            "values": page.values,
            "digests": _digests(page),
            "derived": page.archive.derived if page.archive else (),
            "parameters": _values(params),
        }
    )
    return results


def write_tables(folder: Path, frames: Mapping[str, pl.DataFrame]) -> None:
    """Write tables as Parquet, small ones as CSV too, in which no text is taken for a formula."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, frame in frames.items():
        frame.write_parquet(folder / f"{name}.parquet")
        if frame.height <= ROWS_IN_RESULTS:
            _flat(frame).write_csv(folder / f"{name}.csv")


def _flat(frame: pl.DataFrame) -> pl.DataFrame:
    """Return the frame as CSV can hold it: nested columns as JSON, formulas behind an apostrophe."""
    nested = [name for name, kind in frame.schema.items() if kind.is_nested()]
    columns = [
        pl.Series(
            name, [json.dumps(jsonable(v), ensure_ascii=False) for v in frame[name].to_list()]
        )
        for name in nested
    ]
    texts = pl.col(pl.String, pl.Categorical, pl.Enum).cast(pl.String)
    quoted = pl.when(texts.str.contains(FORMULA)).then("'" + texts).otherwise(texts)
    return frame.with_columns(columns).with_columns(quoted.name.keep())


# --- what is in a page ------------------------------------------------------------------------------------------------


def _blocks(page: Page) -> Iterator[tuple[str, Block]]:
    """Return every block with the name of its part."""
    if page.chart:
        yield "", page.chart
    if page.overview:
        yield "", page.overview
    owners: list[tuple[str, Chart | None, Sections]] = [("", None, page.sections)]
    owners += [(part.name, part.chart, part.sections) for part in page.parts]
    for name, chart, sections in owners:
        if chart:
            yield name, chart
        yield from ((name, block) for blocks in sections.values() for block in blocks if block)


def _is_shown(block: Block | None) -> bool:
    """Tell whether there is something to see: no table or chart without rows."""
    return bool(block) and not (isinstance(block, Table | Chart) and block.frame.is_empty())


def _charts(page: Page) -> Iterator[tuple[str, Chart]]:
    seen: set[str] = set()
    for part, block in _blocks(page):
        if not isinstance(block, Chart) or not _is_shown(block):
            continue
        if _name(part, block.stem) not in seen:
            seen.add(_name(part, block.stem))
            yield part, block


def _frames(page: Page) -> dict[str, pl.DataFrame]:
    """Return every frame by name: tables, charts whose frame is in no table, and what is only written."""
    frames = {_name(part, b.name): b.frame for part, b in _blocks(page) if isinstance(b, Table)}
    tables = {id(frame) for frame in frames.values()}
    also = {name: frame for name, frame in page.also.items() if id(frame) not in tables}
    shown = {*tables, *map(id, also.values())}
    for part, chart in _charts(page):
        if id(chart.frame) not in shown:
            frames[_name(part, f"{chart.stem}_chart")] = chart.frame
    return also | frames


def _name(part: str, name: str) -> str:
    return f"{part}_{name}" if part else name


def _digests(page: Page) -> dict[str, str]:
    known = {"archive": page.archive, "gdpconfig": page.config, "rules": page.rules}
    return {name: thing.digest for name, thing in known.items() if thing} | dict(page.digests)


# --- what the template needs: texts, cells and names of charts; no frames ---------------------------------------------


def _shown(page: Page, params: Bare) -> dict[str, Any]:
    archive = page.archive
    caveats = (caveat.text for caveat in page.caveats if caveat.n)
    synthetic = (
        page.synthetic if page.synthetic is not None else bool(archive and archive.synthetic)
    )
    shown = {
        "report": params.report,
        "question": params.question,
        **_subject("", page),
        "overview": _table("", page.overview)
        if page.overview and _is_shown(page.overview)
        else None,
        "parts": [
            {"name": part.name, "title": part.title, "folded": part.folded}
            | _subject(part.name, part)
            for part in page.parts
        ],
        "cannot_tell": list(dict.fromkeys([*_absent(page, params), *caveats])),
        "archive": archive.path.as_posix() if archive else "",
        "window": page.window,
        "synthetic": synthetic,
        "made": {"facts": _facts(page, params), "command": _command(params), "links": []},
    }
    _explain_once(shown)
    return shown


def _absent(page: Page, params: Bare) -> list[str]:
    """Say what stands for the tables that the archive lacks."""
    if page.archive is None or not isinstance(params, Basic):
        return []
    made = approximate.caveat(page.archive.derived)
    return [*([made] if made else []), *params.needs.caveats(page.archive)]


def _explain_once(shown: dict[str, Any]) -> None:
    """Leave out the lines of a note that stand in an earlier one."""
    seen: set[str] = set()
    for owner in (shown, *shown["parts"]):
        blocks = [block for section in owner["sections"] for block in section["blocks"]]
        for block in (owner["chart"], owner.get("overview"), *blocks):
            if block and block.get("note"):
                lines = [line for line in block["note"].split("\n") if line not in seen]
                seen.update(lines)
                block["note"] = " ".join(lines)


def _subject(name: str, owner: Page | Part) -> dict[str, Any]:
    return {
        "verdict": vars(owner.verdict),
        "numbers": [vars(number) | {"text": number.text} for number in owner.numbers],
        "chart": _chart(name, owner.chart),
        "sections": _sections(name, owner.sections),
    }


def _sections(part: str, sections: Sections) -> list[dict[str, Any]]:
    result = [
        {"title": title, "blocks": [_block(part, block) for block in blocks if _is_shown(block)]}
        for title, blocks in sections.items()
    ]
    return [section for section in result if section["blocks"]]


def _block(part: str, block: Block | None) -> dict[str, Any]:
    if isinstance(block, str) or block is None:
        return {"kind": "text", "text": block}
    if isinstance(block, Listing):
        return {"kind": "listing", **vars(block)}
    if isinstance(block, Chart):
        return _chart(part, block) or {}
    return _table(part, block)


def _chart(part: str, chart: Chart | None) -> dict[str, Any] | None:
    if chart is None or not _is_shown(chart):
        return None
    texts = {"finding": chart.finding, "sample": chart.sample, "note": chart.note}
    return {"kind": "chart", "chart": _name(part, chart.stem), **texts}


def _table(part: str, table: Table) -> dict[str, Any]:
    rows = table.frame.head(table.most).to_dicts()
    marks = [row[table.mark] or "" for row in rows] if table.mark else [""] * len(rows)
    hrefs = [{key: row[source] for key, source in table.links.items()} for row in rows]
    kinds = [
        "text" if isinstance(_first(table.frame, key), str | pl.Series) else "num"
        for key in table.columns
    ]
    return {
        "kind": "table",
        "name": _name(part, table.name),
        "caption": table.caption,
        "columns": [
            {"key": key, "label": label.partition(" [")[0], "unit": unit_of(label), "kind": kind}
            for (key, label), kind in zip(table.columns.items(), kinds, strict=True)
        ],
        "rows": [
            {
                "mark": mark,
                "cells": [
                    {
                        "text": text,
                        "sort": text
                        if row[key] and isinstance(row[key], str)
                        else jsonable(row[key]),
                        "href": links.get(key),
                    }
                    for key, text in zip(table.columns, cells, strict=True)
                ],
            }
            for row, cells, mark, links in zip(rows, table.cells(), marks, hrefs, strict=True)
        ],
        "note": table.note,
        "more": max(0, table.frame.height - table.most),
    }


def _first(frame: pl.DataFrame, column: str) -> Any:
    known = frame[column].drop_nulls()
    return known[0] if len(known) else None


# --- how it was made --------------------------------------------------------------------------------------------------


def _facts(page: Page, params: Bare) -> list[dict[str, str]]:
    """Return the lines of the last section; the runner adds the run itself."""
    archive, facts = page.archive, dict[str, str]()
    if archive:
        facts["Archive"] = f"{archive.path.as_posix()}, digest {archive.digest}"
        facts["Made from its jobs"] = ", ".join(archive.derived)
    facts |= {"Window": page.window, "Filter": page.filters or "none"}
    if page.rules:
        facts["Rule set"] = ", ".join(f"{k} {v}" for k, v in page.rules.to_dict().items())
    if page.config:
        facts["gdpconfig"] = f"digest {page.config.digest}"
    facts |= dict(page.facts)
    asked = {name: typed(value) for name, value in _values(params).items()}
    facts["Parameters"] = ", ".join(f"{name} = {text}" for name, text in asked.items() if text)
    facts["Versions"] = ", ".join(f"{name} {number}" for name, number in versions().items())
    return [{"label": label, "value": value} for label, value in facts.items() if value]


def _values(params: Bare) -> dict[str, Any]:
    return params.model_dump(mode="json", exclude={RESERVED})


def _command(params: Bare) -> str:
    """Return the command line that asks for the same: the parameters that differ from their defaults."""
    changed = params.model_dump(mode="json", exclude_defaults=True, exclude={RESERVED})
    return command(params.report, changed)

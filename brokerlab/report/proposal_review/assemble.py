"""Put the page of the review together and write the files of a run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from brokerlab.report.content import Block, Fact, Link, Listing, Made, Page, Part, blocks
from brokerlab.report.outputs import listed_rows, write_results, write_tables
from brokerlab.report.proposal_review import pictures, tables
from brokerlab.report.proposal_review import sentences as say
from brokerlab.report.proposal_review import statements as put
from brokerlab.report.proposal_review.statements import Statements, statements
from brokerlab.report.proposal_review.study import Item, Study
from brokerlab.words import instant

REPORT = "proposal-review"
QUESTION = "Which proposed settings are to be decided, and what would each of them do?"
HEADINGS = {
    "picture": "What it would do",
    "before_after": "What is proposed",
    "gains": "Who gains, who loses",
    "certainty": "Do they fit together, do they still hold",
}


def write(study: Study, out_dir: str | Path) -> dict[str, Any]:
    """Write charts, tables, statements and `results.json` of a run.

    Args:
        study: The study.
        out_dir: Folder of the run.

    Returns:
        What `results.json` holds.
    """
    folder = Path(out_dir)
    folder.mkdir(parents=True, exist_ok=True)
    ready = statements(study)
    files = put.write(ready, study.inputs.config, folder)
    page = assemble(study, folder, ready, files)
    frames = {"effects": tables.effects_frame(study), "people": tables.people_frame(study)}
    write_tables(folder / "tables", frames, {})
    every = (*study.decide, *study.kept, *study.applied, *study.outdated, *study.made_up)
    digests = {
        "gdpconfig": study.inputs.config.digest,
        "proposals": " ".join(sorted(item.proposal.digest for item in every)),
    }
    return write_results(folder, page, numbers(study, frames), digests)


def assemble(study: Study, folder: Path, ready: Mapping[str, Statements], files: list[str]) -> Page:
    """Draw the chart and put the page together.

    Args:
        study: The study.
        folder: Of the run; charts go to its `charts/`.
        ready: What puts the proposals in and takes them back.
        files: Where that was written, relative to the folder.
    """
    shown = pictures.draw(study, folder / "charts")
    parts = [_agenda(study, folder, shown, ready)] if study.decide else []
    parts += [_one(study, item, ready) for item in study.decide]
    others = tables.rest(study, folder)
    checked = None if study.decide else tables.drift(study)
    if others is not None or checked is not None:
        parts.append(
            Part(
                name="rest",
                title="What is not to be decided",
                verdict=say.rest(study),
                picture=blocks(others, checked),
                headings={"picture": "Kept, applied, out of date"},
            )
        )
    return Page(
        report=REPORT,
        question=QUESTION,
        verdict=say.verdict(study),
        parts=tuple(parts),
        cannot_tell=say.cannot_tell(study),
        archive="",
        window=f"as of {instant(study.inputs.at)}",
        synthetic=study.synthetic,
        made=Made(facts=_facts(study), links=tuple(Link(label=name, href=name) for name in files)),
    )


def _agenda(
    study: Study, folder: Path, shown: Mapping[str, Block], ready: Mapping[str, Statements]
) -> Part:
    """Return the part on everything that is to be decided."""
    fits = say.together(study) if len(study.decide) > 1 else None
    return Part(
        name="agenda",
        title="To be decided",
        verdict=say.verdict(study),
        picture=blocks(tables.agenda(study, folder)),
        before_after=blocks(shown.get("effects")),
        gains=blocks(tables.people(study.decide)),
        certainty=blocks(
            fits,
            tables.conflicts(study),
            tables.drift(study),
            *_listing(ready, put.TOGETHER, "All of them as one, after a decision for all:"),
        ),
        headings={**HEADINGS, "picture": "What is proposed", "before_after": "What it would do"},
    )


def _one(study: Study, item: Item, ready: Mapping[str, Statements]) -> Part:
    """Return the part on one proposal."""
    return Part(
        name=f"proposal-{item.label}",
        title=say.title(item),
        verdict=say.item_verdict(item),
        before_after=blocks(
            say.not_again(study, item), say.state(item), tables.effects(item), tables.keys(item)
        ),
        gains=blocks(say.gains(item)),
        certainty=blocks(
            *_listing(ready, item.label, "To be run by a person, after the decision:")
        ),
        headings={"certainty": "How to apply it, and how to take it back"},
    )


def _listing(ready: Mapping[str, Statements], name: str, caption: str) -> list[Block]:
    """Return the statements of a proposal, and where they lie in other forms."""
    if name not in ready:
        return []
    found = ready[name]
    said = say.files(name, found.files)
    if found.sql is None:
        return [f"{caption} {found.refused}", said]
    return [Listing(caption=caption, text=found.sql.rstrip("\n")), said]


def _facts(study: Study) -> tuple[Fact, ...]:
    """Return what the report knows about how it was made; the runner adds the rest."""
    found = study.inputs
    copies = f", {found.n_copies} of them copies" if found.n_copies else ""
    n_files = len(found.filed) + found.n_copies + len(found.replaced) + len(found.broken)
    return (
        Fact(
            label="Proposals",
            value=f"{say.counted(n_files, 'file')} in {found.folder.as_posix()}{copies}",
        ),
        Fact(label="Configuration", value=f"{found.source}, digest {found.config.digest}"),
        *((Fact(label="Later archive", value=study.later),) if study.later else ()),
    )


def numbers(study: Study, frames: Mapping[str, pl.DataFrame]) -> dict[str, Any]:
    """Return every number of the page under a stable name."""
    groups = {
        "decide": study.decide,
        "kept": study.kept,
        "applied": study.applied,
        "outdated": study.outdated,
        "made_up": study.made_up,
    }
    return {
        "n": {
            **{name: len(items) for name, items in groups.items()},
            "broken": len(study.inputs.broken),
            "replaced": len(study.inputs.replaced),
            "copies": study.inputs.n_copies,
            "conflicts": len(study.conflicts),
        },
        "proposals": [
            {
                "group": name,
                "label": item.label,
                "file": item.filed.name,
                "report": item.filed.report,
                "run": item.filed.run,
                "digest": item.proposal.digest,
                "state": item.state.word,
                "changes": [
                    {"place": one.place, "vo": one.vo, "old": one.old, "new": one.new}
                    for one in item.changes
                ],
                "drift": None if item.drift is None else item.drift.to_dict(),
            }
            for name, items in groups.items()
            for item in items
        ],
        "conflicts": [vars(one) for one in study.conflicts],
        "merged": None if study.merged is None else study.merged.digest,
        **listed_rows(frames),
    }

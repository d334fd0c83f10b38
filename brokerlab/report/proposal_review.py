"""Which proposed settings are to be decided, and what would each of them do? A page for a meeting."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import polars as pl
from pydantic import Field, field_validator

from brokerlab import archive as archives
from brokerlab import words
from brokerlab.gdpconfig import Config
from brokerlab.gdpconfig.proposal import (
    ApplyFiles,
    Item,
    Proposal,
    Review,
    apply_files,
    review,
    write_apply_files,
)
from brokerlab.gdpconfig.proposal import reviewing as frames
from brokerlab.gdpconfig.proposal.planted import TRUTH, compare_with_planted, count_outcomes
from brokerlab.gdpconfig.proposal.words import old_to_new, silence
from brokerlab.report import kit
from brokerlab.report.kit import Caveat, Chart, Number, Page, Part, Table, Verdict, say
from brokerlab.report.results import Kind

if TYPE_CHECKING:
    from brokerlab.calibrate.drift import Drift  # takes as long as the whole report without it

FOLDER, TOGETHER = "apply", "together"
"""Folder of the files to apply; what those of all proposals as one are called."""
EFFECTS_DRAWN = 6  # of all proposals together, the first ones of each document
KINDS: dict[str, Kind] = {
    "decide": "change",
    "outdated": "no_answer",
    "broken": "no_answer",
    "settled": "keep",
    "none": "finding",
}
"""What is to be done, as the kind of an answer."""


class Params(kit.Basic):
    """What may be asked."""

    report: ClassVar = "proposal-review"
    question: ClassVar = (
        "Which proposed settings are to be decided, and what would each of them do?"
    )

    archive: str = Field(
        "data/demo", description="archive whose gdpconfig acts where no config is given [path]"
    )
    proposals: str = Field(
        "reports",
        min_length=1,
        description="folder of reports or of proposals, or one proposal [path of reports]",
    )
    config: str = Field(
        "", description="gdpconfig that acts now (CSV, JSON, archive), empty: archive's [path]"
    )
    at: kit.Instant = Field(
        None, description="time of a gdpconfig with a history, empty for now [ISO 8601, UTC]"
    )
    later: str = Field(
        "", description="archive to ask whether the proposals still hold, empty for none [path]"
    )
    only_newest: bool = Field(
        default=True, description="leave out what a later run of the same report has replaced"
    )

    @field_validator("proposals", "config", "later")
    @classmethod
    def _is_there(cls, path: str) -> str:
        if path and not Path(path).exists():
            raise ValueError("there is no such file or folder")
        return path


# --- compute: library calls only, no words ----------------------------------------------------------------------------


class Study(NamedTuple):
    """The proposals sorted, whether they still hold, and what applies them."""

    review: Review  # the proposals
    # digest of a proposal to what a later archive says; empty where none was asked
    drifts: Mapping[str, Drift]
    # what applies each proposal that is to be decided, and all of them together
    files: Mapping[str, ApplyFiles]
    # what was proposed against what was planted; null where the archive is not synthetic or its truth unknown
    planted: pl.DataFrame | None = None

    @property
    def decide(self) -> tuple[Item, ...]:
        """The proposals to be decided."""
        return self.review.of("decide")


def load(p: Params) -> Config:
    """Read the configuration that acts; every key has its default where none is given or known."""
    source = p.config or p.archive
    if not source or (not p.config and not archives.open(source).has("gdpconfig")):
        return Config.empty()
    config = Config.from_file(source)
    return config.at(p.at or kit.now()) if config.has_history else config


def study(config: Config, p: Params, *, ask: Callable[[Proposal], Drift] | None = None) -> Study:
    """Find and sort the proposals, and ask those that fit whether they still hold."""
    result = review(p.proposals, config=config, created_at=kit.now(), only_newest=p.only_newest)
    drifts = {}
    if p.later:
        if ask is None:
            from brokerlab.calibrate.drift import LaterArchive

            ask = LaterArchive(archives.open(p.later), reports=Path(p.proposals)).ask
        fitting = [item.proposal for item in result.items if item.group != "outdated"]
        drifts = {proposal.digest: ask(proposal) for proposal in fitting}
    documents = {item.label: item.proposal for item in result.of("decide")}
    if result.merged is not None:
        documents[TOGETHER] = result.merged
    files = {name: apply_files(name, document, config) for name, document in documents.items()}
    return Study(result, drifts, files, _planted(result, p))


def _planted(review: Review, p: Params) -> pl.DataFrame | None:
    """Compare what was proposed from the archive with its truth, which nothing else on any page reads."""
    archive = archives.open(p.archive) if p.archive and Path(p.archive).exists() else None
    if archive is None or not archive.synthetic or TRUTH not in archive.manifest.truth:
        return None
    made = [item for item in review.items if item.proposal.digests.archive == archive.digest]
    return compare_with_planted(made, archive.truth(TRUTH))


# --- show: frames and templates ---------------------------------------------------------------------------------------


def page(config: Config, s: Study, p: Params) -> Page:
    """Lay out the agenda, a part per proposal, and the rest."""
    result = s.review
    proposals = frames.proposals_frame(result, seen_from=p.out_dir)
    effects = frames.effects_frame(s.decide)
    return Page(
        verdict=_headline(s),
        numbers=_numbers(s, effects),
        chart=_promises(effects),
        overview=_agenda(s, proposals) if s.decide else None,
        sections={
            kit.GAINS: [_people(s)],
            "Do they fit together, do they still hold": [
                _conflicts(s),
                _drift(s, proposals),
                *_listing(s, TOGETHER, "All of them as one, after a decision for all"),
            ],
            "What is not to be decided": [_rest(proposals)],
        },
        parts=[
            *(_part(s, item) for item in s.decide),
            *([] if s.planted is None else [_planted_part(s.planted)]),
        ],
        caveats=_caveats(s),
        facts=_facts(s, p),
        config=config,
        window="" if p.at is None else f"as of {words.instant(p.at)}",
        digests={"proposals": " ".join(sorted(item.proposal.digest for item in result.items))},
        also={
            "proposals": proposals,
            "changes": frames.changes_frame(result.items),
            "effects": effects,
        },
        values={
            "n": result.counts(),
            "planted": None if s.planted is None else count_outcomes(s.planted),
            "merged": None if result.merged is None else result.merged.digest,
            "drift": {digest: answer.to_dict() for digest, answer in s.drifts.items()},
        },
        synthetic=result.synthetic,
        beside=lambda folder: write_apply_files(s.files.values(), config, folder / FOLDER),
    )


HEADLINES = {
    "decide": "Decide on {proposals} to change {keys}{clash}{made_up}.",
    "outdated": "{outdated} made for another configuration than the present one: run {again} again.",
    "broken": "{broken} named like a proposal, no sound one among them.",
    "settled": "Nothing to decide: {settled}.",
    "none": "Nothing to decide: there is no proposal in {folder}.",
}


def _headline(s: Study) -> Verdict:
    result, n = s.review, s.review.counts()
    kept = words.counted(frames.count_keys(result.of("kept")), "key")
    settled = [f"{words.counted(n['kept'], 'proposal')} to keep {kept}"] if n["kept"] else []
    settled += [f"{words.counted(n['applied'], 'change')} applied already"] if n["applied"] else []
    sentence = say(
        HEADLINES[result.case],
        proposals=words.counted(n["decide"], "proposal"),
        keys=words.counted(frames.count_keys(s.decide), "key"),
        clash=f"; {words.counted(n['conflicts'], 'conflict')} to settle first"
        if n["conflicts"]
        else "",
        made_up="; synthetic, not to be set" if result.synthetic else "",
        outdated=words.counted(n["outdated"], "proposal"),
        again=words.listed(sorted({item.origin for item in result.of("outdated")})[:2] or [""]),
        broken=words.counted(n["broken"], "file"),
        settled=words.listed(settled or [""]),
        folder=result.folder.as_posix(),
    )
    return Verdict(kind=KINDS[result.case], sentence=sentence)


def _numbers(s: Study, effects: pl.DataFrame) -> list[Number]:
    """Return the numbers of the first screen; none where there is nothing to decide."""
    changing = effects.filter(pl.col("interval") != "unchanged")
    sure = changing.filter(interval="excludes 0").height
    clash = "settle them first" if s.review.conflicts else "together they were not measured"
    shown = [
        Number("Keys to change", frames.count_keys(s.decide)),
        Number("Effects whose interval excludes 0", sure, note=f"of {changing.height}"),
        Number("Conflicts", len(s.review.conflicts), note=clash),
    ]
    return shown[: 3 if len(s.decide) > 1 else 2 if s.decide else 0]


def _promises(effects: pl.DataFrame) -> Chart:
    from brokerlab.charts import proposals as charts  # as costly as all else that is imported here

    drawn = frames.promises_frame(effects, EFFECTS_DRAWN)
    known = effects.drop_nulls("change_pct").filter(pl.col("interval") != "unchanged")
    ends = pl.col("^change_pct.*$")
    beyond = drawn.filter(pl.any_horizontal(ends.abs() > charts.FARTHEST)).height
    below = drawn.filter(pl.any_horizontal(ends < -100)).height
    notes = (
        f"Changes beyond {charts.FARTHEST:g} % are drawn at the edge." if beyond else "",
        "Ends lie below −100 % where the present value is not sure itself." if below else "",
    )
    return Chart(
        draw=charts.promises_chart,
        frame=drawn,
        finding=say(
            "{sure} of {n:#effect} differ from nothing beyond their interval",
            sure=known.filter(interval="excludes 0").height,
            n=known.height,
        ),
        sample=f"As measured on the proof periods, each proposal alone; {effects.height - drawn.height} more in the tables",
        note=" ".join(note for note in notes if note),
    )


def _agenda(s: Study, proposals: pl.DataFrame) -> Table:
    frame = frames.agenda_frame(s.review, proposals, frames.answers_frame(s.drifts))
    return Table(
        name="agenda",
        frame=frame,
        caption="What is proposed, and which report proves it",
        columns={
            "key": "Key",
            "old": "Now",
            "new": "Proposed",
            "label": "No.",
            "verdict": "Verdict",
            "quantity": "Main effect",
            "change_pct": "changes by [%]",
            **({"vo": "VO"} if frame["vo"].count() else {}),
            "proof": "Proof",
            **({"status": "Still holds"} if s.drifts else {}),
        },
        links={"proof": "href"},
        unit="unit",
        note="VO –: for all of them." if 0 < frame["vo"].null_count() < frame.height else "",
    )


def _part(s: Study, item: Item) -> Part:
    effects = frames.effects_frame([item])
    changing = effects.filter(pl.col("interval") != "unchanged")
    others = len(item.changes) - 1
    sentence = say(
        "{key} {arrow}{more}: {sure} of {effects} beyond the interval.",
        key=item.changes[0].key,
        arrow=old_to_new(item.changes[0]).replace("->", "→"),
        more=f" and {words.counted(others, 'other key')}" if others else "",
        sure=changing.filter(interval="excludes 0").height,
        effects=words.counted(changing.height, "effect"),
    )
    return Part(
        name=f"proposal-{item.label}",
        title=f"{item.label}. {item.origin}",
        verdict=Verdict(kind="change", sentence=sentence),
        sections={
            "What is proposed": [
                words.thin(item.proposal.evidence.verdict),
                *frames.remarks(item),
                _effects_table(effects),
                Table(
                    name="keys",
                    frame=frames.changes_frame([item]),
                    caption="What the keys do",
                    columns={
                        "key": "Key",
                        "place": "App and component",
                        "minimum": "Guard rails, from",
                        "maximum": "to",
                        "effect": "Effect",
                    },
                ),
            ],
            "How to apply it, and how to take it back": [
                *_listing(s, item.label, "To be run by a person"),
                kit.Listing(caption="What to look at then", text=frames.afterwards(item)),
            ],
        },
    )


def _effects_table(effects: pl.DataFrame) -> Table:
    levels = effects["level"].drop_nulls().unique()
    level = f"; intervals at {100 * levels[0]:g} %" if len(levels) == 1 else ""
    return Table(
        name="effects",
        frame=effects.with_columns(pl.col("unit").str.replace("^share", "%")),
        caption="Before and after, as measured on the proof period",
        columns={
            "quantity": "Quantity",
            "current": "Now",
            "proposed": "Proposed",
            "difference": "Difference",
            **(
                {"coverage": "Holds the truth in [% of cases]"}
                if effects["coverage"].count()
                else {}
            ),
            "interval": "Its interval",
        },
        unit="unit",
        note=f"Includes 0: it may be no effect at all{level}.",
    )


def _listing(s: Study, name: str, caption: str) -> list[kit.Block | None]:
    files = s.files.get(name)
    if files is None:
        return []
    rows = [(f"{FOLDER}/{file}", "yes" if "-take-back." in file else "no") for file in files.files]
    table = Table(
        name=f"files_{name}",
        frame=pl.DataFrame(rows, schema=["file", "takes_back"], orient="row"),
        caption="Files beside this page; nothing was set",
        columns={"file": "File", "takes_back": "Takes it back"},
        links={"file": "file"},
    )
    if files.sql is None:
        return [f"{caption}: {files.refused}", table]
    return [kit.Listing(caption=caption, text=files.sql.rstrip("\n")), table]


def _people(s: Study) -> Table:
    columns = {"who": "Who", "side": "Gains or loses", "label": "By no.", "how": "How"}
    frame, caption = frames.people_frame(s.decide), "As the documents say"
    return Table(name="people", frame=frame, caption=caption, columns=columns, most=12)


def _conflicts(s: Study) -> Table:
    columns = {"place": "Where", "kind": "Kind", "first": "Between", "second": "and", "why": "Why"}
    frame = frames.conflicts_frame(s.review.conflicts)
    caption = "Conflicts: settle each of them before anything is applied"
    return Table(name="conflicts", frame=frame, caption=caption, columns=columns)


def _drift(s: Study, proposals: pl.DataFrame) -> Table:
    columns = {"report": "Report", "keys": "Keys", "status": "Answer", "sentence": "What came out"}
    frame = proposals.join(frames.answers_frame(s.drifts), on="digest", maintain_order="left")
    caption = "Do they still hold on the later archive?"
    return Table(name="drift", frame=frame, caption=caption, columns=columns, mark="role")


def _rest(proposals: pl.DataFrame) -> Table:
    columns = {"reason": "Reason", "keys": "Keys", "detail": "What is said", "run": "Proof"}
    if proposals["filters"].count():
        columns["filters"] = "Measured on"
    frame, links = frames.rest_frame(proposals), {"run": "href"}
    caption = "Everything else that was found"
    return Table(name="rest", frame=frame, caption=caption, columns=columns, links=links)


def _planted_part(compared: pl.DataFrame) -> Part:
    n = count_outcomes(compared)
    sentence = say(
        "{found} of {wrong:#wrong setting} found, {kept} of {right:#right one} still right, "
        "{others:#other key} changed.",
        n,
    )
    table = Table(
        name="settings",
        frame=compared.with_columns(
            pl.col("trades").map_elements(words.thin, return_dtype=pl.String)
        ),
        caption="What was planted, what would be best, and what was proposed",
        columns={
            "key": "Key",
            "planted": "Planted",
            "best": "Best",
            "proposed": "Proposed",
            "verdict": "Verdict",
            "outcome": "Outcome",
            "trades": "What it does",
        },
        note="As good: changed, to a value that counts as right. Nothing planted: no best value of the key is known, its change "
        "may help. Read only here, after every report has proposed: no calibration knows the truth.",
    )
    return Part(
        name="planted",
        title="The archive is synthetic: what was planted",
        verdict=Verdict(kind="finding", sentence=sentence),
        sections={"Planted and proposed": [table]},
    )


def _caveats(s: Study) -> list[Caveat]:
    result, decide, n = s.review, s.decide, s.review.counts()
    bare = [item.name for item in decide if not item.is_certain]
    lost = [item.name for item in decide if item.filed.page is None]
    silent = {item.name: silence(item.proposal.evidence) for item in decide}
    no_effect = (
        f"Whether {', '.join(bare)} changes anything: no interval of its effects excludes 0."
    )
    replaced = f"Older proposals, {n['replaced']}, were not looked at: later runs replace them."
    notes = [
        (result.synthetic, "Anything about a real system: every archive here is synthetic."),
        (len(decide) > 1, "What the changes do together: each was measured on its own."),
        *((len(message), f"{name}: {message}") for name, message in silent.items()),
        (len(bare), no_effect),
        (len(lost), f"What proves {', '.join(lost)}: no report is beside it, ask who sent it."),
        (not s.drifts and len(decide), "Whether proofs still hold: no later archive was asked."),
        (n["synthetic"], f"Changes from synthetic archives, {n['synthetic']}, are listed only."),
        (n["replaced"], replaced),
    ]
    return [Caveat(n, text) for n, text in notes]


def _facts(s: Study, p: Params) -> dict[str, str]:
    """Return what the report knows about how it was made; the kit adds the rest."""
    n = s.review.counts()
    files = len(s.review.items) + n["copies"] + n["replaced"] + n["broken"]
    acting = p.config or p.archive if s.review.config.entries else "the defaults of the catalogue"
    return {
        "Proposals": f"{words.counted(files, 'file')} in {s.review.folder.as_posix()}, {n['copies']} of them copies",
        "Configuration": acting,
        "Later archive": p.later,
        "Files": f"patch.json: JSON Patch of {FOLDER}/base.json, the present configuration; json: statements with parameters"
        if s.files
        else "",
    }

"""A proposal as statements for the table CONFIG: SQL text to be read and run by a person, JSON, or a JSON Patch.

Nothing here opens a database. Every statement also asks that the entry is still as the proposal found it, so a
statement that comes too late changes no row. The SQL text is one PL/SQL block: a statement that does not change
exactly one row raises an error, and the whole block changes nothing. A patch fits :func:`config_document` of the base. Its first
operation tests the digest of the base, so whoever applies it to anything else is refused by any program that knows the
standard.

Source: RFC 6902 (JSON Patch), sections 4.1 to 4.6; design, idea 6.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

from brokerlab.errors import ConfigError, ProposalError, nearest
from brokerlab.gdpconfig.config import Config
from brokerlab.gdpconfig.entry import Entry
from brokerlab.gdpconfig.proposal.document import Proposal, tasks_in_words
from brokerlab.gdpconfig.proposal.files import dumps
from brokerlab.gdpconfig.proposal.parts import Change

Row: TypeAlias = dict[str, Any]
ALWAYS = ("app", "component", "key", "value", "value_json", "type", "vo")
PLACE = ("app", "component", "key", "vo")


def config_document(config: Config) -> Row:
    """Return a configuration as the JSON document that a patch fits, and that :meth:`Config.from_file` reads.

    ``digest``, and ``entries``: one object per entry, sorted by app, component, key; among equals in the order of the table.

    Example:
        >>> config_document(Config.empty().with_values({"SCOUT_RAMCOUNT_RANK": 80}))["entries"][0]["value"]
        '80'
    """
    entries = sorted(config.entries, key=lambda entry: entry.place)
    return {"digest": config.digest, "entries": [_row(entry) for entry in entries]}


def config_text(config: Config) -> str:
    """Return :func:`config_document` as the text of a file."""
    return json.dumps(config_document(config), indent=2, ensure_ascii=False) + "\n"


def _row(entry: Entry) -> Row:
    times = {
        name: None if time is None else time.isoformat()
        for name, time in (("valid_from", entry.valid_from), ("valid_to", entry.valid_to))
    }
    row = {**asdict(entry), **times}
    return {name: value for name, value in row.items() if name in ALWAYS or value is not None}


def operations(changes: tuple[Change, ...], before: Config, after: Config) -> list[Row]:
    """Return the operations (``op, path, value``) that turn the document of the base into that of the base with changes in it.

    A test of the digest; for every change a test of what is there and what is put there; the new digest.
    """
    base = config_document(before)
    steps = [_step("test", "/digest", base["digest"])]
    rows: list[Row] = base["entries"]
    for change in changes:
        if change.action != "none":
            steps += _steps(change, rows)
    return [*steps, _step("replace", "/digest", after.digest)]


def _steps(change: Change, rows: list[Row]) -> list[Row]:
    """Return the operations of one change, and make it in the rows."""
    place = {name: getattr(change, name) for name in PLACE}
    if change.before is None and change.after is not None:
        new = {**dict.fromkeys(ALWAYS), **place, **asdict(change.after)}
        index = sum(_sort_by(row) <= _sort_by(new) for row in rows)
        rows.insert(index, new)
        return [_step("add", f"/entries/{index}", new)]
    index = next(i for i, row in enumerate(rows) if all(row[k] == v for k, v in place.items()))
    path = f"/entries/{index}"
    stored = {} if change.before is None else asdict(change.before)
    steps = [_step("test", f"{path}/{name}", value) for name, value in (place | stored).items()]
    if change.after is None:
        del rows[index]
        return [*steps, {"op": "remove", "path": path}]
    content = {k: v for k, v in asdict(change.after).items() if v != stored.get(k)}
    rows[index].update(content)
    return steps + [_step("replace", f"{path}/{name}", v) for name, v in content.items()]


def _sort_by(row: Mapping[str, Any]) -> tuple[str, ...]:
    return row["app"], row["component"], row["key"]


def _step(op: str, path: str, value: object) -> Row:
    return {"op": op, "path": path, "value": value}


INSERT = (
    "INSERT INTO ATLAS_PANDA.CONFIG (APP, COMPONENT, KEY, VALUE, VALUE_JSON, TYPE, VO) "
    "SELECT :app, :component, :key, :value, :value_json, :type, :vo FROM DUAL "
    "WHERE NOT EXISTS (SELECT 1 FROM ATLAS_PANDA.CONFIG"
)
UPDATE = (
    "UPDATE ATLAS_PANDA.CONFIG "
    "SET VALUE = :new_value, VALUE_JSON = :new_value_json, TYPE = :new_type"
)
DELETE = "DELETE FROM ATLAS_PANDA.CONFIG"
TOP = ("SET DEFINE OFF", "WHENEVER SQLERROR EXIT FAILURE ROLLBACK")
"""First lines of the SQL text, for SQL*Plus and SQLcl: no "&" is asked for, and the first error ends everything."""
LONGEST = 4000
"""Bytes that a literal may have in Oracle."""
LINE = 2499
"""Bytes that a line may have in SQL*Plus: it leaves out a longer one (SP2-0027), and the block would go on without its statement."""
WHERE = "WHERE APP = :app AND COMPONENT = :component AND KEY = :key"
Form = Literal["sql", "json", "patch"]

_UNSAFE = re.compile(r"[\x00-\x1f\x7f\\\u2028\u2029]")


@dataclass(frozen=True)
class Statement:
    """One statement with named parameters, all text (null = NULL), on the entry ``place`` (``app/component/KEY``)."""

    sql: str
    params: Mapping[str, str | None]
    place: str = ""

    def with_literals(self) -> str:
        """Return the text with the values in it, quoted.

        Example:
            >>> Statement("DELETE FROM T WHERE KEY = :key", {"key": "it's"}).with_literals()
            "DELETE FROM T WHERE KEY = 'it''s'"
        """
        literals = {name: quoted(value) for name, value in self.params.items()}
        return re.sub(r":(\w+)", lambda name: literals[name[1]], self.sql)


def quoted(value: str | None) -> str:
    """Return a text as an SQL literal that every database reads alike; refuse one that some would not."""
    if value is None:
        return "NULL"
    if _UNSAFE.search(value):
        raise ProposalError(
            f"{value!r} has a backslash or a control character and cannot stand in SQL text; "
            "use the form json, whose values are parameters"
        )
    if len(value.encode()) > LONGEST:
        raise ProposalError(
            f"{value[:40]!r}... has more than {LONGEST} bytes and cannot stand in SQL text; "
            "use the form json, whose values are parameters"
        )
    return "'" + value.replace("'", "''") + "'"


def statement(change: Change) -> Statement | None:
    """Return the statement of one change; null if there is nothing to do."""
    where, params = _where(change)
    if change.action == "none":
        return None
    if change.action == "insert" and change.after is not None:
        every = {**params, **asdict(change.after), "vo": change.vo}
        return Statement(" ".join([INSERT, *where]) + ")", every, change.place)
    if change.after is None:
        return Statement(" ".join([DELETE, *where]), params, change.place)
    new = {f"new_{name}": text for name, text in asdict(change.after).items()}
    return Statement(" ".join([UPDATE, *where]), params | new, change.place)


def _where(change: Change) -> tuple[list[str], dict[str, str | None]]:
    """Return the conditions on the entry: its place, and that it is as the proposal found it.

    An empty text is null in Oracle, and VALUE_JSON is a CLOB there, which ``=`` cannot compare.
    """
    where = [WHERE]
    params: dict[str, str | None] = {
        "app": change.app,
        "component": change.component,
        "key": change.key,
    }
    conditions = [("vo", change.vo)]
    if change.before is not None:
        conditions += [(f"old_{name}", text) for name, text in asdict(change.before).items()]
    for name, text in conditions:
        column = name.removeprefix("old_").upper()
        if not text:
            where.append(f"AND {column} IS NULL")
            continue
        is_clob = column == "VALUE_JSON"
        where.append(
            f"AND DBMS_LOB.COMPARE({column}, TO_CLOB(:{name})) = 0"
            if is_clob
            else f"AND {column} = :{name}"
        )
        params[name] = text
    return where, params


def render(
    proposal: Proposal, config: Config, *, form: Form = "sql", touched_only: bool = False
) -> str:
    """Return what puts a proposal into effect, with what takes it back, as the text of a file.

    Args:
        proposal: The proposal, of kind "change".
        config: The configuration that acts now; it must be the base.
        form: ``sql`` for a text of statements, ``json`` for statements with parameters, ``patch`` for a JSON Patch
            of the document of the base.
        touched_only: Other keys than those of the proposal may have changed.

    Raises:
        ConfigError: Another form.
        ProposalError: The proposal is a "keep", the base differs, or a value cannot stand in SQL text.
    """
    if form not in ENDINGS:
        raise ConfigError(f"form={form!r}: {nearest(str(form), ENDINGS)}")
    if proposal.kind == "keep":
        raise ProposalError(f"{proposal.title!r} is a keep: there is nothing to apply")
    proposal.verify(config, touched_only=touched_only)
    if form == "patch":
        after = proposal.applied_to(config, touched_only=touched_only)
        steps = operations(proposal.changes, config, after)
        return json.dumps(steps, indent=2, ensure_ascii=False) + "\n"
    forward = [statement(change) for change in proposal.changes]
    inverse = [statement(change.reversed()) for change in reversed(proposal.changes)]
    there = [one for one in forward if one is not None]
    back = [one for one in inverse if one is not None]
    return _json(proposal, there, back) if form == "json" else _sql(proposal, there, back)


def _json(proposal: Proposal, forward: list[Statement], inverse: list[Statement]) -> str:
    sides = {
        name: [{"sql": one.sql, "params": dict(one.params), "rows": 1} for one in side]
        for name, side in (("forward", forward), ("inverse", inverse))
    }
    document = {
        "title": proposal.title,
        **proposal.notes,
        "synthetic": proposal.evidence.synthetic,
        "base": proposal.digests.config,
        "how": "in one transaction; each statement must change as many rows as it says, otherwise roll back",
        **sides,
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _sql(proposal: Proposal, forward: list[Statement], inverse: list[Statement]) -> str:
    lines = [
        *TOP,
        _comment(proposal.title),
        _comment(f"base configuration {proposal.digests.config}"),
        _comment(
            "one transaction: where an entry is not as the proposal found it, nothing changes"
        ),
    ]
    lines += [_comment(f"{name}: {text}") for name, text in proposal.notes.items()]
    if proposal.evidence.filters:
        lines.append(_comment(f"measured on {tasks_in_words(proposal.evidence.filters)}"))
    if proposal.evidence.synthetic:
        lines.append(_comment("MADE FROM A SYNTHETIC ARCHIVE: do not run this anywhere"))
    lines += [*_block(forward), _comment("to take it back:")]
    lines += [f"-- {line}" for line in _block(inverse)]
    return "\n".join(lines) + "\n"


def _block(statements: list[Statement]) -> list[str]:
    """Return a PL/SQL block: an error inside it takes back everything that it did."""
    lines = ["BEGIN"]
    for one in statements:
        problem = f"{one.place} is not as the proposal found it: nothing was changed"
        lines += [
            f"  {one.with_literals()};",
            "  IF SQL%ROWCOUNT <> 1 THEN",
            f"    RAISE_APPLICATION_ERROR(-20001, {quoted(problem)});",
            "  END IF;",
        ]
        if len(lines[-4].encode()) > LINE:
            raise ProposalError(
                f"{one.place}: its statement has more than {LINE} bytes and cannot stand in a line of SQL text; "
                "use the form json, whose values are parameters"
            )
    return [*lines, "  COMMIT;", "END;", "/"]


def _comment(text: str) -> str:
    """Return a comment that stays on its line whatever the text holds."""
    return "-- " + " ".join(_UNSAFE.sub(" ", text).split())


# --- files in every form --------------------------------------------------------------------------------------------------


ENDINGS: MappingProxyType[Form, str] = MappingProxyType(
    {"sql": "sql", "patch": "patch.json", "json": "json"}
)
BASE = "base.json"
"""The present configuration as the document that the patches fit."""


@dataclass(frozen=True)
class ApplyFiles:
    """The files of one proposal.

    Attributes:
        name: What the files are called: ``NAME.sql``, ``NAME-take-back.sql`` and so on.
        files: Name of a file to its text; without the forms that a value cannot stand in.
        sql: What sets the values, with what takes them back behind it; null: it cannot stand in SQL text.
        refused: Why not; empty where it can.
    """

    name: str
    files: dict[str, str]
    sql: str | None
    refused: str


def apply_files(name: str, document: Proposal, config: Config) -> ApplyFiles:
    """Write what puts a change into effect, and what takes it back, in every form that can hold its values.

    Of a merged proposal the document itself is among the files. Keys that it does not touch may differ from its base.
    """
    after = document.applied_to(config, touched_only=True)
    back = document.revert(after, created_at=document.created_at)
    files: dict[str, str] = {}
    refused = ""
    for form, ending in ENDINGS.items():
        try:
            there = render(document, config, form=form, touched_only=True)
            undo = render(back, after, form=form)
        except ProposalError as error:
            refused = str(error)
            continue
        files |= {f"{name}.{ending}": there, f"{name}-take-back.{ending}": undo}
    if document.sources:
        files[f"{name}.proposal.json"] = dumps(document)
    return ApplyFiles(name, files, files.get(f"{name}.sql"), refused)


def write_apply_files(sets: Iterable[ApplyFiles], config: Config, folder: str | Path) -> list[str]:
    """Write files into a folder, which is made, with the base of the patches, and return their names; nothing without files."""
    files = {name: text for one in sets for name, text in one.files.items()}
    if not files:
        return []
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    for name, text in ({BASE: config_text(config)} | files).items():
        (target / name).write_text(text, encoding="utf-8")
    return [BASE, *files]

"""A proposal as statements for the table CONFIG: SQL text to be read and run by a person, or JSON.

Nothing here opens a database. Every statement also asks that the entry is still as the proposal found it,
so a statement that comes too late changes no row.

Source: design, idea 6; archive-schema.md section 10.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Literal

from brokerlab.errors import ProposalError
from brokerlab.gdpconfig.config import Config
from brokerlab.gdpconfig.proposal import patch
from brokerlab.gdpconfig.proposal.document import Proposal
from brokerlab.gdpconfig.proposal.filters import tasks_in_words
from brokerlab.gdpconfig.proposal.parts import Change

INSERT = (
    "INSERT INTO ATLAS_PANDA.CONFIG (APP, COMPONENT, KEY, VALUE, VALUE_JSON, TYPE, VO) "
    "VALUES (:app, :component, :key, :value, :value_json, :type, :vo)"
)
UPDATE = (
    "UPDATE ATLAS_PANDA.CONFIG "
    "SET VALUE = :new_value, VALUE_JSON = :new_value_json, TYPE = :new_type"
)
DELETE = "DELETE FROM ATLAS_PANDA.CONFIG"
WHERE = "WHERE APP = :app AND COMPONENT = :component AND KEY = :key"
Form = Literal["sql", "json", "patch"]

_UNSAFE = re.compile(r"[\x00-\x1f\x7f\\\u2028\u2029]")


@dataclass(frozen=True)
class Statement:
    """One statement with named parameters.

    Attributes:
        sql: Text with ``:name`` parameters.
        params: Their values, all text; null = NULL.
    """

    sql: str
    params: Mapping[str, str | None]

    def with_literals(self) -> str:
        """Return the text with the values in it, quoted.

        Raises:
            ProposalError: A value has characters that databases quote in different ways.

        Example:
            >>> Statement("DELETE FROM T WHERE KEY = :key", {"key": "it's"}).with_literals()
            "DELETE FROM T WHERE KEY = 'it''s'"
        """
        literals = {name: quoted(value) for name, value in self.params.items()}
        return re.sub(r":(\w+)", lambda name: literals[name[1]], self.sql)


def quoted(value: str | None) -> str:
    """Return a text as an SQL literal that every database reads alike.

    Raises:
        ProposalError: The value has a backslash or a control character.
    """
    if value is None:
        return "NULL"
    if _UNSAFE.search(value):
        raise ProposalError(
            f"{value!r} has a backslash or a control character and cannot stand in SQL text; "
            "use the form json, whose values are parameters"
        )
    return "'" + value.replace("'", "''") + "'"


def statement(change: Change) -> Statement | None:
    """Return the statement of one change; null if there is nothing to do."""
    params = {"app": change.app, "component": change.component, "key": change.key}
    if change.action == "none":
        return None
    if change.action == "insert" and change.after is not None:
        return Statement(INSERT, {**params, **asdict(change.after), "vo": change.vo})
    where, conditions = _where(change)
    if change.after is None:
        return Statement(" ".join([DELETE, *where]), params | conditions)
    new = {f"new_{name}": text for name, text in asdict(change.after).items()}
    return Statement(" ".join([UPDATE, *where]), params | conditions | new)


def _where(change: Change) -> tuple[list[str], dict[str, str | None]]:
    """Return the conditions on the entry: its place, and that it is as the proposal found it."""
    where = [WHERE, "AND VO IS NULL" if change.vo is None else "AND VO = :vo"]
    params: dict[str, str | None] = {} if change.vo is None else {"vo": change.vo}
    # VALUE_JSON is a CLOB in Oracle, which cannot be compared; an empty text is null there
    if change.before is not None and change.before.value_json is None:
        where.append("AND VALUE = :old_value" if change.before.value else "AND VALUE IS NULL")
        params |= {"old_value": change.before.value} if change.before.value else {}
    return where, params


def render(
    proposal: Proposal, config: Config, *, form: Form = "sql", touched_only: bool = False
) -> str:
    """Return what puts a proposal into effect, with what takes it back.

    Args:
        proposal: The proposal, of kind "change".
        config: The configuration that acts now; it must be the base.
        form: ``sql`` for a text of statements, ``json`` for statements with parameters, ``patch`` for a JSON Patch
            of the document of the base (:mod:`brokerlab.gdpconfig.proposal.patch`).
        touched_only: Other keys than those of the proposal may have changed.

    Returns:
        The text of the file.

    Raises:
        ProposalError: The proposal is a "keep", the base differs, or a value cannot stand in SQL text.
    """
    if proposal.kind == "keep":
        raise ProposalError(f"{proposal.title!r} is a keep: there is nothing to apply")
    proposal.verify(config, touched_only=touched_only)
    if form == "patch":
        after = proposal.applied_to(config, touched_only=touched_only)
        steps = patch.operations(proposal.changes, config, after)
        return json.dumps(steps, indent=2, ensure_ascii=False) + "\n"
    forward = [statement(change) for change in proposal.changes]
    inverse = [statement(change.reversed()) for change in reversed(proposal.changes)]
    there = [one for one in forward if one is not None]
    back = [one for one in inverse if one is not None]
    return _json(proposal, there, back) if form == "json" else _sql(proposal, there, back)


def _json(proposal: Proposal, forward: list[Statement], inverse: list[Statement]) -> str:
    document = {
        "title": proposal.title,
        "synthetic": proposal.evidence.synthetic,
        "base": proposal.digests.config,
        "forward": [{"sql": one.sql, "params": dict(one.params)} for one in forward],
        "inverse": [{"sql": one.sql, "params": dict(one.params)} for one in inverse],
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _sql(proposal: Proposal, forward: list[Statement], inverse: list[Statement]) -> str:
    lines = [
        _comment(proposal.title),
        _comment(f"base configuration {proposal.digests.config}"),
        _comment("each statement must change exactly one row; otherwise roll back"),
    ]
    if proposal.evidence.filters:
        lines.append(_comment(f"measured on {tasks_in_words(proposal.evidence.filters)}"))
    if proposal.evidence.synthetic:
        lines.append(_comment("MADE FROM A SYNTHETIC ARCHIVE: do not run this anywhere"))
    lines += [f"{one.with_literals()};" for one in forward]
    lines += [_comment("to take it back:")]
    lines += [f"-- {one.with_literals()};" for one in inverse]
    return "\n".join(lines) + "\n"


def _comment(text: str) -> str:
    """Return a comment that stays on its line whatever the text holds."""
    return "-- " + " ".join(_UNSAFE.sub(" ", text).split())

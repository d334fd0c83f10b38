"""The statements do in a real database what the proposal says, and take it back."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brokerlab.errors import ConfigError, ProposalError
from brokerlab.gdpconfig import Config
from brokerlab.gdpconfig.proposal import Evidence, Proposal, render
from brokerlab.gdpconfig.proposal.statements import Statement, quoted

NOW = datetime.fromisoformat("2026-11-21T09:00")
SHARE = "MIN_WEIGHT_managed_it's; DROP TABLE CONFIG --"
BASE = Config.from_rows(
    [
        {
            "app": "jedi",
            "component": "dbproxy",
            "key": "SCOUT_CPUTIME_RANK",
            "value": "90",
            "type": "int",
            "vo": "atlas",
        },
        {
            "app": "jedi",
            "component": "dbproxy",
            "key": "SCOUT_RAMCOUNT_RANK",
            "value": "60",
            "type": "int",
            "descr": "x",
        },
        {"app": "jedi", "component": "jobgen", "key": "GROUPBYATTR_A", "value": "", "type": "str"},
        {
            "app": "pandaserver",
            "component": "dbproxy",
            "key": "USER_JOB_PRIO_BOOST_DICTS",
            "value_json": "[1]",
            "type": "json",
        },
    ]
)
VALUES = {
    "SCOUT_CPUTIME_RANK": 95,
    "SCOUT_RAMCOUNT_RANK": None,
    "GROUPBYATTR_A": "userName",
    "USER_JOB_PRIO_BOOST_DICTS": [{"name": "it's"}],
    SHARE: 0.5,
}


def proposal(
    config: Config = BASE, values: dict[str, object] = VALUES, *, synthetic: bool = False
) -> Proposal:  # type: ignore[assignment]
    evidence = Evidence("because", synthetic=synthetic)
    return Proposal.to_change(config, values, title="T; x", created_at=NOW, evidence=evidence)  # type: ignore[arg-type]


@pytest.fixture
def database() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as con:
        con.execute("CREATE TABLE DUAL (DUMMY)")
        con.execute("INSERT INTO DUAL VALUES ('X')")
        con.create_function("TO_CLOB", 1, str)
        con.create_function("DBMS_LOB_COMPARE", 2, lambda one, two: one and int(one != two))
        con.execute("ATTACH ':memory:' AS ATLAS_PANDA")
        con.execute(
            "CREATE TABLE ATLAS_PANDA.CONFIG (app, component, key, value, value_json, type, vo, descr)"
        )
        rows = BASE.frame().drop("valid_from", "valid_to")
        # Oracle knows no empty text
        con.executemany(
            "INSERT INTO ATLAS_PANDA.CONFIG VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            [[cell or None for cell in row] for row in rows.rows()],
        )
        yield con


def state(con: sqlite3.Connection) -> set[tuple[object, ...]]:
    query = "SELECT app, component, key, value, value_json, type, vo FROM ATLAS_PANDA.CONFIG"
    return {tuple(cell or None for cell in row) for row in con.execute(query)}


def expected(config: Config) -> set[tuple[object, ...]]:
    rows = config.frame().drop("valid_from", "valid_to", "descr").rows()
    return {tuple(cell or None for cell in row) for row in rows}


class RefusedError(Exception):
    """What a block raises."""


def run_block(con: sqlite3.Connection, lines: list[str]) -> None:
    """Run a PL/SQL block as Oracle does: an error that nobody handles takes back what the block did."""
    assert lines[0] == "BEGIN"
    assert lines[-3:] == ["  COMMIT;", "END;", "/"]
    body = lines[1:-3]
    con.execute("BEGIN")
    for i in range(0, len(body), 4):
        sql, check, error, end = body[i : i + 4]
        assert (check, end) == ("  IF SQL%ROWCOUNT <> 1 THEN", "  END IF;")
        message = re.fullmatch(r" +RAISE_APPLICATION_ERROR\(-20001, '(.*)'\);", error)
        assert message
        if con.execute(in_sqlite(sql)).rowcount != 1:
            con.execute("ROLLBACK")
            raise RefusedError(message[1])
    con.execute("COMMIT")


def in_sqlite(sql: str) -> str:
    return sql.replace("DBMS_LOB.COMPARE(", "DBMS_LOB_COMPARE(")


def blocks(text: str) -> tuple[list[str], list[str]]:
    """Return the lines of the block that sets, and of the one that takes back."""
    there, back = text.split("-- to take it back:\n")
    first = there.splitlines()
    return first[first.index("BEGIN") :], [line.removeprefix("-- ") for line in back.splitlines()]


def test_sql_text_sets_and_takes_back(database: sqlite3.Connection) -> None:
    there, back = blocks(render(proposal(), BASE))
    run_block(database, there)
    assert state(database) == expected(proposal().applied_to(BASE))
    run_block(database, back)
    assert state(database) == expected(BASE)


CHANGED = {
    "value": "UPDATE ATLAS_PANDA.CONFIG SET value = '91' WHERE key = 'SCOUT_CPUTIME_RANK'",
    "type": "UPDATE ATLAS_PANDA.CONFIG SET type = 'str' WHERE key = 'SCOUT_CPUTIME_RANK'",
    "JSON": "UPDATE ATLAS_PANDA.CONFIG SET value_json = '[2]' WHERE value_json IS NOT NULL",
    "from nothing": "UPDATE ATLAS_PANDA.CONFIG SET value = 'x' WHERE key = 'GROUPBYATTR_A'",
    "gone": "DELETE FROM ATLAS_PANDA.CONFIG WHERE key = 'SCOUT_RAMCOUNT_RANK'",
    "new": "INSERT INTO ATLAS_PANDA.CONFIG (app, component, key, value, type) "
    "VALUES ('jedi', 'jobbroker', 'MIN_WEIGHT_managed_it''s; DROP TABLE CONFIG --', '1', 'float')",
}


@pytest.mark.parametrize("meanwhile", CHANGED.values(), ids=CHANGED)
def test_a_value_changed_in_the_meantime_makes_the_whole_fail(
    database: sqlite3.Connection, meanwhile: str
) -> None:
    """One transaction with the old value checked: all of it or nothing."""
    there, back = blocks(render(proposal(), BASE))
    assert database.execute(meanwhile).rowcount == 1
    before = state(database)
    with pytest.raises(RefusedError, match="is not as the proposal found it: nothing was changed"):
        run_block(database, there)
    assert state(database) == before
    with pytest.raises(RefusedError):
        run_block(database, back)  # it is not there to be taken back
    assert state(database) == before


def test_substitution_is_off_before_anything_else() -> None:
    """SQL*Plus asks for the value of an "&" even in a comment."""
    first, second, *_ = render(replace(proposal(), title="R&D &x"), BASE).splitlines()
    assert (first, second) == ("SET DEFINE OFF", "WHENEVER SQLERROR EXIT FAILURE ROLLBACK")


def test_a_value_longer_than_a_literal_has_no_sql_text() -> None:
    with pytest.raises(ProposalError, match=r"more than 4000 bytes .* use the form json"):
        render(proposal(values={"GROUPBYATTR_A": "é" * 2001}), BASE)


def test_a_statement_longer_than_a_line_of_sqlplus_has_no_sql_text() -> None:
    """SQL*Plus ignores such a line (SP2-0027), and the block would commit without it."""
    text = render(proposal(values={"GROUPBYATTR_A": "x" * 2000}), BASE)
    assert max(len(line) for line in text.splitlines()) < 2500
    with pytest.raises(ProposalError, match=r"GROUPBYATTR_A: .* more than 2499 bytes .* form json"):
        render(proposal(values={"GROUPBYATTR_A": "x" * 2400}), BASE)
    assert json.loads(render(proposal(values={"GROUPBYATTR_A": "x" * 2400}), BASE, form="json"))


def test_another_form_is_refused() -> None:
    with pytest.raises(ConfigError, match="form='jsn': did you mean 'json'"):
        render(proposal(), BASE, form="jsn")  # type: ignore[arg-type]


def test_json_sets_and_takes_back_one_row_each(database: sqlite3.Connection) -> None:
    document = json.loads(render(proposal(), BASE, form="json"))
    for side, config in (("forward", proposal().applied_to(BASE)), ("inverse", BASE)):
        for one in document[side]:
            rows = database.execute(in_sqlite(one["sql"]), one["params"]).rowcount
            assert rows == one["rows"] == 1
        assert state(database) == expected(config)


def test_a_statement_that_comes_too_late_changes_nothing(database: sqlite3.Connection) -> None:
    document = json.loads(render(proposal(), BASE, form="json"))
    for one in document["inverse"]:
        assert database.execute(in_sqlite(one["sql"]), one["params"]).rowcount == 0
    assert state(database) == expected(BASE)


def test_a_title_stays_in_its_comment() -> None:
    lines = render(replace(proposal(), title="a\u2028b\n'; DROP"), BASE).splitlines()
    assert lines[2] == "-- a b '; DROP"
    begin = lines.index("BEGIN")
    assert all(line.startswith("-- ") for line in lines[2:begin])
    assert all(line.startswith("-- ") for line in lines[lines.index("/") + 1 :])


def test_synthetic_archives_are_told() -> None:
    assert "SYNTHETIC" in render(proposal(synthetic=True), BASE)
    assert json.loads(render(proposal(synthetic=True), BASE, form="json"))["synthetic"] is True


def test_another_base_gets_no_statements() -> None:
    with pytest.raises(ProposalError, match="is not the base"):
        render(proposal(), BASE.with_values({"NW_ACTIVE": True}))
    other = BASE.with_values({"NW_ACTIVE": True})
    assert "UPDATE" in render(proposal(), other, touched_only=True)


def test_values_that_databases_quote_differently() -> None:
    strange = proposal(values={"GROUPBYATTR_A": "a\\"})
    with pytest.raises(ProposalError, match="use the form json, whose values are parameters"):
        render(strange, BASE)
    (one,) = json.loads(render(strange, BASE, form="json"))["forward"]
    assert one["params"]["new_value"] == "a\\"


@settings(derandomize=True, deadline=None)
@given(st.text())
def test_quoting(value: str) -> None:
    try:
        literal = quoted(value)
    except ProposalError:
        assert any(ord(char) < 32 or char in "\\\x7f\u2028\u2029" for char in value)
        return
    with closing(sqlite3.connect(":memory:")) as con:
        assert con.execute(f"SELECT {literal}").fetchone() == (value,)


def test_literals_are_not_looked_at_for_parameters() -> None:
    statement = Statement("SELECT :a, :b, :c", {"a": ":b", "b": "x:a", "c": None})
    assert statement.with_literals() == "SELECT ':b', 'x:a', NULL"


def test_the_tasks_that_were_measured_stand_in_the_header() -> None:
    made = proposal(values={"NQUEUELIMITSITE_Express": 60})
    evidence = replace(made.evidence, filters={"gshare": "Express"})
    assert "-- measured on tasks with gshare Express only\n" in render(
        replace(made, evidence=evidence), BASE
    )
    assert "measured on" not in render(made, BASE)


def test_notes_stand_in_the_header() -> None:
    noted = proposal().annotated(ticket="ADC-7", approver="O'Hara -- & Co")
    text = render(noted, BASE)
    assert "-- ticket: ADC-7\n-- approver: O'Hara -- & Co\n" in text
    document = json.loads(render(noted, BASE, form="json"))
    assert (document["ticket"], document["approver"]) == ("ADC-7", "O'Hara -- & Co")
    assert "author" not in document

"""JSON Patch: what another program makes of it is what the proposal says, and nothing else is let through."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import jsonpatch
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brokerlab.gdpconfig import Config
from brokerlab.gdpconfig.proposal import Evidence, Proposal, render
from brokerlab.gdpconfig.proposal.statements import config_document

NOW = datetime.fromisoformat("2026-11-21T09:00")
RANK = {"app": "jedi", "component": "dbproxy", "key": "SCOUT_CPUTIME_RANK", "type": "int"}
DISK = {"app": "jedi", "component": "taskbrokerage", "key": "FREE_DISK_CUTOFF", "type": "int"}
BASE = Config.from_rows(
    [
        {**DISK, "value": "800", "descr": "of all"},
        {**DISK, "value": "500", "vo": "atlas"},
        {**RANK, "value": "90"},
        {
            "app": "pandaserver",
            "component": "dbproxy",
            "key": "USER_JOB_PRIO_BOOST_DICTS",
            "value_json": "[1]",
            "type": "json",
        },
    ]
)


def proposal(values: dict[str, Any], base: Config = BASE) -> Proposal:
    evidence = Evidence("why")
    return Proposal.to_change(base, values, title="A title", created_at=NOW, evidence=evidence)


def patched(change: Proposal, base: Config) -> dict[str, Any]:
    result: dict[str, Any] = jsonpatch.apply_patch(
        config_document(base), render(change, base, form="patch")
    )
    return result


def test_it_tests_the_digest_and_what_is_there() -> None:
    steps = json.loads(render(proposal({"SCOUT_CPUTIME_RANK": 95}), BASE, form="patch"))
    assert steps[0] == {"op": "test", "path": "/digest", "value": BASE.digest}
    assert {"op": "test", "path": "/entries/0/value", "value": "90"} in steps
    assert [step["path"] for step in steps if step["op"] != "test"] == [
        "/entries/0/value",
        "/digest",
    ]


def test_another_base_is_refused_by_any_program() -> None:
    steps = render(proposal({"SCOUT_CPUTIME_RANK": 95}), BASE, form="patch")
    for other in (BASE.with_values({"NW_ACTIVE": True}), BASE.with_values({"FREE_DISK_CUTOFF": 3})):
        with pytest.raises(jsonpatch.JsonPatchTestFailed):
            jsonpatch.apply_patch(config_document(other), steps)


def test_what_it_makes_is_read_as_a_configuration(tmp_path: Path) -> None:
    change = proposal({"SCOUT_CPUTIME_RANK": None, "SCOUT_RAMCOUNT_RANK": 80})
    file = tmp_path / "gdpconfig.json"
    file.write_text(json.dumps(patched(change, BASE)))
    assert Config.from_file(file).digest == change.applied_to(BASE).digest
    assert "of all" in [entry.descr for entry in Config.from_file(file).entries]


@settings(derandomize=True, deadline=None, max_examples=60)
@given(
    st.fixed_dictionaries(
        {},
        optional={
            "SCOUT_CPUTIME_RANK": st.none() | st.integers(50, 100),
            "SCOUT_RAMCOUNT_RANK": st.none() | st.integers(50, 100),
            "FREE_DISK_CUTOFF": st.none() | st.integers(100, 1000),
            "NW_THRESHOLD": st.floats(0, 4),
            "MIN_WEIGHT_managed_a~b/c": st.floats(0, 4),
            "USER_JOB_PRIO_BOOST_DICTS": st.just([{"a": "é"}]),
        },
    )
)
def test_there_and_back_is_the_same_document(values: dict[str, Any]) -> None:
    if BASE.with_values(values).digest == BASE.digest:
        return
    change = proposal(values)
    after = change.applied_to(BASE)
    there = patched(change, BASE)
    assert there["digest"] == after.digest
    assert [
        {k: v for k, v in row.items() if v is not None and k != "descr"} for row in there["entries"]
    ] == [
        {k: v for k, v in row.items() if v is not None and k != "descr"}
        for row in config_document(after)["entries"]
    ]
    back = change.revert(after, created_at=NOW)
    assert patched(back, after)["digest"] == BASE.digest

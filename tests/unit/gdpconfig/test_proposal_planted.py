"""What was proposed against what was planted: every outcome, by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from brokerlab.gdpconfig.proposal import review
from brokerlab.gdpconfig.proposal.planted import compare_with_planted, count_outcomes
from tests.unit.gdpconfig import proposal_toys as toys


def planted(key: str, *, now: str, best: str, **more: Any) -> dict[str, Any]:
    return {
        "key": key,
        "component": "jobbroker",
        "scope": None,
        "wrong": now != best,
        "planted": now,
        "best": best,
        "best_lo": None,
        "best_hi": None,
        "report": "thresholds",
        "trades": f"{key} trades.",
    } | more


def compare(root: Path, *rows: dict[str, Any]) -> pl.DataFrame:
    found = review(root, config=toys.BASE, created_at=toys.NOW)
    return compare_with_planted(found.items, pl.DataFrame(list(rows), infer_schema_length=None))


@pytest.mark.parametrize(
    ("low", "high", "best", "proposed", "outcome"),
    [
        (150.0, 300.0, "200", 250, "found"),
        (150.0, None, "200", 900, "found"),
        (None, 300.0, "200", 300, "found"),
        (190.0, 210.0, "200", 150, "right direction"),
        (190.0, 210.0, "200", 900, "right direction"),
        (190.0, 210.0, "200", 50, "wrong direction"),
    ],
)
def test_a_wrong_setting_and_what_is_proposed(
    tmp_path: Path, low: float | None, high: float | None, best: str, proposed: int, outcome: str
) -> None:
    toys.lay(tmp_path, "thresholds", {"NQUEUED_SAT_CAP": proposed}, numbers={"verdict": "improve"})
    row = planted("NQUEUED_SAT_CAP", now="100", best=best, best_lo=low, best_hi=high)
    (got,) = compare(tmp_path, row).to_dicts()
    assert (got["outcome"], got["proposed"]) == (outcome, str(proposed))
    assert (got["verdict"], got["label"], got["planted"]) == ("improve", "1", "100")


def test_a_right_setting_is_left_alone_or_changed_without_need(tmp_path: Path) -> None:
    toys.lay(tmp_path, "keeper", keep=["NW_QUEUE_IMPORTANCE"])
    toys.caps(tmp_path)
    got = compare(
        tmp_path,
        planted("NW_QUEUE_IMPORTANCE", now="1", best="1"),
        planted("NQUEUED_SAT_CAP", now="100", best="100"),
        planted("NQUEUED_RATIO", now="2", best="2"),
        planted("SCOUT_RAMCOUNT_MARGIN", now="0", best="10"),
    )
    assert got.select("key", "wrong", "verdict", "proposed", "outcome").rows() == [
        ("SCOUT_RAMCOUNT_MARGIN", True, None, None, "not found"),
        ("NQUEUED_RATIO", False, None, None, "left alone"),
        ("NQUEUED_SAT_CAP", False, "change", "200", "changed without need"),
        ("NW_QUEUE_IMPORTANCE", False, "keep", None, "left alone"),
    ]
    assert count_outcomes(got) == {"wrong": 1, "found": 0, "right": 3, "kept": 2, "others": 0}


def test_a_right_setting_may_go_where_it_is_as_good(tmp_path: Path) -> None:
    toys.caps(tmp_path)
    for high, outcome in ((250.0, "as good"), (150.0, "changed without need")):
        row = planted("NQUEUED_SAT_CAP", now="100", best="100", best_lo=50.0, best_hi=high)
        got = compare(tmp_path, row)
        assert got["outcome"].to_list() == [outcome]
        assert count_outcomes(got)["kept"] == (outcome == "as good")


def test_changes_of_other_keys_are_listed_and_a_scope_is_part_of_a_key(tmp_path: Path) -> None:
    toys.scouts(tmp_path)
    row = planted("SCOUT_RAMCOUNT_MARGIN", now="10", best="6", best_lo=4.0, best_hi=8.0)
    elsewhere = planted("SCOUT_RAMCOUNT_RANK", now="75", best="80", scope="Express")
    got = compare(tmp_path, row, elsewhere)
    assert got.select("key", "best", "outcome").rows() == [
        ("SCOUT_RAMCOUNT_MARGIN", "6 (from 4 to 8)", "found"),
        ("SCOUT_RAMCOUNT_RANK_Express", "80", "not found"),
        ("SCOUT_RAMCOUNT_RANK", None, "nothing planted"),
    ]
    assert count_outcomes(got)["others"] == 1


def test_texts_are_compared_as_they_stand(tmp_path: Path) -> None:
    toys.lay(tmp_path, "thresholds", {"NW_ACTIVE": False})
    for best, outcome in (("False", "found"), ("maybe", "wrong direction")):
        row = planted("NW_ACTIVE", now="True", best=best)
        assert compare(tmp_path, row)["outcome"].to_list() == [outcome]

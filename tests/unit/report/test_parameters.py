"""Text from a command line becomes the declared type, or a sentence saying what was expected."""

from datetime import datetime
from typing import ClassVar, Literal

import pytest
from pydantic import Field

from brokerlab.errors import ConfigError, ReportError
from brokerlab.report import scout_percentiles
from brokerlab.report.kit import Params, Share, parameters_cell
from brokerlab.report.parameters import model


class Toy(Params):
    report: ClassVar[str] = "toy"
    rank: int = Field(75, ge=1, le=100, description="percentile rank [%]")
    alpha: Share = Field(0.02, description="limit [1]")
    strict: bool = Field(False, description="whether to be strict")
    ranks: tuple[int, int] = Field((50, 99), description="first and last rank [%]")
    names: list[str] = Field([], description="names")
    loss: dict[str, float] = Field({}, description="weights [core h]")
    limit_on: Literal["upper", "point"] = Field("upper", description="what must stay below")


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("rank", "3", 3),
        ("rank", 3.0, 3),
        ("alpha", "1", 1.0),
        ("strict", "TRUE", True),
        ("strict", "0", False),
        ("ranks", "60,90", (60, 90)),
        ("ranks", [60, 90], (60, 90)),
        ("ranks", "[60, 90]", (60, 90)),
        ("names", "", []),
        ("names", "a, b", ["a", "b"]),
        ("loss", '{"waste": 1}', {"waste": 1.0}),
        ("archive", "data/demo", "data/demo"),
        ("start", "", None),
        ("start", "2026-03-01", datetime(2026, 3, 1)),
    ],
)
def test_text_becomes_the_declared_type(name, text, value):
    found = getattr(Toy.checked({name: text}), name)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("rank", "2.5", "rank='2.5': must be a valid integer"),
        ("rank", 0, "rank=0: must be greater than or equal to 1"),
        ("alpha", 2, "alpha=2: must be less than or equal to 1"),
        ("alpha", "many", "must be a valid number"),
        ("strict", "perhaps", "must be a valid boolean"),
        ("ranks", "50,x", r"ranks\[1\]='x': must be a valid integer"),
        ("ranks", "50", r"ranks\[1\].*Field required"),
        ("loss", "{", "must be a valid dictionary"),
        ("limit_on", "lower", "must be 'upper' or 'point'"),
        ("start", "yesterday", "must be a valid datetime"),
        ("start", "2026-03-01T00:00+01:00", "times are UTC, leave the zone out"),
        ("rnak", 1, "unknown parameter 'rnak': did you mean 'rank'"),
    ],
)
def test_wrong_values_are_refused_with_what_is_allowed(name, text, message):
    with pytest.raises(ConfigError, match=message):
        Toy.checked({name: text})


def test_every_problem_at_once():
    with pytest.raises(ConfigError) as caught:
        Toy.checked({"a": 1, "b": 2, "rank": "x"})
    assert str(caught.value).count(";") == 2


def test_the_cell_of_a_notebook_says_the_same_as_the_parameters():
    names: dict[str, object] = {}
    cell = parameters_cell(Toy)
    exec(cell, names)  # noqa: S102 - our own cell
    assert Toy.of(names) == Toy()
    assert "ranks: list = [50, 99]  # first and last rank [%]" in cell
    assert 'end: str = ""  # only before this instant' in cell


def test_a_default_one_folder_up_is_found(tmp_path, monkeypatch):
    (tmp_path / "data" / "demo").mkdir(parents=True)
    (tmp_path / "notebooks").mkdir()
    monkeypatch.chdir(tmp_path / "notebooks")
    assert Toy.of({"archive": "data/demo"}).archive == "../data/demo"
    assert Toy.of({"archive": "data/none"}).archive == "data/none"
    assert Toy.checked({"archive": "data/demo"}).archive == "data/demo"


def test_a_notebook_of_ones_own_declares_its_parameters(notebooks):
    declared = model(notebooks / "toy.ipynb", ours=False)
    fields = declared.model_fields
    expected = ["archive", "rank", "share", "ranks", "strict", "seed", "reports", "out_dir"]
    assert list(fields) == expected
    assert (fields["ranks"].default, fields["share"].description) == ([50, 99], "limit [1]")
    assert declared.checked({"rank": "80", "ranks": "1,2"}).model_dump()["ranks"] == [1, 2]
    with pytest.raises(ConfigError, match="did you mean 'rank'"):
        declared.checked({"rnak": 1})
    with pytest.raises(ReportError, match="no cell tagged 'parameters'"):
        model(notebooks / "bare.ipynb", ours=False)


def test_a_report_refuses_its_own_fields_and_those_of_all():
    """A validator of a report must not hide one of all reports by its name."""
    fine = {"ranks": (60, 99), "start": "2026-03-01", "end": "2026-03-02"}
    assert scout_percentiles.Params.of(fine).ranks == (60, 99)
    for wrong in ({"ranks": (99, 60)}, {"end": "2026-02-01"}):
        with pytest.raises(ConfigError):
            scout_percentiles.Params.of(fine | wrong)

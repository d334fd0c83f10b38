"""``brokerlab predict``: every row is predicted or refused; a model that was touched is not used."""

from __future__ import annotations

import argparse
import json

import numpy as np
import polars as pl
import pytest
import skops.io
from typer.testing import CliRunner

from brokerlab.cli import app
from brokerlab.errors import BrokerlabWarning, ConfigError, DataError
from brokerlab.estimators import saving
from brokerlab.estimators.held import HeldBounds
from brokerlab.estimators.quantiles import LinearQuantiles, QuantileBoosting, models
from brokerlab.estimators.saving import Card, Measured
from tests.unit.estimators.quantiles.toys import tasks

LEVELS = (0.5, 0.95)


@pytest.fixture(scope="module")
def learnt():
    return LinearQuantiles("memory").fit(tasks(12, 20, seed=1)[0])


@pytest.fixture(scope="module")
def about(learnt):
    trained = saving.Trained.of(tasks(12, 20, seed=1)[0])
    card = Card(
        name=learnt.name,
        quantity="memory",
        intended_use=("Bounds of jobs | of <planted> tasks.",),
        trained_on=("12 tasks",),
        features=learnt.features,
        measured=(Measured(level=0.95, jobs=1200, coverage=0.947, over_allocation=0.31),),
        do_not_trust=("Anywhere.",),
        versions=saving.versions(),
    )
    return saving.About(
        levels=LEVELS,
        features=learnt.features,
        trained=trained,
        coverage={"0.95": 0.947},
        card=card,
    )


@pytest.fixture(scope="module")
def model(learnt, about, tmp_path_factory):
    return saving.save(learnt, tmp_path_factory.mktemp("models") / "memory", about=about)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Jobs of three tasks, and their scouts as finished ones."""
    folder = tmp_path_factory.mktemp("jobs")
    records, _ = tasks(3, 20, seed=2, first=1)
    records.filter(pl.col("is_scout")).write_parquet(folder / "seen.parquet")
    run = ("used", "ended_s", "censored", "wall_s")
    rest = records.filter(~pl.col("is_scout")).drop(run).with_columns(site=pl.lit("X"))
    rest.write_parquet(folder / "jobs.parquet")
    rest.write_csv(folder / "jobs.csv")
    return folder


def run(*words):
    return CliRunner().invoke(app, ["predict", *(str(word) for word in words)])


def test_parquet_and_csv_give_what_the_estimator_gives(learnt, model, files, tmp_path):
    seen = files / "seen.parquet"
    result = run(
        model, files / "jobs.parquet", "--seen", seen, "--out", tmp_path / "b.parquet",
        "--level", "0.95", "--level", "0.5",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert "30 rows in = 30 predicted + 0 refused" in result.stdout
    assert "30 finished jobs in = 30 seen + 0 refused" in result.stdout
    assert "linear quantiles, memory [MB]; measured coverage: 94.7 % at 0.95" in result.stdout
    found = pl.read_parquet(tmp_path / "b.parquet")
    assert found.columns == ["pandaid", "jeditaskid", "seen", "point", "bound_0.5", "bound_0.95", "promised_0.5", "promised_0.95"]  # fmt: skip
    again = HeldBounds(saving.load(model).estimator, "memory", levels=LEVELS)
    again.update(pl.read_parquet(seen))
    jobs = pl.read_parquet(files / "jobs.parquet").with_columns(
        used=1.0, ended_s=None, censored=False, wall_s=0.0
    )
    expected = again.predict(jobs, levels=LEVELS)
    assert found.drop("jeditaskid").sort("pandaid").equals(expected.sort("pandaid"))
    assert found["seen"].to_list() == [10] * 30
    assert not found["promised_0.95"].any()  # ten are known of each task
    assert 0 < found["promised_0.5"].sum() < 30  # they are told together
    assert found["bound_0.95"].to_list() == jobs["requested"].fill_null(float("inf")).to_list()
    assert "0 of 30 with a bound of 0.95; the others get what was requested" in result.stdout
    from_text = run(model, files / "jobs.csv", "--seen", seen, "--out", tmp_path / "b.csv")
    assert from_text.exit_code == 0, from_text.output
    assert pl.read_csv(tmp_path / "b.csv")["bound_0.95"].to_list() == pytest.approx(
        found["bound_0.95"].to_list()
    )
    assert not [each for each in tmp_path.iterdir() if "refused" in each.name]


def test_bad_rows_are_kept_with_their_reasons(model, files, tmp_path):
    good = pl.read_csv(files / "jobs.csv", infer_schema=False).select(
        "pandaid", "jeditaskid", "cores", "queue", "requested", "is_scout"
    )
    bad = pl.DataFrame(
        [
            ("x1", "1", "8", None, None, "false"),
            (good["pandaid"][0], "1", "0", "q", "many", "perhaps"),
            ("77", None, "8", "q", "", " True "),
            ("78", "1.5", "8", "q", "1e3", ""),
        ],
        schema=good.schema,
        orient="row",
    )
    pl.concat([good, bad]).write_csv(tmp_path / "jobs.csv")
    result = run(model, tmp_path / "jobs.csv", "--out", tmp_path / "bounds.csv")
    assert result.exit_code == 0, result.output
    assert "34 rows in = 30 predicted + 4 refused" in result.stdout
    refused = pl.read_csv(tmp_path / "bounds-refused.csv", infer_schema=False)
    assert refused["row"].to_list() == ["31", "32", "33", "34"]
    reasons = refused["reason"].to_list()
    assert reasons[0] == "pandaid: 'x1' is no Int64; pandaid: null, a value is needed"
    for told in (
        "requested: 'many' is no Float64",
        "is_scout: 'perhaps' is no Boolean",
        "cores: at least 1 is allowed",
        "pandaid: is there already in an earlier row",
    ):
        assert told in reasons[1]
    assert reasons[2] == "jeditaskid: null, a value is needed"
    assert "jeditaskid: '1.5' is no Int64" in reasons[3]
    kept = pl.read_csv(tmp_path / "bounds.csv")
    assert kept["pandaid"].to_list() == [int(each) for each in good["pandaid"]]


def test_jobs_that_have_finished_are_not_predicted(model, files, tmp_path):
    both = pl.read_parquet(files / "seen.parquet")
    unsound = both.head(3).with_columns(
        pandaid=pl.col("pandaid") + 500_000, used=pl.Series([0.0, float("inf"), 1.0]),
        ended_s=pl.Series([1e9, 1e9, -1.0]),
    )  # fmt: skip
    pl.concat([both, unsound]).write_parquet(tmp_path / "seen.parquet")
    jobs = pl.concat(
        [pl.read_parquet(files / "jobs.parquet"), both.head(2)], how="diagonal_relaxed"
    )
    jobs.write_parquet(tmp_path / "jobs.parquet")
    out = tmp_path / "new" / "bounds.parquet"
    result = run(
        model, tmp_path / "jobs.parquet", "--seen", tmp_path / "seen.parquet", "--out", out
    )
    assert "32 rows in = 30 predicted + 2 refused" in result.stdout
    assert "33 finished jobs in = 30 seen + 3 refused" in result.stdout
    refused = pl.read_parquet(out.with_name("bounds-refused.parquet"))
    assert refused.filter(pl.col("file") == "jobs")["row"].to_list() == [31, 32]
    assert refused["reason"].to_list() == [
        *["pandaid: is among the finished jobs"] * 2,
        *["used: a finite number above 0 is needed"] * 2,
        "ended_s: not before decided_s",
    ]


def test_wrong_files_are_one_line(model, files, tmp_path):
    jobs, out = files / "jobs.parquet", tmp_path / "b.parquet"
    pl.read_parquet(jobs).drop("cores").rename({"pandaid": "panda_id"}).write_parquet(
        tmp_path / "less.parquet"
    )
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "torn.parquet").write_bytes(b"PAR1 no")
    pl.read_parquet(jobs).with_columns(cores=0).write_parquet(tmp_path / "none.parquet")
    cases = [
        (2, "SchemaError: less.parquet.pandaid is missing", tmp_path / "less.parquet", out),
        (2, "less.parquet.cores is missing", tmp_path / "less.parquet", out),
        (3, "there is no such file", tmp_path / "nowhere.csv", out),
        (3, "it is empty", tmp_path / "empty.csv", out),
        (3, "cannot be read", tmp_path / "torn.parquet", out),
        (3, "none of 30 rows can be predicted, the first one for: cores", tmp_path / "none.parquet", out),
        (3, "ends in .parquet or .csv", jobs, tmp_path / "b.xlsx"),
    ]  # fmt: skip
    for code, told, given, into in cases:
        result = run(model, given, "--out", into)
        assert result.exit_code == code, result.output
        assert told in result.stderr.strip().splitlines()[-1]
        assert not into.exists()
    result = run(model, jobs, "--out", out, "--level", "1.5")
    assert (result.exit_code, out.exists()) == (4, False)
    assert "above 0 and below 1" in result.stderr
    nothing = run(tmp_path, jobs, "--out", out)
    assert nothing.exit_code == 3
    assert "not a saved model" in nothing.stderr


def test_no_file_that_is_read_is_replaced(model, files, tmp_path):
    """Mended rows of an earlier run stand where that run would put, or take away, its refused ones."""
    mended = tmp_path / "bounds-refused.csv"
    mended.write_bytes((files / "jobs.csv").read_bytes())
    for given, out in ((mended, tmp_path / "bounds.csv"), (mended, mended)):
        result = run(model, given, "--out", out)
        assert result.exit_code == 4, result.output
        assert "name another file for the bounds" in result.stderr
    seen = run(model, files / "jobs.csv", "--seen", mended, "--out", tmp_path / "bounds.csv")
    assert seen.exit_code == 4
    assert [each.name for each in tmp_path.iterdir()] == [mended.name]
    assert mended.read_bytes() == (files / "jobs.csv").read_bytes()


def changed(model, folder, **to):
    """Copy a model with other files."""
    folder.mkdir()
    for name in (saving.MODEL, saving.MANIFEST):
        (folder / name).write_bytes(to.get(name, (model / name).read_bytes()))
    return folder


def signed(said):
    """Return a manifest with a digest that fits."""
    said = {key: value for key, value in said.items() if key != "digest"}
    return json.dumps({**said, "digest": saving._digest(said)}).encode()


def test_a_model_that_was_touched_is_refused(model, files, tmp_path):
    said = json.loads((model / saving.MANIFEST).read_text())
    data = (model / saving.MODEL).read_bytes()
    cases = {
        "its digest does not fit": {saving.MANIFEST: json.dumps({**said, "unit": "GB"}).encode()},
        "it is not the model that was saved": {saving.MODEL: data[:-1] + b"x"},
        "version 1 of the folder": {saving.MANIFEST: signed({**said, "contract": 1})},
        "estimator 'Popen' is not known": {saving.MANIFEST: signed({**said, "estimator": "Popen"})},
        "does not tell coverage as it should": {
            saving.MANIFEST: signed({**said, "coverage": [0.95]})
        },
        "cannot be read": {saving.MANIFEST: b"{"},
        "the model is of memory, its manifest of walltime": {
            saving.MANIFEST: signed({**said, "quantity": "walltime"})
        },
    }
    for place, (told, files_of) in enumerate(cases.items()):
        folder = changed(model, tmp_path / str(place), **files_of)
        result = run(folder, files / "jobs.parquet", "--out", tmp_path / "b.parquet")
        assert result.exit_code == 3, result.output
        assert told in result.stderr


def with_state(model, folder, state, **to):
    """Make a folder around another state, with digests that fit."""
    data = skops.io.dumps(state)
    said = json.loads((model / saving.MANIFEST).read_text()) | to
    said["model"] |= {"sha256": saving.hashlib.sha256(data).hexdigest()}
    return changed(model, folder, **{saving.MODEL: data, saving.MANIFEST: signed(said)})


def test_strange_types_and_unsound_trees_are_never_used(model, tmp_path, monkeypatch):
    with pytest.raises(DataError, match=r"not trusted: argparse\.Namespace"):
        saving.load(with_state(model, tmp_path / "a", {"x": argparse.Namespace(x=1)}))
    monkeypatch.setattr(models, "TREES", 2)
    state = QuantileBoosting("memory").fit(tasks(12, 20, seed=1)[0]).state()
    tree = state["model"]["models"][1]._predictors[0][0]
    boosted = {"estimator": "QuantileBoosting"}
    saving.load(with_state(model, tmp_path / "sound", state, **boosted))
    with pytest.raises(DataError, match=r"not trusted: .*TreePredictor"):
        saving.load(with_state(model, tmp_path / "other", state))  # of linear quantiles
    wrong_edges = {
        "text": np.array(["1", "2"]), "down": np.array([2.0, 1.0]), "nan": np.array([1.0, np.nan]),
        "flat": np.ones((2, 1)), "many": np.arange(300.0), "none": None,
    }  # fmt: skip
    for name, wrong in wrong_edges.items():
        edges = [*state["model"]["edges"][:-1], wrong]
        of = state | {"model": state["model"] | {"edges": edges}}
        with pytest.raises(DataError, match="cannot be read"):
            saving.load(with_state(model, tmp_path / name, of, **boosted))
    numeric = np.flatnonzero((tree.nodes["is_leaf"] == 0) & (tree.nodes["is_categorical"] == 0))[0]
    for column, value in (("left", 9999), ("right", 0), ("feature_idx", 99), ("is_categorical", 1)):
        before = tree.nodes.copy()
        tree.nodes[column][numeric] = value
        folder = with_state(model, tmp_path / column, state, **boosted)
        tree.nodes[:] = before
        with pytest.raises(DataError, match="a tree points out of its own nodes"):
            saving.load(folder)
    with pytest.raises(DataError, match="cannot be read"):
        saving.load(with_state(model, tmp_path / "b", {"quantity": "memory"}))


def test_a_file_that_is_broken_in_any_way_is_refused(model, tmp_path, monkeypatch):
    state = LinearQuantiles("memory").fit(tasks(12, 20, seed=1)[0]).state()
    torn = np.frombuffer(b"ARROW1 torn", dtype=np.uint8)
    for place, wrong in enumerate(({"seen": torn}, {"quantity": "length"}, {"calibration": 1})):
        with pytest.raises(DataError, match="cannot be read"):
            saving.load(with_state(model, tmp_path / str(place), state | wrong))
    data = bytearray((model / saving.MODEL).read_bytes())
    start = 30 + int.from_bytes(data[26:28], "little") + int.from_bytes(data[28:30], "little")
    data[start : start + 40] = b"\xff" * 40  # the first packed part
    said = json.loads((model / saving.MANIFEST).read_text())
    said["model"]["sha256"] = saving.hashlib.sha256(data).hexdigest()
    to = {saving.MODEL: bytes(data), saving.MANIFEST: signed(said)}
    with pytest.raises(DataError, match="cannot be read"):
        saving.load(changed(model, tmp_path / "packed", **to))
    monkeypatch.setattr(saving, "MOST_UNPACKED", 1000)
    with pytest.raises(DataError, match=r"unpacks to [\d,]+ bytes, 1,000 are allowed"):
        saving.load(model)


def test_saving_is_all_or_nothing(learnt, about, model, tmp_path):
    with pytest.raises(ConfigError, match="is there already"):
        saving.save(learnt, model, about=about)
    with pytest.raises(ConfigError, match="Stranger cannot be saved"):
        saving.save(type("Stranger", (), {})(), tmp_path / "x", about=about)
    with pytest.raises(ConfigError, match="call fit first"):
        saving.save(LinearQuantiles("memory"), tmp_path / "x", about=about)
    assert list(tmp_path.iterdir()) == []
    assert sorted(each.name for each in model.iterdir()) == [
        "manifest.json", "model.skops", "model_card.md",
    ]  # fmt: skip
    assert b"pickle" not in (model / "model.skops").read_bytes()


def test_another_scikit_learn_is_told(model, tmp_path):
    said = json.loads((model / saving.MANIFEST).read_text())
    said["libraries"]["scikit-learn"] = "1.0"
    folder = changed(model, tmp_path / "old", **{saving.MANIFEST: signed(said)})
    with pytest.warns(BrokerlabWarning, match="made with scikit-learn 1.0"):
        saving.load(folder)


def test_what_was_seen_is_saved_too(files, about, tmp_path):
    jobs = pl.read_parquet(files / "jobs.parquet").with_columns(
        used=1.0, ended_s=None, censored=False, wall_s=0.0
    )
    estimator = LinearQuantiles("memory", capped=True).fit(tasks(12, 20, seed=1)[0])
    estimator.conformalize(tasks(25, 20, seed=3, first=2)[0])
    estimator.update(pl.read_parquet(files / "seen.parquet"))
    again = saving.load(saving.save(estimator, tmp_path / "m", about=about)).estimator
    assert again.predict(jobs, levels=LEVELS).equals(estimator.predict(jobs, levels=LEVELS))
    assert again.predict(jobs, levels=LEVELS)["seen"].unique().to_list() == [10]


def test_the_card_says_where_not_to_trust(model, about):
    text = (model / "model_card.md").read_text()
    assert text.startswith("# Model card: linear quantiles, memory &#91;MB&#93;\n")
    assert "* Bounds of jobs &#124; of &lt;planted&gt; tasks." in text
    assert "| 95 % | 1 200 | 94.7 % | 0.310 |" in text
    assert list(about.card.sections()) == [
        line[3:] for line in text.splitlines() if line.startswith("## ")
    ]
    with pytest.raises(DataError, match="do_not_trust is empty"):
        Card(**{**about.card.__dict__, "do_not_trust": ()})

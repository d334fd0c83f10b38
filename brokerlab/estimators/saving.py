"""Keep fitted estimators in folders: the model by skops, never pickle, and what it is in a manifest.

``model.skops`` holds plain values, arrays and scikit-learn models, ``manifest.json`` what they are, of
what they were made, and their digests, ``model_card.md`` what a person should know of them.
"""

from __future__ import annotations

import hashlib
import importlib
import io
import json
import platform
import shutil
import tempfile
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np
import numpy.typing as npt
from markupsafe import escape

from brokerlab.errors import ConfigError, DataError, nearest, warn_once
from brokerlab.estimators.records import UNITS, Quantity, checked

CONTRACT = 2  # version of the folder that this brokerlab writes and reads
MODEL, MANIFEST, CARD = "model.skops", "manifest.json", "model_card.md"
CLASSES: Mapping[str, str] = {
    "Hierarchy": "brokerlab.estimators.hierarchy",
    "LinearQuantiles": "brokerlab.estimators.quantiles",
    "QuantileBoosting": "brokerlab.estimators.quantiles",
}
"""Estimators that can be saved, and where they live; nothing else is ever imported."""
TRUSTED: Mapping[str, tuple[str, ...]] = {
    "QuantileBoosting": (
        # how boosting turns categories into numbers: a check of arrays, with its arguments
        *("functools.partial", "sklearn.utils.validation.check_array"),
        # one tree; skops does not trust its node numbers, `check_trees` looks at them
        "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
    )
}
"""Types that estimators hold besides those that skops trusts by itself (scikit-learn, numpy, plain values).

Others hold none of them: of theirs `check_trees` could not see trees inside of other models.
"""
LIBRARIES = ("brokerlab", "numba", "numpy", "polars", "scikit-learn", "skops")
_TOLD: Mapping[str, type] = {
    "levels": list,
    **dict.fromkeys(("coverage", "libraries", "model"), dict),
    **dict.fromkeys(("name", "quantity", "unit"), str),
}
MOST_UNPACKED = 4 * 2**30
"""Bytes that a model may unpack to: far above any that was made, far below what ends a machine."""
_UNREADABLE = (OSError, ValueError, KeyError, TypeError, RecursionError)


@runtime_checkable
class Saveable(Protocol):
    """What an estimator needs to be kept, besides its class standing in :data:`CLASSES`."""

    name: str
    quantity: Quantity

    def state(self) -> dict[str, Any]:
        """Return everything learnt: numpy arrays, scikit-learn models, and what JSON can hold.

        Dicts have text keys. No objects of our own: they would have to be trusted.
        """
        ...

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Return an estimator that predicts what the one of this state predicted."""
        ...


@dataclass(frozen=True, kw_only=True)
class Trained:
    """The records of a fit."""

    jobs: int  # rows
    tasks: int  # distinct tasks
    first_s: float | None  # earliest `decided_s`; None without rows
    last_s: float | None  # latest one
    digest: str  # sha256 of the rows in their order, ``sha256:...``

    @classmethod
    def of(cls, records: Any) -> Self:
        """Count records."""
        frame = checked(records)
        times = frame["decided_s"]
        return cls(
            jobs=frame.height,
            tasks=frame["jeditaskid"].n_unique(),
            first_s=times[0] if frame.height else None,
            last_s=times[-1] if frame.height else None,
            digest=f"sha256:{hashlib.sha256(frame.write_csv().encode()).hexdigest()}",
        )


@dataclass(frozen=True, kw_only=True)
class About:
    """What a manifest says of a model besides the model itself."""

    levels: tuple[float, ...]  # of the bounds it was made and measured for
    features: tuple[str, ...]  # what it reads of a job
    trained: Trained  # the records of the fit
    # level, as text, to the share of jobs that stayed below their bound, measured on jobs that the model was
    # not fitted to
    coverage: Mapping[str, float] = field(default_factory=dict)
    card: Card | None = None  # for people; None: no card is written


@dataclass(frozen=True)
class Saved:
    """A model that was read: the estimator, and its manifest as in the file."""

    estimator: Any
    manifest: Mapping[str, Any]


def versions() -> dict[str, str]:
    """Return the libraries that a model depends on, each with its version."""
    return {"python": platform.python_version()} | {
        name: metadata.version(name) for name in LIBRARIES
    }


def save(estimator: Saveable, folder: Path, *, about: About) -> Path:
    """Write a fitted estimator of `CLASSES` to a folder that is empty or does not exist: all of it, or nothing.

    Another class, or a folder in use, is a ConfigError; a state that holds what cannot be saved a DataError.
    """
    kind = type(estimator).__name__
    if kind not in CLASSES or not type(estimator).__module__.startswith(CLASSES[kind]):
        raise ConfigError(f"save: {kind} cannot be saved; {nearest(kind, CLASSES)}")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ConfigError(f"{folder}: is there already; name a new folder")
    model = _dump(estimator)
    manifest = _manifest(estimator, about, model)
    folder.parent.mkdir(parents=True, exist_ok=True)
    made = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        (made / MODEL).write_bytes(model)
        (made / MANIFEST).write_text(
            json.dumps(manifest, indent=1, sort_keys=True) + "\n", encoding="utf-8"
        )
        if about.card is not None:
            (made / CARD).write_text(about.card.to_markdown(), encoding="utf-8")
        made.chmod(0o755)  # mkdtemp lets nobody else in
        made.replace(folder)
    except BaseException:
        shutil.rmtree(made, ignore_errors=True)
        raise
    return folder


def load(folder: Path) -> Saved:
    """Read a model from a folder that `save` wrote, after its digests were found to fit.

    A model of another version of scikit-learn is read with a warning: trees are kept in its inner form. Where there is no model, or a
    damaged one, a digest does not fit, a newer brokerlab wrote it, or it holds types that are not trusted, it is a DataError.
    """
    manifest = _read_manifest(folder)
    data = _read_model(folder, manifest)
    made_with, here = manifest["libraries"].get("scikit-learn"), metadata.version("scikit-learn")
    if made_with != here:
        message = (
            f"{folder}: made with scikit-learn {made_with}, here is {here}; fit the model again"
        )
        warn_once(message, stacklevel=2)
    kind = manifest["estimator"]
    state = _trusted_state(folder, data, kind)
    try:
        check_trees(state)
        estimator = getattr(importlib.import_module(CLASSES[kind]), kind).from_state(state)
    except Exception as error:  # what is in a file may be wrong in any way
        raise _damaged(folder / MODEL, error) from error
    if estimator.quantity != manifest["quantity"]:
        raise DataError(
            f"{folder}: the model is of {estimator.quantity}, its manifest of {manifest['quantity']};"
            " take the folder from where it was made"
        )
    return Saved(estimator, manifest)


def _dump(estimator: Saveable) -> bytes:
    import skops.io

    state = estimator.state()
    try:
        data: bytes = skops.io.dumps(state, compression=zipfile.ZIP_DEFLATED)
        unknown = _untrusted(data, type(estimator).__name__)
    except Exception as error:  # each library has its own errors
        raise DataError(f"save: {estimator.name} cannot be written ({error})") from error
    if unknown:
        raise DataError(
            f"save: the state of {estimator.name} holds {', '.join(sorted(unknown))}; allowed are numpy"
            " arrays, scikit-learn models and plain values"
        )
    return data


def _manifest(estimator: Saveable, about: About, model: bytes) -> dict[str, Any]:
    manifest = {
        "contract": CONTRACT,
        "estimator": type(estimator).__name__,
        "name": estimator.name,
        "quantity": estimator.quantity,
        "unit": UNITS[estimator.quantity],
        "levels": list(about.levels),
        "features": list(about.features),
        "trained": asdict(about.trained),
        "coverage": dict(about.coverage),
        "card": about.card.to_dict() if about.card else None,
        "libraries": versions(),
        "model": {"file": MODEL, "bytes": len(model), "sha256": hashlib.sha256(model).hexdigest()},
    }
    plain: dict[str, Any] = json.loads(json.dumps(manifest))
    return {**plain, "digest": _digest(plain)}


def _read_manifest(folder: Path) -> dict[str, Any]:
    """Return the manifest, held to its digest and to what this brokerlab can read."""
    path = folder / MANIFEST
    if not path.is_file():
        raise DataError(f"{folder}: no {MANIFEST}, so this is not a saved model")
    try:
        manifest: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        contract, digest = manifest["contract"], manifest["digest"]
    except _UNREADABLE as error:
        raise _damaged(path, error) from error
    if contract != CONTRACT:
        raise DataError(
            f"{path}: version {contract} of the folder, this brokerlab reads {CONTRACT}; install the"
            " brokerlab that wrote it, or fit the model again"
        )
    content = {key: value for key, value in manifest.items() if key != "digest"}
    if digest != _digest(content):
        raise DataError(
            f"{path}: its digest does not fit what it says; it was changed after it was written,"
            " take the folder from where it was made"
        )
    if manifest.get("estimator") not in CLASSES:
        raise DataError(
            f"{path}: estimator '{manifest.get('estimator')}' is not known;"
            f" {nearest(str(manifest.get('estimator')), CLASSES)}"
        )
    wrong = [name for name, kind in _TOLD.items() if not isinstance(manifest.get(name), kind)]
    if wrong or "sha256" not in manifest["model"]:
        raise DataError(f"{path}: does not tell {', '.join(wrong) or 'model.sha256'} as it should")
    return manifest


def _read_model(folder: Path, manifest: Mapping[str, Any]) -> bytes:
    """Return the bytes of the model if they are those that the manifest means."""
    path = folder / MODEL
    try:
        data = path.read_bytes()
    except OSError as error:
        raise _damaged(path, error) from error
    expected, result = manifest["model"]["sha256"], hashlib.sha256(data).hexdigest()
    if expected != result:
        raise DataError(
            f"{path}: sha256 {result[:12]}…, the manifest says {expected[:12]}…; it is not the model"
            " that was saved, take the folder from where it was made"
        )
    return data


def _trusted_state(folder: Path, data: bytes, kind: str) -> Any:
    """Return what the model holds, if it holds nothing but trusted types; else nothing is made."""
    import skops.io

    try:
        _check_size(data)
        unknown = _untrusted(data, kind)
        if not unknown:
            return skops.io.loads(data, trusted=list(TRUSTED.get(kind, ())))
    except Exception as error:  # what is in a file may be wrong in any way
        raise _damaged(folder / MODEL, error) from error
    raise DataError(
        f"{folder / MODEL}: holds types that are not trusted: {', '.join(sorted(unknown))};"
        " nothing of it was loaded, do not use it"
    )


def _untrusted(data: bytes, kind: str) -> set[str]:
    """Return the types in a model that an estimator of a kind does not hold."""
    import skops.io

    return set(skops.io.get_untrusted_types(data=data)) - set(TRUSTED.get(kind, ()))


def _check_size(data: bytes) -> None:
    """Refuse a model that unpacks to more than any that was made; reading stops at the sizes told here."""
    with zipfile.ZipFile(io.BytesIO(data)) as packed:
        unpacked = sum(part.file_size for part in packed.infolist())
    if unpacked > MOST_UNPACKED:
        raise ValueError(f"unpacks to {unpacked:,} bytes, {MOST_UNPACKED:,} are allowed")


def _damaged(path: Path, error: BaseException) -> DataError:
    return DataError(
        f"{path}: cannot be read ({type(error).__name__}: {error}); take the folder from where it was made"
    )


def _digest(manifest: Mapping[str, Any]) -> str:
    text = json.dumps(manifest, sort_keys=True, separators=(",", ":"))
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


MOST_CATEGORIES = 256


def check_trees(state: Any) -> None:
    """Refuse trees that would lead prediction out of their own arrays, or around in circles.

    scikit-learn follows the numbers in a tree without looking: those of a file that was tampered with end
    the process, or read memory that is not theirs.

    Source: skops 0.16, reasons for types that it does not trust; scikit-learn pull request 34558.
    """
    for model in _models(state):
        categorical = _categorical(model)
        trees = [tree for stage in model._predictors for tree in stage]  # noqa: SLF001 - no other way
        if not trees:
            raise ValueError("a boosted model without trees")
        for tree in trees:
            _check(tree, categorical)


def _models(state: Any) -> list[Any]:
    """Return the boosted models anywhere in plain containers."""
    from sklearn.ensemble import HistGradientBoostingRegressor

    if isinstance(state, HistGradientBoostingRegressor):
        return [state]
    inside = state.values() if isinstance(state, Mapping) else state
    if isinstance(state, Mapping | list | tuple):
        return [model for each in inside for model in _models(each)]
    return []


def _categorical(model: Any) -> npt.NDArray[np.bool_]:
    """Return which columns hold categories, each of which must fit a set of 256."""
    mapper = model._bin_mapper  # noqa: SLF001 - no other way
    result = mapper.is_categorical_
    if result.shape != (int(model.n_features_in_),):
        raise ValueError("a boosted model of another number of columns than its trees")
    for known in mapper.known_categories or ():
        if known is not None and not ((known >= 0) & (known < MOST_CATEGORIES)).all():
            raise ValueError("a boosted model with more categories than fit")
    return np.asarray(result, dtype=bool)


def _check(tree: Any, categorical: npt.NDArray[np.bool_]) -> None:
    """Hold one tree to its own size: children come after their parent, columns and sets exist."""
    from sklearn.ensemble._hist_gradient_boosting.common import PREDICTOR_RECORD_DTYPE

    nodes = tree.nodes
    if (
        not isinstance(nodes, np.ndarray)
        or nodes.dtype != PREDICTOR_RECORD_DTYPE
        or nodes.ndim != 1
    ):
        raise ValueError("nodes of a tree have another form")
    inner = np.flatnonzero(nodes["is_leaf"] == 0)
    part = nodes[inner]
    sound = nodes.size > 0 and all(
        ((part[side] > inner) & (part[side] < nodes.size)).all() for side in ("left", "right")
    )
    column, by_set = part["feature_idx"], part["is_categorical"] != 0
    sound = sound and bool(((column >= 0) & (column < categorical.size)).all())
    sound = sound and bool((categorical[column] | ~by_set).all())
    for sets in (tree.raw_left_cat_bitsets, tree.binned_left_cat_bitsets):
        shape = isinstance(sets, np.ndarray) and sets.dtype == np.uint32 and sets.shape[1:] == (8,)
        sound = sound and shape and bool((part["bitset_idx"][by_set] < sets.shape[0]).all())
    if not sound:
        raise ValueError("a tree points out of its own nodes, columns or sets of categories")


LICENCE = "Apache-2.0"


@dataclass(frozen=True, kw_only=True)
class Measured:
    """What was measured of the bound of one level, on jobs that the model was not fitted to."""

    level: float  # share of jobs that are to stay below their bound
    jobs: int  # it was measured on
    coverage: float  # share of them that did stay below
    # bounds above use, in sum / use, in sum; None: not measured
    over_allocation: float | None = None


@dataclass(frozen=True, kw_only=True)
class Card:
    """A model card (Mitchell et al., Model Cards for Model Reporting, FAT* 2019, doi:10.1145/3287560.3287596)."""

    name: str  # of the estimator
    quantity: Quantity  # what it bounds
    intended_use: tuple[str, ...]  # for what it was made, one sentence each
    trained_on: tuple[str, ...]  # whose jobs, how many, of when, one sentence each
    features: tuple[str, ...]  # what it reads of a job, all known when the job is decided
    measured: tuple[Measured, ...]  # one row per level
    do_not_trust: tuple[str, ...]  # where it should not be believed, one sentence each; never empty
    licence: str = LICENCE  # under which it may be used
    versions: Mapping[str, str]  # library to version that it was made with

    def __post_init__(self) -> None:
        """Refuse a card without limits: every model has some."""
        if not self.do_not_trust:
            raise DataError("model card: do_not_trust is empty; say where the model does not hold")

    @property
    def title(self) -> str:
        """Heading of the card."""
        return f"Model card: {self.name}, {self.quantity} [{UNITS[self.quantity]}]"

    def sections(self) -> dict[str, list[str]]:
        """Return the card part by part: lines of Markdown, by heading."""
        measured = [
            (
                f"{100 * each.level:g} %",
                f"{each.jobs:,}".replace(",", " "),
                f"{100 * each.coverage:.1f} %",
                "not measured" if each.over_allocation is None else f"{each.over_allocation:.3f}",
            )
            for each in self.measured
        ]
        columns = ("level", "jobs", "stayed below their bound", "over-allocation")
        return {
            "Intended use": _points(self.intended_use),
            "Trained on": _points(self.trained_on),
            "Reads of a job": _points([", ".join(self.features)]),
            "Measured": _table(columns, measured),
            "Where not to trust it": _points(self.do_not_trust),
            "Licence": _points([self.licence]),
            "Made with": _table(("library", "version"), sorted(self.versions.items())),
        }

    def to_markdown(self) -> str:
        """Return the card as Markdown; texts are escaped, so data cannot add markup."""
        parts = [f"## {title}\n\n" + "\n".join(lines) for title, lines in self.sections().items()]
        return "\n\n".join([f"# {_plain(self.title)}", *parts]) + "\n"

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, as JSON keeps them."""
        return asdict(self)


def _points(sentences: Iterable[str]) -> list[str]:
    return [f"* {_plain(each)}" for each in sentences]


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    lines = [f"| {' | '.join(map(_plain, cells))} |" for cells in (columns, *rows)]
    return [lines[0], "|" + " --- |" * len(columns), *lines[1:]]


def _plain(text: str) -> str:
    """Return text in one line in which no character means anything to Markdown or HTML."""
    escaped = str(escape(" ".join(text.split())))
    for mark in "\\`*_[]|":
        escaped = escaped.replace(mark, f"&#{ord(mark)};")
    return escaped

"""Find the notebook of a report, in an installed package or in the repository."""

from pathlib import Path

from brokerlab.errors import ConfigError, nearest

PACKAGED = Path(__file__).parent / "notebooks"  # where a wheel carries the notebooks
REPOSITORY = Path(__file__).parents[2] / "notebooks"  # where a clone keeps them


def folder() -> Path:
    """Return the folder of the notebooks: the packaged one, else the repository's."""
    return PACKAGED if PACKAGED.is_dir() else REPOSITORY


def names(notebooks: Path | None = None) -> list[str]:
    """List the reports that can be run, sorted; ``scout_percentiles.ipynb`` is scout-percentiles."""
    where = folder() if notebooks is None else notebooks
    return sorted(path.stem.replace("_", "-") for path in where.glob("*.ipynb"))


def notebook(name: str, notebooks: Path | None = None) -> Path:
    """Return the notebook of a report, whose name has hyphens or underscores."""
    where = folder() if notebooks is None else notebooks
    path = where / f"{name.replace('-', '_')}.ipynb"
    if name.replace("_", "-") not in names(where):
        raise ConfigError(f"unknown report {name!r}: {nearest(name, names(where))}")
    return path

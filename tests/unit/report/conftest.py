"""A toy report: its notebook is written here, so that the runner can be tested alone."""

from pathlib import Path

import nbformat
import pytest

from brokerlab import errors
from brokerlab.report import runner
from brokerlab.report.kernel import Failure

PARAMETERS = """\
archive: str = "data/none"  # the archive [path]
rank: int = 75  # percentile rank [%]
share: float = 0.02  # limit [1]
ranks: list[int] = [50, 99]  # first and last rank [%]
strict: bool = False  # whether to be strict
seed: int = 1  # seed of the bootstrap
reports: str = ""  # where proposals lie [path of reports]
out_dir: str = "out"  # where everything goes [path]
"""

BODY = """\
import json, sys
from pathlib import Path
from brokerlab.errors import ConfigError
from brokerlab.report.content import *

if share > 1:
    raise ConfigError(f"share={share}: must be at most 1")
if strict:
    raise ValueError(f"rank {rank} is too strict\\nsecond line")
out = Path(out_dir)
(out / "charts").mkdir()
(out / "charts" / "curve.svg").write_text(
    '<svg xmlns="http://www.w3.org/2000/svg" width="10" height="10">'
    '<clipPath id="clip0"><rect/></clipPath><g clip-path="url(#clip0)"/></svg>'
)
kind = "change" if rank > 75 else "keep"
verdict = Verdict(kind=kind, sentence=f"{kind.title()} SCOUT_RAMCOUNT_RANK = {rank}.", subject="ramCount")
table = Table(
    name="before_after",
    caption="Before and after",
    columns=(Column(key="what", label="Quantity"), Column(key="diff", label="Difference", unit="%")),
    rows=(Row(cells={"what": "memory <reserved>", "diff": Num(value=-4.12, lo=-5.04, hi=-3.21)}, note="worst"),),
)
part = Part(
    name="ramcount", title="ramCount", verdict=verdict,
    picture=(Picture(chart="curve", alt='waste falls & "exceeds" rise', caption="n = 12"),),
    before_after=(table,), certainty=("Sure enough.",),
)
page = Page(
    report="toy", question="Which rank?", verdict=verdict, parts=(part,), synthetic=True,
    archive=archive, window="1 to 2 March 2026", cannot_tell=("Killed jobs: the archive has none.",),
)
results = {
    "report": "toy", "page": page.to_json(),
    "numbers": {"rank": rank, "share": share, "ranks": ranks, "python": sys.executable},
    "digests": {"archive": "abc"},
}
(out / "results.json").write_text(json.dumps(results))
"""


@pytest.fixture
def notebooks(tmp_path: Path) -> Path:
    """A folder with two reports: `toy`, and `bare` without a parameters cell."""
    folder = tmp_path / "notebooks"
    folder.mkdir()
    cell = nbformat.v4.new_code_cell
    toy = nbformat.v4.new_notebook(
        cells=[cell(PARAMETERS, metadata={"tags": ["parameters"]}), cell(BODY)],
        metadata={"kernelspec": {"name": "elsewhere", "display_name": "x", "language": "python"}},
    )
    nbformat.write(toy, folder / "toy.ipynb")
    bare = nbformat.v4.new_notebook(
        cells=[cell("x = 1")],
        metadata={"kernelspec": {"name": "python3", "display_name": "x", "language": "python"}},
    )
    nbformat.write(bare, folder / "bare.ipynb")
    return folder


@pytest.fixture
def in_process(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Run notebooks in this process, which takes no time; returns what was run, grows with every run."""
    made: list[str] = []

    def execute(source: Path, folder: Path, given: dict[str, object]) -> Failure | None:
        made.append(folder.name)
        names: dict[str, object] = {}
        for cell in nbformat.read(source, as_version=4).cells:
            try:
                exec(cell.source, names)  # noqa: S102 - our own toy
            except Exception as error:  # noqa: BLE001 - as a kernel does
                name = type(error).__name__
                kind = getattr(errors, name, errors.ReportError)
                return Failure(cell=2, error=f"{name}: {error}", exit_code=kind.exit_code)
            if "parameters" in cell.metadata.get("tags", []):
                names |= {**given, "out_dir": str(folder)}
        return None

    monkeypatch.setattr(runner, "execute", execute)
    return made

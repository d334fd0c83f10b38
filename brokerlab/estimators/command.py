"""The command that predicts with a saved model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from brokerlab.console import noted
from brokerlab.errors import ConfigError

if TYPE_CHECKING:
    from brokerlab.estimators.predicting import Bounded
    from brokerlab.estimators.saving import Saved


def predict(
    model: Annotated[Path, typer.Argument(help="Folder of a saved model.")],
    jobs: Annotated[Path, typer.Argument(help="Jobs that have not run: .parquet or .csv.")],
    out: Annotated[Path, typer.Option(help="File of the bounds: .parquet or .csv.")],
    seen: Annotated[Path | None, typer.Option(help="Jobs that have finished since.")] = None,
    level: Annotated[
        list[float] | None, typer.Option(help="Share of jobs to stay below; may be repeated.")
    ] = None,
) -> None:
    """Bound the memory or walltime of jobs before they run; refused rows are kept with their reasons.

    Where a bound cannot be promised, what was requested stands in its place, and promised_LEVEL is false.

    Refused rows go to a file beside the bounds, OUT-refused.
    """
    from brokerlab.estimators.jobfiles import check_name, write
    from brokerlab.estimators.predicting import bound_file
    from brokerlab.estimators.saving import load

    check_name(out)
    refused = out.with_name(f"{out.stem}-refused{out.suffix}")
    read = {each.resolve() for each in (jobs, seen) if each}
    if read & {out.resolve(), refused.resolve()}:
        raise ConfigError(
            f"{out}, or {refused.name} beside it, is read, too; name another file for the bounds"
        )
    with noted():
        saved = load(model)
        found = bound_file(saved, jobs, seen, levels=sorted(set(level or [0.95])))
    write(found.bounds, out)
    if found.refused.height:
        write(found.refused, refused)
    else:
        refused.unlink(missing_ok=True)
    _tell(saved, found, out, refused)


def _tell(saved: Saved, found: Bounded, out: Path, refused: Path) -> None:
    """Print rows in and what became of them, and what the bounds are worth."""
    lost = found.refused["file"].value_counts()
    counts = dict(zip(lost["file"].to_list(), lost["count"].to_list(), strict=True))
    typer.echo(
        f"{found.jobs} rows in = {found.bounds.height} predicted + {counts.get('jobs', 0)} refused"
    )
    for name in (each for each in found.bounds.columns if each.startswith("promised_")):
        promised = found.bounds[name].sum()
        typer.echo(
            f"{promised} of {found.bounds.height} with a bound of {name.removeprefix('promised_')}; the others get what was requested"
        )
    if found.seen:
        known = found.seen - counts.get("seen", 0)
        typer.echo(
            f"{found.seen} finished jobs in = {known} seen + {counts.get('seen', 0)} refused"
        )
    for file, row, _, reason in found.refused.head(5).iter_rows():
        typer.echo(f"refused, {file} row {row}: {reason[:300]}")
    if found.refused.height:
        typer.echo(f"all of them: {refused}")
    said = saved.manifest
    measured = ", ".join(
        f"{100 * share:.1f} % at {float(name):g}" for name, share in said["coverage"].items()
    )
    typer.echo(
        f"{said['name']}, {said['quantity']} [{said['unit']}]; measured coverage: {measured or 'none'}"
    )
    typer.echo(f"{out}")

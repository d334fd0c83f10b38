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
    from brokerlab.estimators.predicting import bound_file, check_name, write
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
        result = bound_file(saved, jobs, seen, levels=sorted(set(level or [0.95])))
    write(result.bounds, out)
    if result.refused.height:
        write(result.refused, refused)
    else:
        refused.unlink(missing_ok=True)
    _tell(saved, result, out, refused)


def _tell(saved: Saved, bounded: Bounded, out: Path, refused: Path) -> None:
    """Print rows in and what became of them, and what the bounds are worth."""
    lost = bounded.refused["file"].value_counts()
    counts = dict(zip(lost["file"].to_list(), lost["count"].to_list(), strict=True))
    typer.echo(
        f"{bounded.jobs} rows in = {bounded.bounds.height} predicted + {counts.get('jobs', 0)} refused"
    )
    for name in (each for each in bounded.bounds.columns if each.startswith("promised_")):
        promised = bounded.bounds[name].sum()
        typer.echo(
            f"{promised} of {bounded.bounds.height} with a bound of {name.removeprefix('promised_')}; the others get what was requested"
        )
    if bounded.seen:
        known = bounded.seen - counts.get("seen", 0)
        typer.echo(
            f"{bounded.seen} finished jobs in = {known} seen + {counts.get('seen', 0)} refused"
        )
    for file, row, _, reason in bounded.refused.head(5).iter_rows():
        typer.echo(f"refused, {file} row {row}: {reason[:300]}")
    if bounded.refused.height:
        typer.echo(f"all of them: {refused}")
    manifest = saved.manifest
    measured = ", ".join(
        f"{100 * share:.1f} % at {float(name):g}" for name, share in manifest["coverage"].items()
    )
    typer.echo(
        f"{manifest['name']}, {manifest['quantity']} [{manifest['unit']}]; measured coverage: {measured or 'none'}"
    )
    typer.echo(f"{out}")

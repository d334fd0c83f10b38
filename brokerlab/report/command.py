"""The commands ``brokerlab report`` and ``brokerlab check``."""

import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from brokerlab.console import beside, print_line
from brokerlab.errors import BrokerlabError, BrokerlabWarning, ConfigError, ours


def report(
    name: Annotated[
        list[str] | None, typer.Argument(help="Which report, or reports; none lists them.")
    ] = None,
    parameter: Annotated[
        list[str] | None,
        typer.Option(
            "--parameter",
            "-p",
            metavar="NAME=VALUE",
            help="A parameter of its notebook; repeatable.",
        ),
    ] = None,
    *,
    every: Annotated[bool, typer.Option("--all", help="Run every report.")] = False,
    spark: Annotated[
        str,
        typer.Option(
            help="Master of a Spark session that carries jobs and files, for reports with this parameter."
        ),
    ] = "",
    out: Annotated[Path, typer.Option(help="Folder of all reports.")] = Path("reports"),
    describe: Annotated[
        bool,
        typer.Option("--parameters", help="List the report's parameters instead of running it."),
    ] = False,
    run_id: Annotated[
        str | None,
        typer.Option(
            help="Name of the run: a finished run of that name with the same inputs is not made again, other "
            "inputs are refused, what failed or was broken off is done again."
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one line of JSON instead, for programs.")
    ] = False,
    exit_code: Annotated[
        bool,
        typer.Option(
            "--exit-code",
            help="Tell the verdict by the exit code: 0 keep or a finding, 10 change, 6 no answer.",
        ),
    ] = False,
) -> None:
    """Run reports into <out>/<name>/<run id>/, two at once, and print what they answer and the paths of their pages."""
    from brokerlab.report import find
    from brokerlab.report.parameters import model
    from brokerlab.report.results import RESERVED

    names = find.names() if every else list(dict.fromkeys(name or ()))
    if not names:
        typer.echo("\n".join(find.names()))
        return
    if describe:
        from brokerlab.report.kit import parameters_cell

        for one in names:
            lines = parameters_cell(model(find.notebook(one), ours=True)).splitlines()
            typer.echo("\n".join(line for line in lines if not line.startswith(f"{RESERVED}:")))
        return
    given = [*(parameter or ()), *([f"spark={spark}"] if spark else [])]
    _run(names, given, out, run_id, as_json=as_json, exit_code=exit_code)


def check(
    archive: Annotated[Path, typer.Argument(help="Folder of the archive.")],
    *,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one line of JSON instead, for programs.")
    ] = False,
) -> None:
    """Print which reports can run on an archive, what the others lack, and what would be approximated."""
    from rich.table import Table
    from rich.text import Text

    from brokerlab.archive import approximate
    from brokerlab.report.needs import check as check_archive

    verdicts = check_archive(archive)
    if as_json:
        answer = {"archive": str(archive), "reports": verdicts.to_dicts()}
        print_line(answer)
        return
    console = Console(width=None if Console().is_terminal else 160, highlight=False)
    shown = Table("report", "can run", "lacks, or approximates", show_lines=True)
    for name, can_run, missing, derived, without in verdicts.iter_rows():
        made = [f"made from jobs: {', '.join(derived)}"] if derived else []
        shown.add_row(
            name, "yes" if can_run else "no", Text("\n".join([*missing, *made, *without]))
        )
    console.print(shown)
    if caveat := approximate.caveat(set(verdicts["derived"].explode().drop_nulls())):
        console.print(caveat, markup=False, soft_wrap=True)


def _run(
    names: Sequence[str],
    pairs: Iterable[str],
    out: Path,
    run_id: str | None,
    *,
    as_json: bool,
    exit_code: bool,
) -> None:
    """Run reports, print what comes out of each, and leave with the largest exit code, that of an error first."""
    from brokerlab.report.exits import of_report
    from brokerlab.report.results import verdict_line
    from brokerlab.report.runner import Run, run_many
    from brokerlab.report.summary import of_refusal, of_run

    codes = list[int]()

    def tell(done: Run) -> None:
        verdict = done.results["page"]["verdict"]
        asked = of_report(verdict["kind"], done.manifest.get("proposals", ())) if exit_code else 0
        codes.append(done.error.exit_code if done.error else asked)
        if as_json:
            print_line(of_run(done, codes[-1]))
            return
        if len(names) > 1:
            seconds = done.manifest["duration_s"]
            typer.echo(f"[{len(codes)} of {len(names)}] {done.report}, {seconds:.0f} s")
        if not done.error:
            typer.echo(verdict_line(verdict))
            typer.echo(str(done.page))
        elif len(names) > 1:
            typer.echo(str(done.error), err=True)

    def note(message: Warning | str, *_: object) -> None:
        beside().print(f"note: {message}", markup=False)

    try:
        with warnings.catch_warnings(), beside().status(escape(f"running {', '.join(names)}")):
            warnings.simplefilter("always", BrokerlabWarning)
            warnings.showwarning = note  # type: ignore[assignment]
            done = run_many(names, split(pairs), out_root=out, run_id=run_id, each=tell)
    except (BrokerlabError, OSError) as error:
        if as_json:
            for name in names[len(codes) :]:
                print_line(of_refusal(name, run_id, ours(error)))
        raise
    if errors := [one.error for one in done if one.error]:
        raise errors[0]
    if len(names) > 1 and not as_json:
        typer.echo(f"all pages: {out / 'index.html'}")
    raise typer.Exit(max(codes))


def split(pairs: Iterable[str]) -> dict[str, str]:
    """Split ``NAME=VALUE`` pairs."""
    values: dict[str, str] = {}
    problems = []
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key.strip():
            problems.append(f"-p {pair}: write it as NAME=VALUE")
        elif key.strip() in values:
            problems.append(f"-p {key.strip()} is given twice")
        values[key.strip()] = value
    if problems:
        raise ConfigError("; ".join(problems))
    return values

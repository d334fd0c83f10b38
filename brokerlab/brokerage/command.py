"""The command that lists the brokerages."""

from rich.console import Console


def brokerages() -> None:
    """Print the brokerages that are installed: ours, and those of other packages."""
    from rich.table import Table
    from rich.text import Text

    from brokerlab.brokerage.plugins import available

    shown = Table("name", "package", "version", "what")
    for row in available().iter_rows(named=True):
        what = row["problem"] or row["description"]
        style = "red" if row["problem"] else ""
        shown.add_row(
            *(Text(row[part]) for part in ("name", "package", "version")), Text(what, style=style)
        )
    Console(width=None if Console().is_terminal else 140).print(shown)

"""What reports that are not yet one file check of their parameters; goes with the last of them."""

from collections.abc import Callable

from brokerlab.errors import ConfigError

FEWEST_REPLICATES = 20


def problems(*judged: Callable[[], object]) -> list[str]:
    """Return what each judgement complains of."""
    told = []
    for judge in judged:
        try:
            judge()
        except ConfigError as problem:
            told.append(str(problem))
    return told

"""What is odd in the input, said once on the page instead of many times beside it."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from brokerlab.errors import BrokerlabWarning


@contextmanager
def noted() -> Iterator[list[str]]:
    """Keep what brokerlab warns of, which the same table may make it say many times, and pass on all other warnings.

    Yields:
        The messages; filled when the block ends.
    """
    messages: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", BrokerlabWarning)
        yield messages
    for one in caught:
        if issubclass(one.category, BrokerlabWarning):
            messages.append(str(one.message))
        else:
            warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)

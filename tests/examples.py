"""How many examples Hypothesis tries: a third of them in every run, all in `make test-long`."""

from __future__ import annotations

import os


def examples(most: int) -> int:
    """Return how many of so many examples this run tries, two at least."""
    return most if os.environ.get("EXAMPLES") == "all" else max(2, most // 3)

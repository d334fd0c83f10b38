"""Dataclasses of arrays with one entry per task, job or attempt: some of the entries, several one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import is_dataclass
from typing import Any, TypeVar

import numpy as np

from brokerlab.numerics import IntArray

T = TypeVar("T")
"""A dataclass of arrays, and of such dataclasses."""


def take(whole: T, index: IntArray | slice) -> T:
    """Take some of the entries."""
    values: dict[str, Any] = {
        name: take(held, index) if is_dataclass(held) else held[index]
        for name, held in vars(whole).items()
    }
    return type(whole)(**values)


def join(parts: Sequence[T]) -> T:
    """Put several of one class one after the other."""
    values: dict[str, Any] = {}
    for name, first in vars(parts[0]).items():
        held = [getattr(part, name) for part in parts]
        values[name] = join(held) if is_dataclass(first) else np.concatenate(held)
    return type(parts[0])(**values)

"""Dataclasses of arrays with one entry per task, job or attempt: some of the entries, several one after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, TypeVar

import numpy as np

from brokerlab.numerics import BoolArray, IntArray

T = TypeVar("T")
"""A dataclass of arrays, and of such dataclasses."""


def take(whole: T, index: IntArray | slice) -> T:
    """Take some of the entries."""
    return _made(lambda held: held[index], whole)


def join(parts: Sequence[T]) -> T:
    """Put several of one class one after the other."""
    return _made(lambda *held: np.concatenate(held), *parts)


def where(chosen: BoolArray, new: T, old: T) -> T:
    """Take entries of one class where chosen, of another elsewhere."""
    return _made(lambda one, other: np.where(chosen, one, other), new, old)


def _made(function: Callable[..., Any], *parts: T) -> T:
    """Apply a function to each of the arrays."""
    values: dict[str, Any] = {}
    for field in fields(parts[0]):  # type: ignore[arg-type]
        held = [getattr(part, field.name) for part in parts]
        inner = is_dataclass(held[0])
        values[field.name] = _made(function, *held) if inner else function(*held)
    return type(parts[0])(**values)

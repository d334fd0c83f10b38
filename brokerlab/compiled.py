"""Loops that have no form with grouping and joins, compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

import numba

Compiled = TypeVar("Compiled", bound=Callable[..., object])


def compiled(function: Compiled) -> Compiled:
    """Compile a function, and keep the machine code on disk where a folder for it can be written."""
    try:
        return cast("Compiled", numba.njit(cache=True)(function))
    except RuntimeError:
        return cast("Compiled", numba.njit(function))

"""Loops that have no form with grouping and joins, compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast
from uuid import uuid4

import numba
from numba.core.bytecode import FunctionIdentity

FunctionIdentity._unique_ids = iter(lambda: uuid4().int, 0)  # type: ignore[assignment]  # noqa: SLF001
"""Compiled pieces are linked by names that end in a number, which Numba counts from 1 in every process.

So two pieces kept by different processes may have one name, such as the sorting of values and that of places, and where both are
loaded one of them is called for the other: numbers are then wrong without a word. Numbers that no other process draws keep
them apart.

Source: https://github.com/numba/numba/issues/10486.
"""
Compiled = TypeVar("Compiled", bound=Callable[..., object])
_UNCOUNTED: dict[str, Any] = {"_nrt": False}


def compiled(function: Compiled) -> Compiled:
    """Compile a function, and keep the machine code on disk where a folder for it can be written."""
    try:
        return cast("Compiled", numba.njit(cache=True)(function))
    except RuntimeError:
        return cast("Compiled", numba.njit(function))


def compiled_in_place(function: Compiled) -> Compiled:
    """Compile a function that makes no array and only changes those it is given.

    References to arrays are then not counted. The counting is atomic, and in small functions called millions of times
    it is most of the time: an event loop without it is ten times as fast.

    Source: https://github.com/numba/numba/issues/2345, where Numba's developers name the option.
    """
    try:
        return cast("Compiled", numba.njit(cache=True, **_UNCOUNTED)(function))
    except RuntimeError:
        return cast("Compiled", numba.njit(**_UNCOUNTED)(function))

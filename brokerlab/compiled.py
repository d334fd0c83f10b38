"""Loops that have no form with grouping and joins, compiled."""

from __future__ import annotations

import hashlib
import inspect
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
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
    return _kept(function, {})


def compiled_in_place(function: Compiled) -> Compiled:
    """Compile a function that makes no array and only changes those it is given.

    References to arrays are then not counted. The counting is atomic, and in small functions called millions of times
    it is most of the time: an event loop without it is ten times as fast.

    Source: https://github.com/numba/numba/issues/2345, where Numba's developers name the option.
    """
    return _kept(function, _UNCOUNTED)


def _kept(function: Compiled, options: dict[str, Any]) -> Compiled:
    """Compile, and keep what was compiled until its file changes, or one that it calls or takes constants from."""
    try:
        result = numba.njit(cache=True, **options)(function)
    except RuntimeError:
        return cast("Compiled", numba.njit(**options)(function))
    if hasattr(result, "_cache"):  # with NUMBA_DISABLE_JIT it is the function itself
        file = result._cache._cache_file  # noqa: SLF001 - Numba looks at the function's own file alone
        file._source_stamp = (file._source_stamp, sources_digest(Path(inspect.getfile(function))))  # noqa: SLF001
    return cast("Compiled", result)


@cache
def sources_digest(file: Path) -> str:
    """Return the digest of a file and of those it imports from, on through those that have compiled functions themselves.

    Calls and constants of other files are compiled in.

    Source: https://numba.readthedocs.io/en/stable/developer/caching.html, "Caching limitations".
    """
    texts: dict[Path, str] = {}
    left = [file]
    while left:
        path = left.pop()
        texts[path] = text = path.read_text(encoding="utf-8")
        if path == file or "from brokerlab.compiled import" in text:
            left += {each for each in _imported(text) if each not in texts and each.is_file()}
    return hashlib.sha256("".join(sorted(texts.values())).encode()).hexdigest()


def _imported(text: str) -> Iterator[Path]:
    """Return where what a file imports from this package may be: a module, or modules of a package."""
    for module, names in re.findall(r"from brokerlab\.(\S+) import (\([^)]*\)|.*)", text):
        place = Path(__file__).parent.joinpath(*module.split("."))
        yield from (
            place.with_suffix(".py"),
            *(place / f"{name}.py" for name in re.findall(r"\w+", names)),
        )

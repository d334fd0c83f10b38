"""Loops that have no form with grouping and joins, compiled."""

from __future__ import annotations

import hashlib
import inspect
import re
from collections.abc import Callable, Iterator
from functools import cache, cached_property, update_wrapper
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar, cast
from uuid import uuid4

Compiled = TypeVar("Compiled", bound=Callable[..., object])
_UNCOUNTED: dict[str, Any] = {"_nrt": False}


@cache
def numba() -> ModuleType:
    """Load Numba, which takes a quarter of a second, with names of its own for what we compile.

    Compiled pieces are linked by names that end in a number, which Numba counts from 1 in every process.
    So two pieces kept by different processes may have one name, such as the sorting of values and that of places, and where both
    are loaded one of them is called for the other: numbers are then wrong without a word. Numbers that no other process draws
    keep them apart.

    Source: https://github.com/numba/numba/issues/10486.
    """
    import numba
    from numba.core.bytecode import FunctionIdentity
    from numba.extending import typeof_impl

    FunctionIdentity._unique_ids = iter(lambda: uuid4().int, 0)  # type: ignore[assignment]  # noqa: SLF001
    typeof_impl.register(_OnFirstCall)(lambda called, context: typeof_impl(called.made, context))
    return numba


def compiled(function: Compiled) -> Compiled:
    """Compile a function, and keep the machine code on disk where a folder for it can be written."""
    return cast("Compiled", _OnFirstCall(function, {}))


def compiled_in_place(function: Compiled) -> Compiled:
    """Compile a function that makes no array and only changes those it is given.

    References to arrays are then not counted. The counting is atomic, and in small functions called millions of times
    it is most of the time: an event loop without it is ten times as fast.

    Source: https://github.com/numba/numba/issues/2345, where Numba's developers name the option.
    """
    return cast("Compiled", _OnFirstCall(function, _UNCOUNTED))


class _OnFirstCall:
    """A function that is compiled when it is called, or when another one is compiled that calls it."""

    def __init__(self, function: Callable[..., object], options: dict[str, Any]) -> None:
        update_wrapper(self, function)
        self._plain, self._options = function, options

    @cached_property
    def made(self) -> Any:
        """What Numba makes of it."""
        return _kept(self._plain, self._options)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.made(*args, **kwargs)

    def __reduce__(self) -> str:
        """Go to another process by name."""
        return self._plain.__qualname__


def _kept(function: Callable[..., object], options: dict[str, Any]) -> Any:
    """Compile, and keep what was compiled until its file changes, or one that it calls or takes constants from."""
    njit = numba().njit
    try:
        result = njit(cache=True, **options)(function)
    except RuntimeError:
        return njit(**options)(function)
    if hasattr(result, "_cache"):  # with NUMBA_DISABLE_JIT it is the function itself
        file = result._cache._cache_file  # noqa: SLF001 - Numba looks at the function's own file alone
        file._source_stamp = (file._source_stamp, sources_digest(Path(inspect.getfile(function))))  # noqa: SLF001
    return result


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

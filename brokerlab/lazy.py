"""What the page of calls needs: names and modules that load on first use, and settings that are refused with the nearest name."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from importlib import import_module
from types import ModuleType
from typing import Any, ParamSpec, TypeVar

from brokerlab.errors import ConfigError, nearest

P = ParamSpec("P")
R = TypeVar("R")


class Later(ModuleType):
    """A module that is loaded when one of its names is asked for: for those that take long, and that not everybody needs.

    Example:
        >>> Later("math").sqrt(4.0)
        2.0
    """

    def __getattr__(self, name: str) -> Any:
        """Return a name of the module."""
        return getattr(import_module(self.__name__), name)

    def __dir__(self) -> list[str]:
        """Return the names of the module."""
        return dir(import_module(self.__name__))

    def __reduce__(self) -> tuple[type[Later], tuple[str]]:
        """Go to another process by name."""
        return type(self), (self.__name__,)


def lazy(
    package: str, homes: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` of a package; homes are ``name: module``, or ``module:name there``."""

    def find(name: str) -> Any:
        if name not in homes:
            hint = "" if name.startswith("_") else f": {nearest(name, homes)}"
            raise AttributeError(f"module '{package}' has no attribute '{name}'{hint}")
        module, _, attribute = homes[name].partition(":")
        result = import_module(f"{package}.{module or name}")
        return getattr(result, attribute or name) if module else result

    return find, lambda: sorted(homes)


def call(name: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Let a public call refuse settings that it does not have, naming the nearest.

    Example:
        >>> @call("scouts.guess")
        ... def guess(*, rank: int = 75) -> int:
        ...     return rank
        >>> guess(rnak=80)
        Traceback (most recent call last):
        brokerlab.errors.ConfigError: scouts.guess has no setting 'rnak': did you mean 'rank'?
    """

    def named(function: Callable[P, R]) -> Callable[P, R]:
        known = inspect.signature(function).parameters

        @functools.wraps(function)
        def checked(*args: P.args, **kwargs: P.kwargs) -> R:
            if unknown := sorted(kwargs.keys() - known):
                hint = nearest(unknown[0], known)
                raise ConfigError(f"{name} has no setting '{unknown[0]}': {hint}")
            return function(*args, **kwargs)

        return checked

    return named

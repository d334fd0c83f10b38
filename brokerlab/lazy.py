"""What the page of calls needs: names that load their module on first use, and settings that are refused with the nearest name."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, ParamSpec, TypeVar

from brokerlab.errors import ConfigError, nearest

P = ParamSpec("P")
R = TypeVar("R")


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

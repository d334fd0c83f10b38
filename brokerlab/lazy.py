"""Names of a package that load their module when they are first asked for, so that importing the package stays cheap."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from brokerlab.errors import nearest


def lazy(
    package: str, homes: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` of a package.

    Args:
        package: Its ``__name__``.
        homes: Name to where it is, below the package: ``module`` for what has the same name there, ``module:attribute`` for
            what has another one, an empty text for a module of that name.

    Example:
        >>> find, names = lazy("brokerlab", {"BrokerlabError": "errors", "units": ""})
        >>> find("BrokerlabError").__name__, find("units").__name__, names()
        ('BrokerlabError', 'brokerlab.units', ['BrokerlabError', 'units'])
    """

    def find(name: str) -> Any:
        if name not in homes:
            hint = "" if name.startswith("_") else f": {nearest(name, homes)}"
            raise AttributeError(f"module '{package}' has no attribute '{name}'{hint}")
        module, _, attribute = homes[name].partition(":")
        found = import_module(f"{package}.{module or name}")
        return getattr(found, attribute or name) if module else found

    return find, lambda: sorted(homes)

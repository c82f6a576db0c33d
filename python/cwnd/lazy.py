"""Lazy imports: names of a package, and functions that higher packages register."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

#: Registered functions of higher packages as `module:function`, by purpose.
_REGISTERED: dict[str, str] = {}


def lazy_exports(
    package: str, modules: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Returns `__getattr__` and `__dir__` of a package whose names are imported at first use.

    `modules` maps each module of the package to its public names, separated by spaces.
    """
    module_of = {
        name: f"{package}.{file}" for file, names in modules.items() for name in names.split()
    }

    def find(name: str) -> Any:
        if name not in module_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(module_of[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    return find, lambda: list(module_of)


def register(functions: Mapping[str, str]) -> None:
    """Registers functions of higher packages, by purpose, as `module:function`."""
    _REGISTERED.update(functions)


def registered(name: str) -> Any:
    """Imports and returns the function registered for a purpose.

    Raises:
        KeyError: No function is registered for it.
    """
    module, _, function = _REGISTERED[name].partition(":")
    return getattr(import_module(module), function)

"""Tables of `study.toml`, read with errors that name the place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from cwnd.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class TomlTable:
    """A table of the file, and its name in errors.

    Each method raises an `InputError` for a missing key or another type.
    """

    data: Mapping[str, Any]
    where: str

    def text(self, key: str, default: str | None = None) -> str:
        """Text of a key."""
        return cast("str", self._get(key, str, "text in quotes", default))

    def number(self, key: str) -> float | None:
        """Number of a key, or `None`."""
        if key not in self.data:
            return None
        value = self.data[key]
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise InputError(f"{self.where}: `{key}` is a number, not {value!r:.80}")
        return value

    def flag(self, key: str, *, default: bool) -> bool:
        """Truth value of a key."""
        return cast("bool", self._get(key, bool, "true or false", default))

    def table(self, key: str, default: dict[str, Any] | None = None) -> dict[str, Any]:
        """Table of a key, as a copy."""
        return dict(self._get(key, dict, "a table", default))

    def texts(self, key: str, default: list[str] | None = None) -> tuple[str, ...]:
        """Texts of a key."""
        found = self._get(key, list, "a list of texts", default)
        if not all(isinstance(each, str) for each in found):
            raise InputError(f"{self.where}: `{key}` is a list of texts, not {found!r:.80}")
        return tuple(found)

    def tables(self, key: str, where: str, default: list[Any] | None = None) -> list[TomlTable]:
        """Tables `[[key]]`, numbered in errors."""
        found = self._get(key, list, f"a list of tables [[{key}]]", default)
        if not all(isinstance(each, dict) for each in found):
            raise InputError(f"{self.where}: `{key}` is a list of tables [[{key}]]")
        return [TomlTable(each, f"{where}: {key} {i + 1}") for i, each in enumerate(found)]

    def _get(self, key: str, kind: type, wanted: str, default: Any = None) -> Any:
        value = self.data.get(key, default)
        if value is None:
            raise InputError(f"{self.where}: `{key}` is missing")
        if not isinstance(value, kind):
            raise InputError(f"{self.where}: `{key}` is {wanted}, not {value!r:.80}")
        return value

    def named(self, key: str) -> list[tuple[str, TomlTable]]:
        """Tables `[key.NAME]` with their names."""
        found = self.table(key, {})
        for name, each in found.items():
            if not isinstance(each, dict):
                raise InputError(f"{self.where}: `{key}.{name}` is a table, not {each!r:.80}")
        return [
            (name, TomlTable(each, f"{self.where}: {key}.{name}")) for name, each in found.items()
        ]

    def only(self, keys: set[str]) -> None:
        """Refuses other keys than these.

        Raises:
            InputError: There is another key.
        """
        unknown = set(self.data) - keys
        if unknown:
            raise InputError(f"{self.where}: there is no key `{min(unknown)}`")

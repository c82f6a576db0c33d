"""Tables of `study.toml`, read with errors that name file, line and key."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from cwnd.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

#: Keys from the top of a file to a table or value; a table of a list has its index.
Path: TypeAlias = tuple[str | int, ...]

_HEADER = re.compile(r"\s*(\[\[?)\s*(.+?)\s*\]\]?\s*(?:#.*)?$")
_KEY = re.compile(
    r"\s*((?:[\w-]+|\"[^\"]*\"|'[^']*')(?:\s*\.\s*(?:[\w-]+|\"[^\"]*\"|'[^']*'))*)\s*="
)
_PART = re.compile(r"\"([^\"]*)\"|'([^']*)'|([\w-]+)")


def meant(name: str, known: Iterable[str]) -> str:
    """Text that suggests the known name nearest to a wrong one; empty if none is near."""
    near = difflib.get_close_matches(name, list(known), 1)
    return f" (did you mean `{near[0]}`?)" if near else ""


def line_of(text: str, path: Path) -> int:
    """Line of a table or value of a TOML text: of the longest part of its path that is found.

    The parser of scenarios knows the lines, but its tables in Python have none.
    """
    places: dict[Path, int] = {}
    for place, number in _places(text):
        places.setdefault(place, number)
    parts = (path[:length] for length in range(len(path), 0, -1))
    return next((places[part] for part in parts if part in places), 1)


def _places(text: str) -> Iterator[tuple[Path, int]]:
    """Paths of the headers and keys of a text with their lines."""
    table: Path = ()
    counts: dict[Path, int] = {}
    quote = ""
    for number, line in enumerate(text.splitlines(), 1):
        inside, quote = quote, _open_quote(line, quote)
        if inside:
            continue
        if header := _HEADER.match(line):
            table = ()
            *above, last = _parts(header[2])
            for name in above:
                table = (*table, name)
                if table in counts:
                    table = (*table, counts[table] - 1)
            table = (*table, last)
            if header[1] == "[[":
                counts[table] = counts.get(table, 0) + 1
                table = (*table, counts[table] - 1)
            yield table, number
        elif key := _KEY.match(line):
            yield (*table, *_parts(key[1])), number


def _parts(dotted: str) -> list[str]:
    return [next(filter(None, found), "") for found in _PART.findall(dotted)]


def _open_quote(line: str, quote: str) -> str:
    """Quotes of a text of several lines that is open after a line."""
    for found in re.findall(r'"""|\'\'\'', line):
        quote = "" if found == quote else quote or found
    return quote


@dataclass(frozen=True)
class TomlTable:
    """A table of the file, and its name in errors.

    Methods that read a key raise an `InputError` if it has another type, or is missing and has no
    default.
    """

    data: Mapping[str, Any]
    #: Name and text of the file.
    file: str
    text: str = ""
    path: Path = ()
    #: Name in errors; empty for the whole file.
    name: str = ""

    def error(self, message: str, *path: str | int) -> InputError:
        """Builds an error with the line of a key, or of the table."""
        name = f"{self.name}: " if self.name else ""
        return InputError(f"{self.line(*path)}: {name}{message}")

    def line(self, *path: str | int) -> str:
        """File and line of a key, or of the table."""
        return f"{self.file}:{line_of(self.text, (*self.path, *path))}"

    def string(self, key: str, default: str | None = None) -> str:
        """Text of a key."""
        return cast("str", self._get(key, str, "text in quotes", default))

    def number(self, key: str) -> float | None:
        """Number of a key, or `None`."""
        if key not in self.data:
            return None
        value = self.data[key]
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.error(f"`{key}` is a number, not {value!r:.80}", key)
        return value

    def flag(self, key: str, *, default: bool) -> bool:
        """Truth value of a key."""
        return cast("bool", self._get(key, bool, "true or false", default))

    def table(self, key: str, default: dict[str, Any] | None = None) -> dict[str, Any]:
        """Table of a key, as a copy."""
        return dict(self._get(key, dict, "a table", default))

    def strings(self, key: str, default: list[str] | None = None) -> tuple[str, ...]:
        """Texts of a key."""
        found = self._get(key, list, "a list of texts", default)
        if not all(isinstance(each, str) for each in found):
            raise self.error(f"`{key}` is a list of texts, not {found!r:.80}", key)
        return tuple(found)

    def choices(self, key: str, known: Iterable[str], default: list[str]) -> tuple[str, ...]:
        """Texts of a key that are known ones."""
        found, known = self.strings(key, default), list(known)
        for each in found:
            if each not in known:
                suggested = meant(each, known)
                raise self.error(
                    f"`{key}` has `{each}`{suggested}; it is of {', '.join(known)}", key
                )
        return found

    def tables(self, key: str, default: list[Any] | None = None) -> list[TomlTable]:
        """Tables `[[key]]`, numbered in errors."""
        found = self._get(key, list, f"a list of tables [[{key}]]", default)
        if not all(isinstance(each, dict) for each in found):
            raise self.error(f"`{key}` is a list of tables [[{key}]]", key)
        return [
            self._below(each, f"{self.name}: {key} {i + 1}".removeprefix(": "), key, i)
            for i, each in enumerate(found)
        ]

    def _below(self, data: Mapping[str, Any], name: str, *path: str | int) -> TomlTable:
        return replace(self, data=data, name=name, path=(*self.path, *path))

    def inner(self, key: str) -> TomlTable:
        """Table of a key."""
        return self._below(self.table(key), f"{self.name}, {key}", key)

    def _get(self, key: str, kind: type, wanted: str, default: Any = None) -> Any:
        value = self.data.get(key, default)
        if value is None:
            raise self.error(f"`{key}` is missing; it is {wanted}")
        if not isinstance(value, kind):
            raise self.error(f"`{key}` is {wanted}, not {value!r:.80}", key)
        return value

    def named(self, key: str) -> list[tuple[str, TomlTable]]:
        """Tables `[key.NAME]` with their names."""
        found = self.table(key, {})
        for name, each in found.items():
            if not isinstance(each, dict):
                raise self.error(f"`{key}.{name}` is a table, not {each!r:.80}", key, name)
        return [
            (name, self._below(each, f"{key}.{name}", key, name)) for name, each in found.items()
        ]

    def only(self, keys: Iterable[str]) -> None:
        """Refuses other keys than these.

        Raises:
            InputError: There is another key.
        """
        known = sorted(keys)
        for name in self.data:
            if name not in known:
                suggested = meant(name, known)
                raise self.error(
                    f"there is no key `{name}`{suggested}; keys are {', '.join(known)}", name
                )

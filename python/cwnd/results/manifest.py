"""Manifest of a result: its scenario, version, cost and origin."""

from __future__ import annotations

import hashlib
from dataclasses import MISSING, asdict, dataclass, field, fields
from types import UnionType
from typing import TYPE_CHECKING, Any, TypeVar, get_args, get_origin, get_type_hints

from cwnd.errors import InputError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

#: Format name that marks a directory as a result of cwnd.
FORMAT = "cwnd-result"
#: Version of the layout of the directory; a reader refuses a newer one.
FORMAT_VERSION = 2
#: Kinds of results, by the command that makes them.
RUN, LINK, INFER, AGREE = "run", "link", "infer", "agree"


@dataclass(frozen=True)
class Axis:
    """One axis of a sweep, and the columns that hold it."""

    name: str
    #: Column with the labels.
    column: str
    #: Column with the values in SI base units; `None` for values that are no numbers.
    value_column: str | None
    #: SI base unit of the values.
    unit: str | None
    #: Labels in the order of the scenario.
    labels: list[str]
    #: Base labels of each label whose gain is computed.
    over: dict[str, list[str]] = field(default_factory=dict)

    def shown(self, label: str) -> str:
        """Text of a label in tables and figures."""
        return label


@dataclass(frozen=True)
class Header:
    """The part of a manifest that results of all kinds have."""

    name: str
    cwnd_version: str
    axes: list[Axis]
    kind: str = RUN
    #: Number of rows of each table; `None` in results of version 1, which do not record it.
    tables: dict[str, int] | None = None

    @classmethod
    def from_json(cls, data: object, where: str) -> Header:
        """Parses the header from the manifest of a result of any kind.

        Raises:
            InputError: It is damaged, or of a newer version.
        """
        return described(cls, data, where, FORMAT, FORMAT_VERSION)


@dataclass(frozen=True)
class Manifest:
    """Manifest of a result of `cwnd run`."""

    name: str
    description: str
    cwnd_version: str
    #: SHA-256 of the scenario file as given.
    scenario_sha256: str
    #: Arguments of `--set`, as given.
    overrides: list[str]
    #: Argument of `--seed`; `None` without it.
    seed_override: int | None
    seeds: list[int]
    runs: int
    axes: list[Axis]
    warnings: list[dict[str, Any]]
    #: Counters of the mechanisms, summed over all runs.
    activity: dict[str, int]
    #: SHA-256 over the digests of all records, in order of the runs.
    records_sha256: str
    #: Start of the first session, ISO 8601 in UTC; empty if it is not known.
    started_at: str
    #: Elapsed and CPU time in seconds, summed over the sessions that wrote the result. The CPU time
    #: is that of whole processes, or of the simulating threads if `cwnd.run` simulated it.
    wall_s: float
    cpu_s: float
    threads: int
    machine: dict[str, Any]
    #: For each run of a checked result the hash of all its steps (time, event, random draws).
    steps_hashes: list[str] | None = None
    #: Number of missing runs of an incomplete sweep.
    missing: int = 0
    #: Path of the scenario file relative to the directory of the result; `None` without a file.
    scenario_file: str | None = None
    #: Facts about runs on Linux: kernel, settings, calibration, lateness of routers, invalid runs.
    world: dict[str, Any] | None = None
    #: The simulator, or the kernel and testbed; part of the names of the cells.
    engine: str | None = None
    #: Installed packages whose controllers ran: name, version and hash of the library.
    installed: list[str] | None = None
    #: The command that made it: "run".
    kind: str = RUN

    def to_json(self) -> dict[str, Any]:
        """Returns the manifest as the JSON object that is written."""
        return {"format": FORMAT, "format_version": FORMAT_VERSION, **asdict(self)}

    @classmethod
    def from_json(cls, data: object, where: str) -> Manifest:
        """Parses a manifest; unknown fields are ignored.

        Raises:
            InputError: It is damaged, or of a newer version.
        """
        return described(cls, data, where, FORMAT, FORMAT_VERSION)


Described = TypeVar("Described", bound="DataclassInstance")


def described(
    kind: type[Described], data: object, where: str, form: str, version: int
) -> Described:
    """Parses the description in a directory into a dataclass with checked types.

    Args:
        kind: Type of the description.
        data: Parsed JSON.
        where: Name of the file in messages.
        form: Expected value of `format`.
        version: Newest supported `format_version`.

    Raises:
        InputError: It is damaged, of another format, or of a newer version.
    """
    if not isinstance(data, dict) or data.get("format") != form:
        raise InputError(f"{where}: not the description of a {form}")
    written = data.get("format_version")
    if not isinstance(written, int) or written > version:
        raise InputError(
            f"{where}: written by a newer cwnd ({data.get('cwnd_version')}); update cwnd to read it"
        )
    try:
        # Fields with a default were added later, so that older descriptions lack them.
        known = {
            field.name: data[field.name]
            for field in fields(kind)
            if field.name in data or field.default is MISSING
        }
        known["axes"] = [Axis(**axis) for axis in known["axes"]]
    except (KeyError, TypeError) as error:
        raise InputError(f"{where}: damaged ({error})") from error
    found = kind(**known)
    for part in (found, *known["axes"]):
        _check_types(part, where)
    return found


def _check_types(described: DataclassInstance, where: str) -> None:
    hints = get_type_hints(type(described))
    for each in fields(described):
        value = getattr(described, each.name)
        if not _is_a(value, hints[each.name]):
            raise InputError(f"{where}: damaged (`{each.name}` is {value!r:.80})")


def _is_a(value: object, hint: Any) -> bool:
    """`True` if a JSON value matches a type hint, for the hints that descriptions use."""
    if hint is Any:
        return True
    if hint in (int, float):
        # JSON may write the float 2.0 as 2.
        return isinstance(value, int | hint) and not isinstance(value, bool)
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is UnionType:
        return any(_is_a(value, each) for each in arguments)
    if origin is list:
        return isinstance(value, list) and all(_is_a(each, arguments[0]) for each in value)
    if origin is dict:
        return isinstance(value, dict) and all(_is_a(each, arguments[1]) for each in value.values())
    return isinstance(value, hint)


def sha256(parts: list[str]) -> str:
    """Computes the SHA-256 of strings joined by newlines, in hexadecimal."""
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()

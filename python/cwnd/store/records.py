"""Results of `cwnd link`, `cwnd infer` and `cwnd agree`: writing, reading and comparison."""

from __future__ import annotations

import io
import json
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from cwnd import _core
from cwnd.errors import DamageError, InputError
from cwnd.files import SUMS, Sums, checksums, read_object
from cwnd.machine import machine
from cwnd.results import AGREE, FORMAT, FORMAT_VERSION, INFER, LINK, RUN
from cwnd.store import write
from cwnd.store.layout import AGREEMENT, INFERRED, LINKED, MANIFEST, RRUL, SUMS_KEY

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    import polars as pl

    from cwnd.results import Verdict


def pack(
    kind: str, name: str, tables: Mapping[str, pl.DataFrame], documents: Mapping[str, bytes]
) -> dict[str, bytes]:
    """Formats the files of a result, by name.

    They must be written in their order: `SHA256SUMS` is last, and no older one may exist meanwhile.

    Args:
        kind: One of the kinds of `results.manifest`.
        name: Name of the scenario, or of the measured object.
        tables: Data frames; each becomes a Parquet file of its name.
        documents: Other files, by name.
    """
    files = dict(documents)
    for table, frame in tables.items():
        columns = io.BytesIO()
        frame.write_parquet(columns, compression="zstd")
        files[f"{table}.parquet"] = columns.getvalue()
    manifest = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "kind": kind,
        "name": name,
        "cwnd_version": _core.__version__,
        "axes": [],
        "tables": {table: frame.height for table, frame in tables.items()},
        "machine": machine(),
        SUMS_KEY: SUMS,
    }
    files[MANIFEST] = (json.dumps(manifest, indent=2, ensure_ascii=False) + "\n").encode()
    sums = [(file, checksums.sha256(content)) for file, content in files.items()]
    return {**files, SUMS: checksums.listed(sums)}


#: Names of documents that say whether a run was valid.
_VALIDITY = {LINK: LINKED, AGREE: AGREEMENT}


@dataclass(frozen=True)
class Records:
    """A stored result of a command other than `cwnd run`, or a test of `cwnd rrul`."""

    path: Path
    kind: str
    #: Name of the scenario, or of the measured object.
    name: str
    files: Sums

    @property
    def command(self) -> str:
        """Command of cwnd that made it."""
        return f"cwnd {'rrul' if self.kind == RUN else self.kind}"

    def table(self, name: str) -> pl.DataFrame:
        """Reads a table.

        Raises:
            DamageError: The file is missing or damaged.
        """
        import polars as pl

        return pl.read_parquet(self.files.file(f"{name}.parquet"))

    def document(self, name: str) -> dict[str, Any]:
        """Reads a JSON document.

        Raises:
            DamageError: The file is missing or damaged.
        """
        return read_object(self.files.data(name))

    def flaws(self) -> list[str]:
        """Returns the reasons why a run in real time is invalid.

        Raises:
            DamageError: A file is missing or damaged.
        """
        if self.kind not in _VALIDITY:
            return []
        found = self.document(_VALIDITY[self.kind])
        flaws: list[str] = found.get("world", found).get("flaws", [])
        return flaws


def open_records(path: Path) -> Records | None:
    """Opens a result; `None` if it is one of `cwnd run`, or none."""
    from cwnd.store import read

    if write.is_sweep(path) or not read.is_result(path):
        return None
    header, files = read.header(path)
    return None if header.kind == RUN else Records(path, header.kind, header.name, files)


def open_rrul(path: Path) -> Records | None:
    """Opens a simulated test of `cwnd rrul`; `None` if it is none.

    The list of hashes in its directory is that of the run, without the test's files.
    """
    from cwnd.store import read

    if not (path / RRUL).is_file() or not read.is_result(path):
        return None
    header, files = read.header(path)
    is_test = header.kind == RUN and header.name == "rrul"
    return Records(path, RUN, header.name, replace(files, of=None)) if is_test else None


#: Subject of a number and its quantity, and its value in SI units.
_Number: TypeAlias = tuple[tuple[str, str], float | None]


@dataclass(frozen=True)
class Pair:
    """A number that two results have in common."""

    #: Direction of a link, flow or ping of an RRUL test, method of counting timeouts, or point with
    #: its group of flows.
    of: str
    quantity: str
    before: float | None
    after: float | None

    @property
    def difference(self) -> float | None:
        """After minus before; `None` if one of them is."""
        if self.before is None or self.after is None:
            return None
        return self.after - self.before

    def to_json(self) -> dict[str, Any]:
        """Returns the pair and its difference as a JSON object."""
        return {**asdict(self), "difference": self.difference}


def compare_records(before: Records, after: Records) -> list[Pair]:
    """Compares numbers that both results have, in SI units.

    Numbers of links are the columns of `links`, by direction, and what `cwnd rrul` measured. Those
    of captures are counts and shares of connections with timeouts. Those of agreements are
    differences between Linux and simulator.

    Raises:
        InputError: The results are of different commands, and not a real and a simulated RRUL test.
    """
    is_rrul = all((each.path / RRUL).is_file() for each in (before, after))
    if before.kind != after.kind and not is_rrul:
        raise InputError(
            f"{before.path} is a result of `{before.command}`, and {after.path} one of"
            f" `{after.command}`; results of the same command can be compared"
        )
    old, new = _compared(before), _compared(after)
    return [Pair(*key, old[key], new[key]) for key in old if key in new]


def _compared(found: Records) -> dict[tuple[str, str], float | None]:
    """Numbers of a result, and of its RRUL test if it has one; of a simulated test only these."""
    own = [] if found.kind == RUN else numbers(found)
    return dict([*own, *(_of_rrul(found) if (found.path / RRUL).is_file() else ())])


def judge_records(pairs: Sequence[Pair], conditions: Iterable[str]) -> list[Verdict]:
    """Judges conditions on the numbers of two results; without seeds each number decides.

    Raises:
        InputError: A condition has another form, or names none of the numbers.
    """
    # Polars starts threads, and `cwnd link` needs this module before it blocks signals.
    from cwnd.results import Condition, without_unit

    quantities = list(dict.fromkeys(pair.quantity for pair in pairs if pair.before is not None))

    def column(name: str) -> str:
        known = {given: each for each in quantities for given in (without_unit(each), each)}
        if name not in known:
            raise InputError(
                f"`{name}` is no number of these results; there are {', '.join(quantities)}"
            )
        return known[name]

    found = []
    for condition in (Condition.parse(text, column) for text in conditions):
        for pair in pairs:
            if pair.quantity != condition.metric or pair.before is None:
                continue
            after = {} if pair.after is None else {0: pair.after}
            found.append(condition.judge({}, pair.of, {0: pair.before}, after))
    return found


def numbers(found: Records) -> list[_Number]:
    """Lists the numbers of a result: subject, quantity, and value in SI units."""
    return list({LINK: _of_link, INFER: _of_captures, AGREE: _of_agreements}[found.kind](found))


def _of_link(found: Records) -> Iterator[_Number]:
    import polars as pl

    table = found.table("links")
    quantities = table.drop("link_id").select(pl.selectors.numeric()).columns
    for row in table.iter_rows(named=True):
        yield from (((row["link"], name), row[name]) for name in quantities)


def _of_rrul(found: Records) -> Iterator[_Number]:
    """Numbers of an RRUL test, in the units of a table's columns."""
    try:
        test = found.document(RRUL)
        for direction, goodputs in test["goodput_mbit_s"].items():
            for dscp, mbit_s in goodputs.items():
                yield (f"{direction} {dscp}", "goodput_bit_s"), mbit_s * 1e6
        for ping in test["pings"]:
            name = f"ping {ping.pop('ping')}"
            for quantity, value in ping.items():
                bare = quantity.removesuffix("_ms")
                if bare == quantity:
                    yield (name, quantity), value
                else:
                    yield (name, f"{bare}_us"), None if value is None else value * 1e3
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        file = found.path / RRUL
        raise DamageError(file, checksums.DAMAGED, "run `cwnd rrul` again") from error


def _of_captures(found: Records) -> Iterator[_Number]:
    for share in found.document(INFERRED)["shares"]:
        name = str(share.pop("name"))
        yield from (((name, quantity), value) for quantity, value in share.items())


def _of_agreements(found: Records) -> Iterator[_Number]:
    import polars as pl

    table = found.table("differences")
    axes = table.columns[1 : table.columns.index("group")]
    for row in table.filter(~pl.col("repeated")).iter_rows(named=True):
        point = ", ".join(str(row[name]) for name in (*axes, "group"))
        yield (point, row["metric"]), row["difference"]

"""The extension module: scenario reader, simulator, runs on Linux, links, inference, in Rust."""

from collections.abc import Callable, Sequence
from os import PathLike
from typing import Any, TypedDict, final, type_check_only

__version__: str
#: Version and hash of the simulator's sources: builds with the same value give the same records.
engine: str
#: Version and hash of the testbed's sources, for runs on Linux.
testbed: str
#: Upper bounds of what an agent observes, in the order of `cwnd.gym.Fact`.
observation_bounds: list[float]
#: Size of QUIC's headers and tag in a full packet, in bytes.
quic_overhead: int

__all__ = [
    "Ack",
    "Cancelled",
    "Cell",
    "Control",
    "DeliveryRate",
    "Diverged",
    "Episode",
    "FlowStart",
    "Gathered",
    "Inferred",
    "Keeper",
    "Link",
    "LinkReport",
    "LinkStart",
    "Path",
    "QueuedPacket",
    "Result",
    "Scenario",
    "ScenarioError",
    "Signal",
    "Start",
    "Stepper",
    "Table",
    "Unavailable",
    "__version__",
    "captured_packets",
    "captured_throughput",
    "describe_library",
    "engine",
    "give_up_capabilities",
    "give_up_rights",
    "infer_timeouts",
    "json_schema",
    "keep_network_rights",
    "kinds",
    "mechanisms",
    "observation_bounds",
    "parse",
    "play_role",
    "quic_overhead",
    "read_quantity",
    "read_text",
    "read_toml",
    "reference_markdown",
    "testbed",
]

@type_check_only
class Diagnostic(TypedDict):
    """An error, a warning or a note about a scenario file, with its position and a remedy."""

    file: str
    line: int
    column: int
    key: str
    message: str
    help: str | None
    severity: str

@final
class ScenarioError(Exception):
    """A scenario that cannot be run; `str(e)` shows up to fifty problems, and counts the rest."""

    diagnostics: list[Diagnostic]
    total: int
    """Number of errors and warnings, including those that `diagnostics` leaves out."""
    rendered: Callable[[bool], str]

@final
class Cancelled(Exception):  # noqa: N818 - it is no error
    """A run or inference that was stopped through its `Control`."""

    def __new__(cls) -> Cancelled: ...

@final
class Diverged(Exception):  # noqa: N818 - it is what happened
    """Error: two runs of one scenario differ; `str(e)` shows the first difference."""

    def __new__(cls, report: str) -> Diverged: ...

@final
class Unavailable(Exception):  # noqa: N818 - the machine's, not the program's
    """This machine lacks something that a run on Linux needs."""

    def __new__(cls, reason: str) -> Unavailable: ...

@final
class Control:
    """Handle that observes and cancels a run or an inference from another thread."""

    def __new__(cls) -> Control: ...
    def cancel(self) -> None: ...
    @property
    def fraction(self) -> float: ...

@final
class Table:
    """Columns in Arrow's memory layout, exported without a copy."""

    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[Any, Any]: ...
    @property
    def num_rows(self) -> int: ...
    @property
    def column_names(self) -> list[str]: ...

@final
class Result:
    """Records of one run."""

    @property
    def flows(self) -> Table: ...
    @property
    def links(self) -> Table: ...
    @property
    def reasons(self) -> Table: ...
    @property
    def flow_series(self) -> Table: ...
    @property
    def link_series(self) -> Table: ...
    @property
    def qdelay(self) -> Table: ...
    @property
    def delays(self) -> Table: ...
    @property
    def requests(self) -> Table: ...
    @property
    def packets(self) -> Table | None: ...
    @property
    def sketches(self) -> Table: ...
    @property
    def unrecorded(self) -> Table: ...
    @property
    def activity(self) -> dict[str, int]: ...
    @property
    def events(self) -> int: ...
    @property
    def delivered_packets(self) -> int: ...
    @property
    def end_s(self) -> float: ...
    @property
    def request_count(self) -> int: ...
    @property
    def requests_without_row(self) -> int: ...
    @property
    def digest(self) -> str: ...
    @property
    def steps_hash(self) -> str | None: ...
    @property
    def facts(self) -> str | None: ...

@final
class Gathered:
    """Records of several runs, concatenated in the same columns."""

    def __new__(cls) -> Gathered: ...
    def add(self, result: Result) -> None: ...
    @property
    def rows(self) -> int: ...
    def take(self) -> dict[str, Table]: ...

@final
class Cell:
    """One run of a scenario: one point of its sweep, one seed."""

    @property
    def index(self) -> int: ...
    @property
    def id(self) -> str: ...
    @property
    def seed(self) -> int: ...
    @property
    def axes(self) -> dict[str, str]: ...
    @property
    def axis_values(self) -> dict[str, float | None]: ...
    @property
    def axis_units(self) -> dict[str, str | None]: ...
    @property
    def resolved(self) -> str: ...
    @property
    def duration_s(self) -> float: ...
    @property
    def warmup_s(self) -> float: ...
    @property
    def links(self) -> list[str]: ...
    def run(
        self,
        control: Control | None = None,
        captures: Sequence[tuple[str | PathLike[str], Sequence[str]]] = ...,
        *,
        classes: Sequence[type | PathLike[str]] = ...,
        log: tuple[str, tuple[int, int], int] | None = None,
        qlog: tuple[str | PathLike[str], Sequence[tuple[str, str]]] | None = None,
    ) -> Result: ...
    @property
    def senders(self) -> list[str]:
        """Names of the flow groups of connections, whose senders can be logged."""
    @property
    def code(self) -> list[tuple[str, str, str, str, str]]:
        """Parts whose code is the user's: place, kind, name of the file, its text, class or ""."""
    @property
    def routed_bit_s(self) -> float | None: ...
    def run_on_linux(
        self,
        control: Control | None = None,
        captures: Sequence[tuple[str | PathLike[str], Sequence[str]]] = ...,
        *,
        kernel: str | None = None,
        objects: Sequence[str | PathLike[str]] = ...,
        calibrate: bool = True,
    ) -> Result: ...
    def check(
        self, control: Control | None = None, classes: Sequence[type | PathLike[str]] = ...
    ) -> Result: ...

@final
class Episode:
    """A run whose agents set the windows of flow groups between steps."""

    def __new__(
        cls, cell: Cell, agents: Sequence[str], *, seed: int, step_s: float | None = None
    ) -> Episode: ...
    def step(self, actions: Sequence[float]) -> tuple[bytearray, bool]:
        """Runs a step; returns what the agents observe, and `True` if the run is over."""
    def observe(self) -> bytearray:
        """Returns what the agents observe before the first step."""
    def finish(self) -> Result:
        """Runs to the end with the windows as they are, and returns the records, once."""

@final
class Stepper:
    """Threads that step episodes of one agent together."""

    def __new__(cls, threads: int) -> Stepper: ...
    def step(
        self, episodes: Sequence[Episode], actions: Sequence[float]
    ) -> tuple[bytearray, list[bool]]:
        """Runs a step of each episode; returns what `Episode.step` does, one after another."""

@final
class Start:
    """Facts about a connection that its controller starts with; sizes in bytes."""

    mss: int
    initial_window: int
    initial_ssthresh: int | None
    max_window: int | None
    delayed_acks: bool
    seed: int

@final
class Path:
    """Facts that the transport knows, valid during a call; sizes in bytes, times in seconds."""

    now: float
    mss: int
    srtt: float | None
    min_rtt: float | None
    rtt: float | None
    flight_size: int
    delivered: int
    sent: int
    phase: str
    cwnd_limited: bool
    round: int

@final
class Ack:
    """Facts that one ACK reports, valid during a call; sizes in bytes, times in seconds."""

    acked_bytes: int
    newly_sacked: int
    newly_lost: int
    rtt: float | None
    ece: bool
    grow: bool

@final
class DeliveryRate:
    """Delivery rate that one ACK reports; sizes in bytes, times in seconds."""

    newly_delivered: int
    total_delivered: int
    prior_delivered: int | None
    interval: float | None
    rtt: float | None
    in_flight: int
    app_limited: bool

@final
class LinkStart:
    """Facts that the queue of a link starts with: bit/s, seconds, a seed."""

    rate: float
    bdp_rtt: float
    seed: int

@final
class QueuedPacket:
    """A packet in a queue: bytes, a hash of its flow, seconds."""

    size: int
    flow: int
    arrived: float
    @property
    def ecn(self) -> str: ...
    def drop(self, reason: str = "python") -> None: ...
    def mark(self, reason: str = "python") -> bool: ...

@final
class FlowStart:
    """Facts that the workload of a flow starts with: seconds, a seed."""

    now: float
    seed: int

@final
class Signal:
    """A rare event: `"reduce"`, `"timeout"`, `"idle"` or `"resume"`; times in seconds."""

    kind: str
    cause: str | None
    nth: int
    reduces: bool
    idle: float | None
    keep: int | None
    since: float | None

@final
class Scenario:
    """A parsed and validated scenario."""

    @property
    def name(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def warnings(self) -> list[Diagnostic]: ...
    @property
    def warnings_total(self) -> int:
        """Number of warnings, including those that `warnings` leaves out."""
    @property
    def notes(self) -> list[Diagnostic]:
        """Defaults and departures that affect the interpretation of results."""
    @property
    def axes(self) -> list[tuple[str, list[str], list[float] | None, str | None]]: ...
    @property
    def may_have_code(self) -> bool:
        """`False` if no run has a part whose code is the user's."""
    @property
    def over(self) -> dict[str, dict[str, list[str]]]:
        """Base labels of each label whose gain is computed, by axis."""
    @property
    def runs(self) -> int: ...
    @property
    def repeat(self) -> int: ...
    def duration_s(self, index: int) -> float: ...
    def check_linux(self) -> bool: ...
    def cell(self, index: int) -> Cell: ...
    @property
    def cells(self) -> list[Cell]: ...

# Links, and functions that change a process's privileges, exist on Linux only.
@final
class Link:
    """An emulated link, with a network namespace behind it."""

    def __new__(
        cls,
        cell: Cell,
        keeper: Keeper,
        user: int,
        ecn: bool | None = None,
        pcap: str | PathLike[str] | None = None,
        pcap_at: str | None = None,
        dns: str | None = None,
    ) -> Link: ...
    def run(
        self,
        command: Sequence[str],
        environment: Sequence[tuple[str, str]],
        allow_sudo: bool = False,
        output_to_errors: bool = False,
    ) -> tuple[int, bool]: ...
    @property
    def addresses(self) -> tuple[str, str]: ...
    @property
    def addresses6(self) -> tuple[str, str] | None: ...
    @property
    def confined(self) -> str | None: ...
    @property
    def confined6(self) -> str | None: ...
    def live(
        self,
    ) -> list[tuple[float, int, int, float | None, int, int] | None]: ...
    def finish(self) -> LinkReport: ...

@final
class LinkReport:
    """Records of a link after its command has ended."""

    @property
    def links(self) -> Table: ...
    @property
    def reasons(self) -> Table: ...
    @property
    def link_series(self) -> Table: ...
    @property
    def qdelay(self) -> Table: ...
    def summary(self) -> dict[str, Any]: ...

@final
class Keeper:
    """A process with the privileges that a link needs, until its command starts."""

    def __new__(
        cls,
        interpreter: str | PathLike[str],
        script: str | PathLike[str],
        granting: Sequence[str] | None = None,
        name: str = "",
        say: Callable[[list[str]], object] | None = None,
    ) -> Keeper: ...

@final
class Inferred:
    """Findings in captures: connections, and silences of servers or repeated SYNs and SYN-ACKs."""

    @property
    def connections(self) -> Table: ...
    @property
    def silences(self) -> Table: ...
    @property
    def rates(self) -> Table: ...
    @property
    def queues(self) -> Table: ...
    @property
    def counts(self) -> dict[str, int]: ...

def infer_timeouts(
    files: Sequence[str | PathLike[str]],
    control: Control | None = None,
    *,
    connections: int | None = None,
    idle_s: float | None = None,
    path: bool = False,
) -> Inferred: ...
def captured_packets(
    files: Sequence[str | PathLike[str]],
    control: Control,
    client: tuple[str, int],
    server: tuple[str, int],
    times_s: tuple[float, float],
    file: int,
) -> tuple[Table, int]: ...
def captured_throughput(
    file: str | PathLike[str],
    control: Control,
    addresses: Sequence[str],
    began_s: float,
    elapsed_s: float,
    width_s: float,
) -> tuple[Table, float | None]: ...
def give_up_capabilities() -> None: ...
def give_up_rights(user: int) -> None: ...
def keep_network_rights(user: int) -> None: ...
def play_role(interpreter: str | PathLike[str], script: str | PathLike[str], role: str) -> int: ...
def parse(
    text: str,
    *,
    name: str,
    base_dir: str | None = None,
    overrides: Sequence[str] = ...,
    seed: int | None = None,
    classes: Sequence[tuple[str, str, str, str]] = ...,
    installed: Callable[[str], str | None] | None = None,
) -> Scenario: ...
def describe_library(path: str | PathLike[str]) -> str: ...
def read_quantity(kind: str, text: str) -> float: ...
def read_text(path: str | PathLike[str]) -> str: ...
def read_toml(text: str, name: str) -> dict[str, Any]: ...
def json_schema(installed: Sequence[str] = ...) -> str: ...
def kinds() -> dict[str, list[tuple[str, str, list[str]]]]: ...
def mechanisms() -> list[tuple[list[str], list[str], str]]: ...
def reference_markdown(installed: Sequence[str] = ...) -> str: ...

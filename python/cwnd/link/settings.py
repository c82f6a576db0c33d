"""What lies between a command and the rest of the world, as a scenario."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from cwnd import _core
from cwnd.running import Scenario

if TYPE_CHECKING:
    from pathlib import Path

#: What sizes in BDP refer to where no round-trip time was given.
_BDP_RTT = "100 ms"
#: Where no round-trip time was given: a scenario wants some time between cause and effect, and this
#: is less than the router itself takes.
_LEAST_RTT = "1 us"


@dataclass(frozen=True)
class Direction:
    """One direction of a link, in the words of a scenario."""

    rate: str | None = None
    trace: Path | None = None
    queue: str = "fifo"
    buffer: str | None = None
    loss: float = 0.0
    jitter: str = "0 ms"
    reorder: float = 0.0
    reorder_delay: str | None = None
    meter: str = "none"
    messenger: str = "none"

    def to_section(self, bdp_rtt: str, ecn: bool | None) -> dict[str, object]:
        """The link as a scenario has it, but for its propagation."""
        section: dict[str, object] = {
            "queue": self._queue(ecn),
            "meter": _part("meter", self.meter),
            "messenger": _part("messenger", self.messenger),
            "bdp_rtt": bdp_rtt,
            "loss": self.loss,
            "jitter": self.jitter,
            "reorder": self.reorder,
        }
        if self.reorder_delay is not None:
            section["reorder_delay"] = self.reorder_delay
        if self.trace is not None:
            section["trace"] = str(self.trace)
        if self.rate is not None or self.trace is None:
            section["rate"] = self.rate
        return section

    def _queue(self, ecn: bool | None) -> dict[str, object]:
        queue = _part("queue", self.queue)
        if self.buffer is not None:
            queue["limit"] = self.buffer
        if ecn is not None and queue.get("kind") != "fifo":
            queue["ecn"] = ecn
        return queue


def _part(key: str, text: str) -> dict[str, object]:
    """A kind, or a table as in a scenario."""
    if text.lstrip().startswith("{"):
        table: dict[str, object] = _core.read_toml(f"{key} = {text}", name=f"--{key}")[key]
        return table
    return {"kind": text}


@dataclass(frozen=True)
class Settings:
    """What lies between a command and the rest of the world."""

    downlink: Direction = field(default_factory=Direction)
    uplink: Direction = field(default_factory=Direction)
    #: Round-trip time without queues; `None` adds none.
    rtt: str | None = None
    #: Whether connections of the command ask for ECN and queues mark; `None` leaves both as they
    #: are by default.
    ecn: bool | None = None
    seed: int = 1
    #: Interval of the time series; `None` records none.
    sample: str | None = None

    def scenario(self) -> Scenario:
        """The link as a scenario: what reads scenarios reads it, and says what is wrong."""
        bdp_rtt = _BDP_RTT if self.rtt is None else self.rtt
        ends = {"uplink": ("command", "caller"), "downlink": ("caller", "command")}
        links = {
            name: {"from": ends[name][0], "to": ends[name][1], **way.to_section(bdp_rtt, self.ecn)}
            for name, way in (("uplink", self.uplink), ("downlink", self.downlink))
        }
        return Scenario(
            name="link",
            run={"duration": "1 s", "seed": self.seed, "sample": self.sample},
            link=links,
            flow={
                "command": {"from": "command", "to": "caller", "edge_rtt": self.rtt or _LEAST_RTT}
            },
        )

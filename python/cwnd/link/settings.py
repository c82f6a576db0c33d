"""Settings of a link, their translation into a scenario, and the outcome of its command."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from cwnd import _core
from cwnd.errors import InputError
from cwnd.running import Scenario

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

#: Prefixes of a link's keys and the options that set them; the first match with a value wins.
_OPTIONS = (
    ("queue.limit", "buffer"),
    *((key, key) for key in ("rate", "trace", "queue", "loss", "jitter")),
    *((key, key) for key in ("reorder_delay", "reorder", "meter", "messenger")),
    # A trace sets the rate, too.
    ("rate", "trace"),
)
#: Nodes at the start and the end of each link.
_ENDS = {"uplink": ("command", "caller"), "downlink": ("caller", "command")}
#: Shortest duration of the written scenario, in seconds.
_MIN_DURATION_S = 0.001
#: Round-trip time for sizes in BDP if none is given.
_BDP_RTT = "100 ms"
#: Round-trip time if none is given. A scenario needs a positive one; this is less than the router's
#: own processing delay.
MIN_RTT = "1 us"


@dataclass(frozen=True)
class Direction:
    """Settings of one direction of a link, as values of a scenario."""

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
        """Returns the section `link` of the scenario, without propagation delay."""
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
        keys = {kind: keys for kind, _, keys in _core.kinds()["queue"]}
        if ecn is not None and "ecn" in keys.get(str(queue.get("kind")), ()):
            queue["ecn"] = ecn
        return queue


def _part(key: str, text: str) -> dict[str, object]:
    """Parses the value of an option: the name of a kind, or a TOML table."""
    if text.lstrip().startswith("{"):
        try:
            table: dict[str, object] = _core.read_toml(f"{key} = {text}", name=f"--{key}")[key]
        except _core.ScenarioError as error:
            why = error.diagnostics[0]["message"]
            raise InputError(f"--{key} '{text}': {why}") from error
        return table
    return {"kind": text}


@dataclass(frozen=True)
class Settings:
    """Settings of a link between a command and its caller."""

    downlink: Direction = field(default_factory=Direction)
    uplink: Direction = field(default_factory=Direction)
    #: Round-trip time without queues; `None` adds none.
    rtt: str | None = None
    #: `True` if connections of the command request ECN and queues mark, `False` if neither; `None`
    #: leaves both at their defaults.
    ecn: bool | None = None
    seed: int = 1
    #: Interval of the time series; `None` records none.
    sample: str | None = None

    @property
    def queues(self) -> str:
        """Kinds of the queues, in one word if both directions have the same."""
        down, up = (
            str(_part("queue", each.queue).get("kind", each.queue))
            for each in (self.downlink, self.uplink)
        )
        return down if up == down else f"{down} down, {up} up"

    @property
    def rtt_s(self) -> float | None:
        """Round-trip time without queues; `None` for what the scenario's parser refuses."""
        with contextlib.suppress(ValueError):
            return 0.0 if self.rtt is None else _core.read_quantity("time", self.rtt)
        return None

    def scenario(self, duration: str = "1 s", *, upload: bool = False) -> Scenario:
        """Describes the link as a scenario with one flow, whose parser then validates the settings.

        Args:
            duration: Length of the run.
            upload: `True` if the flow's data goes from the command to the caller.
        """
        run = {"duration": duration, "seed": self.seed, "sample": self.sample}
        ends: dict[str, object] = {"endpoint": {"ecn": True}} if self.ecn else {}
        flow = self.group("uplink" if upload else "downlink", **ends)
        return self.scenario_with({"command": flow}, run)

    def group(self, direction: str, **keys: object) -> dict[str, object]:
        """Returns a section `flow` of the scenario: flows whose data goes in a direction."""
        source, target = _ENDS[direction]
        edge_rtt = "0 s" if self.rtt_s else MIN_RTT
        return {"from": source, "to": target, "edge_rtt": edge_rtt, **keys}

    def scenario_with(
        self,
        flow: Mapping[str, Mapping[str, object]],
        run: Mapping[str, object],
        *,
        name: str = "link",
    ) -> Scenario:
        """Describes the link as a scenario with these sections `flow` and `run`."""
        bdp_rtt = str(_BDP_RTT if self.rtt_s == 0 else self.rtt)
        # Half of it lies behind each queue, so that data and ACKs that leave one queue together
        # reach the other together.
        delay = {"delay": f"{self.rtt_s / 2:.9f} s"} if self.rtt_s else {}
        links = {
            direction: {
                "from": source,
                "to": target,
                **delay,
                **settings.to_section(bdp_rtt, self.ecn),
            }
            for (direction, (source, target)), settings in zip(
                _ENDS.items(), (self.uplink, self.downlink), strict=True
            )
        }
        return Scenario(schema=2, name=name, run=run, link=links, flow=flow)

    def scenario_of(self, summary: Mapping[str, Any]) -> Scenario:
        """Returns the scenario with the command's duration and one flow in the busier direction."""
        carried = {
            name: direction["sent_bit_s"] for name, direction in summary["directions"].items()
        }
        duration = max(summary["elapsed_s"], _MIN_DURATION_S)
        return self.scenario(f"{duration:.3f} s", upload=carried["uplink"] > carried["downlink"])

    def explain(self, error: _core.ScenarioError) -> str:
        """Formats the first error of each option that made the scenario invalid."""
        wrong: dict[str, str] = {}
        for problem in error.diagnostics:
            why = problem["message"] + (f"; {problem['help']}" if problem["help"] else "")
            wrong.setdefault(self._option(problem["key"]), why)
        return "\n".join(f"{option}: {why}" for option, why in wrong.items())

    def _option(self, key: str) -> str:
        """Returns the option behind a key of the scenario, with its value; otherwise the key."""
        section, _, rest = key.partition(".")
        direction, _, rest = rest.partition(".")
        if rest in ("bdp_rtt", "delay", "edge_rtt"):
            return f"--rtt {self.rtt}"
        if key == "run.seed":
            return f"--seed {self.seed}"
        if section != "link":
            return key
        if rest == "queue.ecn" and self.ecn is not None:
            return "--ecn" if self.ecn else "--no-ecn"
        settings = self.uplink if direction == "uplink" else self.downlink
        for begin, option in _OPTIONS:
            value = getattr(settings, option)
            if rest.startswith(begin) and value is not None:
                own = direction == "uplink" and value != getattr(self.downlink, option)
                return f"--{'uplink-' if own else ''}{option.replace('_', '-')} {value}"
        return key


@dataclass(frozen=True)
class LinkOutcome:
    """Results of a link and its command after the command has ended."""

    #: Exit code of the command, in the convention of a shell.
    code: int
    report: _core.LinkReport
    scenario: Scenario
    command: list[str]
    #: `True` if the command had a `/proc` of its own.
    own_proc: bool = True
    #: IP addresses of the command.
    addresses: Sequence[str] = ()

    @property
    def summary(self) -> dict[str, Any]:
        """Statistics of the router, and of the packets in each direction."""
        return self.report.summary()

    def links(self) -> list[dict[str, Any]]:
        """Returns a row for each direction, with the columns of the simulator's table of links."""
        import polars as pl

        return pl.DataFrame(self.report.links).to_dicts()

    def to_json(self) -> dict[str, Any]:
        """Returns everything but the samples as one JSON object."""
        return {
            "command": self.command,
            "exit_code": self.code,
            "addresses": [*self.addresses],
            **self.summary,
            "links": self.links(),
        }

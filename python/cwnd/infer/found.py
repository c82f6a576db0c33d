"""What was found in captures, and what it comes down to."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import polars as pl


@dataclass(frozen=True)
class Share:
    """Connections, those of them with a timeout, and those of these with another one in a row."""

    name: str
    connections: int
    with_timeout: int
    with_consecutive: int

    @property
    def timeout_share(self) -> float | None:
        """Of all connections; `None` if there are none."""
        return self.with_timeout / self.connections if self.connections else None

    @property
    def consecutive_share(self) -> float | None:
        """Of those with a timeout; `None` if there are none."""
        return self.with_consecutive / self.with_timeout if self.with_timeout else None

    def to_json(self) -> dict[str, Any]:
        """All of it, for programs."""
        return {
            "name": self.name,
            "connections": self.connections,
            "with_timeout": self.with_timeout,
            "timeout_share": self.timeout_share,
            "with_consecutive": self.with_consecutive,
            "consecutive_share": self.consecutive_share,
        }


#: From here on a capture is nearer to the client than to the server.
_HALF_WAY = 0.5
#: Mondal & Kuzmanovic, TCP*(n), § 2.4: the index pages of 75,000 web servers.
PAPER = (75_000, 0.08, 0.52)


@dataclass(frozen=True)
class Inferred:
    """Connections and silences of their servers; `docs/infer.md` says what the columns are."""

    #: A row for each connection.
    connections: pl.DataFrame
    #: A row for each time that a server was silent for long.
    silences: pl.DataFrame
    #: What was read, left out and given up.
    counts: dict[str, int]

    @cached_property
    def heard(self) -> pl.DataFrame:
        """The connections whose server sent data."""
        return self.connections.filter(pl.col("server_bytes") > 0)

    @cached_property
    def shares(self) -> tuple[Share, Share]:
        """By the paper's rule alone, and with what tells timeouts from pauses."""

        def share(name: str, timeouts: str, row: str) -> Share:
            return Share(
                name,
                self.heard.height,
                self.heard.filter(pl.col(timeouts) > 0).height,
                self.heard.filter(pl.col(row) > 1).height,
            )

        return (
            share("the paper's rule", "rule_timeouts", "rule_consecutive"),
            share("with evidence", "timeouts", "consecutive"),
        )

    def kinds(self) -> dict[str, int]:
        """How many silences there were of each kind."""
        counted = self.silences.filter(pl.col("what") == "data").group_by("kind").len()
        return dict(sorted(counted.with_columns(pl.col("kind").cast(pl.String)).iter_rows()))

    def backoff(self) -> dict[str, int]:
        """In how many connections timeouts in a row grew in which way."""
        counted = self.heard.filter(pl.col("consecutive") > 1).group_by("backoff").len()
        return dict(sorted(counted.with_columns(pl.col("backoff").cast(pl.String)).iter_rows()))

    def handshakes(self) -> dict[str, int]:
        """SYNs and SYN-ACKs that were sent again."""
        return {
            name: int(self.connections[name].sum()) for name in ("syn_timeouts", "syn_ack_timeouts")
        }

    def notes(self) -> list[str]:
        """What a reader of the numbers should know."""
        notes = []
        placed = self.heard["position"].drop_nulls()
        near = int((placed < _HALF_WAY).sum())
        if near:
            notes.append(
                f"{near} of {placed.len()} connections were captured nearer to their server than to"
                " the client: what a client sees cannot be told there"
            )
        unknown = self.heard.filter(pl.col("rtt_ms").is_null()).height
        if unknown:
            notes.append(
                f"of {unknown} connections no round-trip time is known: no gap is too long for it"
            )
        words = {
            "unknown_link_type": "frames of a link type that is not read",
            "ip_fragments": "fragments of IP packets",
            "headers_cut_off": "frames whose headers were not captured whole",
            "malformed": "frames whose headers contradict themselves",
            "without_time": "packets without a time",
            "files_cut_off": "files that end within a packet",
            "connections_given_up": "connections given up before their end: there were too many",
            "silences_given_up": "silences given up: connections had too many",
        }
        notes += [
            f"{self.counts[name]} {what}" for name, what in words.items() if self.counts[name]
        ]
        return notes

    def to_json(self) -> dict[str, Any]:
        """All but the tables, for programs."""
        connections, timeout, consecutive = PAPER
        return {
            "shares": [share.to_json() for share in self.shares],
            "paper": {
                "connections": connections,
                "timeout_share": timeout,
                "consecutive_share": consecutive,
            },
            "timeouts": int(self.heard["timeouts"].sum()),
            "silences": self.kinds(),
            "backoff": self.backoff(),
            **self.handshakes(),
            "counts": self.counts,
            "notes": self.notes(),
        }

"""DCTCP's sender by RFC 8257 § 3.3 to 3.5, as public implementations quote it.

Fractions have 50 digits.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

from exact import floor, real
from windows import NewReno

if TYPE_CHECKING:
    from windows import Event

#: ECN field of a marked packet.
CE = 3


@dataclass
class Dctcp(NewReno):
    """§ 3.4, 3.5: conventional TCP, except for marks."""

    alpha: Decimal | None = None
    window_end: int = 0
    bytes_acked_of_window: int = 0
    bytes_marked: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        self.alpha = real(self.p["initial_alpha"])

    def on(self, e: Event) -> None:
        """Applies one event to DCTCP."""
        self.asks = ""
        super().on(e)

    def on_ack(self, e: Event) -> None:
        """§ 3.3, steps 1 to 9: an acceptable ACK."""
        assert self.alpha is not None
        congested = e.echo == CE
        snd_nxt = self.delivered - e.acked + e.flight
        self.bytes_acked_of_window += e.acked
        if congested:
            self.bytes_marked += e.acked
        if self.delivered > self.window_end and e.acked > 0:
            m = Decimal(self.bytes_marked) / self.bytes_acked_of_window
            g = real(self.p["gain"])
            self.alpha = self.alpha * (1 - g) + g * m
            self.window_end = snd_nxt
            self.bytes_acked_of_window = self.bytes_marked = 0
        # The transport enforces RFC 3168's "not more than once every window".
        self.asks = "ecn" if congested else ""
        if not congested:
            super().on_ack(e)

    def decreased(self, e: Event, cause: str) -> int:
        """Step 9, or RFC 5681 equation 4 for a loss."""
        assert self.alpha is not None
        if cause == "ecn":
            return floor(self.cwnd * (1 - self.alpha / 2))
        return floor(real(self.p["loss_beta"]) * e.flight)

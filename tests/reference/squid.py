"""The pause that source quenches introduce, from RFC 1016 and not from the Rust code."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Squid:
    """D and its two kinds of events; K, I, J, E and S as in the RFC. All times are ns."""

    k: int
    i: int
    j: int
    e: int
    s: int
    d: int = 0
    #: Start of the period E in which quenches are counted.
    period_began: int | None = None
    #: "S time has passed since D was decreased": or since it was first above zero.
    decreased: int | None = None

    def quench(self, now: int) -> bool:
        """Handles a source quench; returns True if it is an increase event.

        "An increase event is receipt of one or more source quenches in a event period E".
        """
        if self.period_began is not None and now - self.period_began < self.e:
            return False
        self.period_began = now
        if self.decreased is None:
            self.decreased = now
        self.d = max(self.d + self.k, self.i)
        return True

    def send(self, now: int) -> int:
        """Sends a datagram; returns the pause before the next.

        "A decrease event is when S time has passed since D was decreased and there is a datagram to
        send".
        """
        if self.decreased is not None and now - self.decreased >= self.s:
            self.decreased = now
            self.d = max(self.d - self.j, 0)
        return self.d

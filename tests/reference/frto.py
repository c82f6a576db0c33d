"""F-RTO: classification of a timeout with SACK (RFC 5682 § 3.1) and without (§ 2.1).

Linux's `tcp_process_loss` evaluates the first new ACK as well as the second. Without SACK a
duplicate before the first new ACK decides nothing.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Sent:
    """A segment that was sent."""

    #: Sent more than once, including the timeout's retransmission.
    again: bool
    #: Sent for the first time after the timeout.
    new: bool
    #: Acknowledged or SACKed.
    reported: bool = False


class Frto:
    """State from a timeout until it is classified."""

    def __init__(self, again: list[bool], sacked: list[bool], *, sack: bool = True) -> None:
        self.sack = sack
        self.sent = [Sent(a, new=False, reported=s) for a, s in zip(again, sacked, strict=True)]
        self.sent[0].again = True
        self.outstanding = len(self.sent)
        self.una = 0

    def send_new(self) -> None:
        """Sends a segment for the first time."""
        self.sent.append(Sent(again=False, new=True))

    def ack(self, una: int, blocks: list[tuple[int, int]], *, waits: bool) -> str:
        """Handles an ACK of all segments below `una` and in the blocks; returns the verdict.

        That is "spurious", "lost", "new" (new data is to be sent) or "open". `waits` is True if
        there is new data to send.
        """
        told = {*range(una), *(n for start, end in blocks for n in range(start, end))}
        fresh = [self.sent[n] for n in sorted(told) if not self.sent[n].reported]
        advances = una > self.una
        sacks = any(not self.sent[n].reported for n in told if n >= una)
        if not self.sack:
            # A duplicate reports only that something arrived.
            sacks = not advances
        for segment in fresh:
            segment.reported = True
        self.una = max(una, self.una)
        # Step 3b: data sent once, before the timeout. Without SACK, retransmitted data among it
        # hides which segments arrived.
        hidden = not self.sack and any(segment.again for segment in fresh)
        if not hidden and any(not segment.again and not segment.new for segment in fresh):
            return "spurious"
        if any(segment.new for segment in self.sent):
            # Step 3a.
            return "lost" if sacks else "open"
        if not advances or una >= self.outstanding:
            # Step 2a.
            return "open"
        # Step 2b.
        return "new" if waits else "lost"

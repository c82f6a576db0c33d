"""F-RTO with SACK: what a timeout was (RFC 5682 § 3.1), segment by segment.

Linux's `tcp_process_loss` looks at the first new ACK as well as at the second.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Sent:
    """A segment that went."""

    #: More than once, the timeout's retransmission included.
    again: bool
    #: For the first time after the timeout.
    new: bool
    #: Acknowledged or SACKed.
    reported: bool = False


class Frto:
    """From a timeout until it is known what it was."""

    def __init__(self, again: list[bool], sacked: list[bool]) -> None:
        self.sent = [Sent(a, new=False, reported=s) for a, s in zip(again, sacked, strict=True)]
        self.sent[0].again = True
        self.outstanding = len(self.sent)
        self.una = 0

    def send_new(self) -> None:
        """A segment goes for the first time."""
        self.sent.append(Sent(again=False, new=True))

    def ack(self, una: int, blocks: list[tuple[int, int]], *, waits: bool) -> str:
        """All below `una` and in the blocks has arrived; `waits`: there is more to send."""
        told = {*range(una), *(n for start, end in blocks for n in range(start, end))}
        fresh = [self.sent[n] for n in sorted(told) if not self.sent[n].reported]
        sacks = any(not self.sent[n].reported for n in told if n >= una)
        advances = una > self.una
        for segment in fresh:
            segment.reported = True
        self.una = max(una, self.una)
        # Step 3b: data that went once, before the timeout.
        if any(not segment.again and not segment.new for segment in fresh):
            return "spurious"
        if any(segment.new for segment in self.sent):
            # Step 3a.
            return "lost" if sacks else "open"
        if not advances or una >= self.outstanding:
            # Step 2a.
            return "open"
        # Step 2b.
        return "new" if waits else "lost"

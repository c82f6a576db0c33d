"""Additive increase, multiplicative decrease."""


class Aimd:
    """One connection."""

    def __init__(self, start):
        """Starts with the initial window."""
        self.mss = start.mss
        self.window = start.initial_window
        self.counters = {"acks": 0}

    def on_ack(self, path, ack):
        """Adds a segment for each window."""
        self.counters["acks"] += 1
        if ack.grow:
            self.window += self.mss * ack.acked_bytes / self.window

    def on_signal(self, path, signal):
        """Halves the window."""
        if signal.kind in ("reduce", "timeout"):
            self.window = max(self.window / 2, 2 * self.mss)

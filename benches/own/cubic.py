"""CUBIC by RFC 9438, to which the section numbers refer. Windows are in segments."""

BETA = 0.7  # § 4.6
C = 0.4  # § 4.1
ALPHA = 3 * (1 - BETA) / (1 + BETA)  # § 4.3: as friendly as Reno


class Cubic:
    """One connection."""

    def __init__(self, start):
        """Starts in slow start, with the initial window."""
        self.mss = start.mss
        self.initial = start.initial_window
        self.window = start.initial_window  # bytes, as cwnd reads it
        self.ssthresh = start.initial_ssthresh
        self.w_max = self.k = self.w_est = self.prior = 0.0
        self.after_timeout = False
        self.epoch = None  # start of the current stage of congestion avoidance, seconds
        self.counters = {"acks": 0}

    def on_ack(self, path, ack):
        """Grows as § 4.2 to § 4.5 have it."""
        self.counters["acks"] += 1
        if not ack.grow:
            return
        if self.ssthresh is None or self.window < self.ssthresh:
            self.window += ack.acked_bytes
            return
        cwnd = self.window / self.mss
        if self.epoch is None:
            self.begin(path.now, cwnd)
        segments = ack.acked_bytes / self.mss
        self.w_est += (ALPHA if self.w_est < self.prior else 1.0) * segments / cwnd  # § 4.3
        t = path.now - self.epoch
        if C * (t - self.k) ** 3 + self.w_max < self.w_est:
            self.window = max(self.window, self.w_est * self.mss)
            return
        rtt = path.srtt or 0.0
        target = C * (t + rtt - self.k) ** 3 + self.w_max  # § 4.2, § 4.4
        target = min(max(target, cwnd), 1.5 * cwnd)
        self.window += (target - cwnd) / cwnd * segments * self.mss

    def begin(self, now, cwnd):
        """Begins a stage of congestion avoidance (§ 4.2; after a timeout § 4.8)."""
        self.epoch = now
        self.w_max = cwnd if self.after_timeout else max(self.w_max, cwnd)
        self.after_timeout = False
        self.k = ((self.w_max - cwnd) / C) ** (1 / 3)
        self.w_est = cwnd

    def on_signal(self, path, signal):
        """Reduces the window (§ 4.6, § 4.7), after a timeout to one segment (§ 4.8)."""
        if signal.kind == "reduce" or (signal.kind == "timeout" and signal.reduces):
            cwnd = self.prior = self.window / self.mss
            fast_convergence = cwnd < self.w_max
            self.w_max = cwnd * (1 + BETA) / 2 if fast_convergence else cwnd
            self.ssthresh = max(path.flight_size * BETA, 2 * self.mss)
            self.window = self.ssthresh
            self.epoch = None
        if signal.kind == "timeout":
            self.window = self.mss
            self.after_timeout = True
        elif signal.kind == "idle":
            self.window = min(self.window, signal.keep or self.initial)

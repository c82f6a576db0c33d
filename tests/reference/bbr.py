"""BBR version 1, and the delivery rates that it uses.

draft-cardwell-iccrg-bbr-congestion-control-00, and `linux` from tcp_bbr.c;
draft-cheng-iccrg-delivery-rate-estimation-00. Windows are real numbers of bytes. An interpretation
of an open point is a *reading* in vectors/README.md.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from exact import less, real
from windows import Controller

if TYPE_CHECKING:
    from windows import Event


@dataclass
class Packet:
    """P of draft-cheng § 3.1.2: state of a packet at its last transmission."""

    seq: int
    end: int
    sent_time: int
    delivered: int
    delivered_time: int
    first_sent_time: int
    is_app_limited: bool
    times: int = 1
    arrived: bool = False


@dataclass
class Connection:
    """C of draft-cheng § 3.1.1, and all of its packets.

    Every packet is kept for ever, and the rate sample of an ACK is found by its definition.
    """

    packets: list[Packet] = field(default_factory=list)
    delivered: int = 0
    delivered_time: int = 0
    first_sent_time: int = 0
    app_limited: int = 0
    #: RTTs of packets sent once.
    rtts: list[int] = field(default_factory=list)
    una: int = 0
    #: Ranges of whole packets reported by SACK.
    sacked: set[tuple[int, int]] = field(default_factory=set)

    def reported(self) -> int:
        """Returns the number of bytes reported as delivered."""
        above = sum(end - max(seq, self.una) for seq, end in self.sacked if end > self.una)
        return self.una + above

    def send(self, now: int, seq: int, end: int) -> None:
        """draft-cheng § 3.2: a packet is sent, for the first time or again."""
        old = [p for p in self.packets if p.seq < end and p.end > seq]
        if all(p.end <= self.una for p in self.packets) and not old:
            self.first_sent_time = self.delivered_time = now
            # Nothing was in flight, so the application limited the rate (§ 3.4).
            self.app_limited = max(self.reported(), 1)
        state = {
            "sent_time": now,
            "delivered": self.reported(),
            "delivered_time": self.delivered_time,
            "first_sent_time": self.first_sent_time,
            "is_app_limited": self.app_limited != 0,
        }
        for p in old:
            if not p.arrived:
                p.times += 1
                for key, value in state.items():
                    setattr(p, key, value)
        if not old:
            self.packets.append(Packet(seq, end, **state))

    def ack(
        self, now: int, una: int, blocks: list[tuple[int, int]], in_flight: int, *, idle: bool
    ) -> dict[str, Any]:
        """draft-cheng § 3.3: the rate sample of an ACK."""
        self.una = max(self.una, una)
        new = [
            p
            for p in self.packets
            if not p.arrived
            and (p.end <= self.una or any(a <= p.seq and p.end <= b for a, b in blocks))
        ]
        for p in new:
            p.arrived = True
            if p.end > self.una:
                self.sacked.add((p.seq, p.end))
        total = self.reported()
        rs: dict[str, Any] = {"newly": total - self.delivered, "total": total}
        if total > self.delivered:
            self.delivered, self.delivered_time = total, now
        if new:
            # "The most recently sent".
            p = max(new, key=lambda p: (p.sent_time, p.end))
            self.first_sent_time = p.sent_time
            if p.times == 1:
                self.rtts.append(now - p.sent_time)
                rs["rtt_ns"] = now - p.sent_time
            interval = max(p.sent_time - p.first_sent_time, now - p.delivered_time)
            rs["prior"] = p.delivered
            if interval > 0 and interval >= min(self.rtts, default=0):
                rs["interval_ns"] = interval
            if p.is_app_limited:
                rs["app_limited"] = True
        rs["in_flight"] = in_flight
        if self.delivered > self.app_limited:
            self.app_limited = 0
        if idle:
            self.app_limited = max(total + in_flight, 1)
        return rs


CYCLE = ["probe_gain", "drain_gain", *["cruise"] * 6]
#: One Mbit/s in bytes per nanosecond.
MBIT = Decimal(10) ** 6 / (8 * Decimal(10) ** 9)


def nanoseconds(text: str) -> int:
    """Parses a duration of the parameters, ns."""
    number, unit = text.split()
    return int(number) * {"ms": 1_000_000, "s": 1_000_000_000}[unit]


@dataclass
class Bbr(Controller):
    """State and rules of BBR, with the draft's names."""

    REAL = True

    total: int = 0
    filter: list[tuple[int, Decimal]] = field(default_factory=list)
    round_count: int = 0
    next_round_delivered: int = 0
    round_start: bool = False
    app_limited: bool = False
    #: Delivery counts between which rate samples are application-limited because of ProbeRTT.
    limited_from: int | None = None
    limited_to: int = 0
    rtprop: int | None = None
    rtprop_stamp: int = 0
    rtprop_expired: bool = False
    pacing_rate: Decimal | None = None
    state: str = "startup"
    cycle_index: int = 0
    cycle_stamp: int = 0
    filled_pipe: bool = False
    full_bw: Decimal = Decimal(0)
    full_bw_count: int = 0
    prior_cwnd: Decimal = Decimal(0)
    packet_conservation: bool = False
    before: str = "open"
    idle_restart: bool = False
    probe_rtt_done: int | None = None
    probe_rtt_round_done: bool = False
    #: Largest `extra_acked` of the current five rounds and of those before. `epoch` and
    #: `epoch_acked` are Linux's `ack_epoch_mstamp` and `ack_epoch_acked`.
    extra_acked: tuple[Decimal, Decimal] = (Decimal(0), Decimal(0))
    extra_rounds: int = 0
    epoch: int = 0
    epoch_acked: Decimal = Decimal(0)

    def pace(self) -> int | None:
        """Returns the pacing rate in whole bit/s, at least 1; None before the first segment."""
        if self.pacing_rate is None:
            return None
        return max(int(self.pacing_rate * 8 * 10**9), 1)

    def min_pipe(self) -> Decimal:
        """BBRMinPipeCwnd."""
        return Decimal(self.p["least_window"] * self.mss)

    def bw(self) -> Decimal:
        """BBR.BtlBw, bytes per nanosecond."""
        return max((rate for _, rate in self.filter), default=Decimal(0))

    def send_quantum(self) -> Decimal:
        """BBRSetSendQuantum; it follows the pacing rate at all times (a reading)."""
        pace = self.pacing_rate or Decimal(0)
        if less(pace, Decimal("1.2") * MBIT):
            return Decimal(self.mss)
        if less(pace, 24 * MBIT):
            return Decimal(2 * self.mss)
        return min(pace * 10**6, Decimal(64 * 1024))

    def inflight(self, gain: Decimal) -> Decimal:
        """BBRInflight; the initial window before the first segment."""
        if self.rtprop is None:
            return Decimal(self.initial_window)
        return gain * self.bw() * self.rtprop + 3 * self.send_quantum()

    def pacing_gain(self) -> Decimal:
        """Pacing gain of the current state."""
        high = real(self.p["startup_gain"])
        match self.state:
            case "startup":
                return high
            case "drain":
                return 1 / high
            case "probe bw":
                key = CYCLE[self.cycle_index]
                return Decimal(1) if key == "cruise" else real(self.p[key])
        return Decimal(1)

    def on(self, e: Event) -> None:
        """Applies one event to BBR."""
        match e.event:
            case "sent":
                self.on_send(e)
            case "ack":
                self.on_ack(e)
            case "timeout":
                self.save()
                self.before, self.packet_conservation = "loss", False
                self.cwnd = Decimal(self.mss)

    def on_send(self, e: Event) -> None:
        """BBRInit, BBRHandleRestartFromIdle; `flight` includes the segment that is sent."""
        if self.pacing_rate is None:
            # BBRInitPacingRate.
            nominal = Decimal(self.initial_window) / e.srtt_ns
            self.pacing_rate = real(self.p["startup_gain"]) * nominal
            self.rtprop = e.srtt_ns if e.min_rtt_ns is None else e.min_rtt_ns
            self.rtprop_stamp = self.epoch = e.now_ns
        if e.flight <= self.mss:
            self.idle_restart = True
            self.epoch, self.epoch_acked = e.now_ns, Decimal(0)
            if self.state == "probe bw":
                self.set_pacing_rate(Decimal(1))

    def on_ack(self, e: Event) -> None:
        """BBRUpdateOnACK; an ACK without a rate sample has no effect."""
        rs = e.rate
        if rs is None:
            return
        self.total = rs["total"]
        self.update_btlbw(e)
        self.update_ack_aggregation(e)
        before = Decimal(rs["in_flight"] + rs["newly"] + e.lost)
        if self.state == "probe bw" and self.is_next_cycle_phase(e, before):
            self.cycle_index, self.cycle_stamp = (self.cycle_index + 1) % 8, e.now_ns
        self.check_full_pipe()
        self.check_drain(e)
        self.update_rtprop(e)
        self.check_probe_rtt(e)
        self.set_pacing_rate(self.pacing_gain())
        self.set_cwnd(e)

    def update_btlbw(self, e: Event) -> None:
        """BBRUpdateRound, BBRUpdateBtlBw."""
        rs = e.rate or {}
        prior = rs.get("prior")
        self.round_start = prior is not None and prior >= self.next_round_delivered
        if self.round_start:
            self.next_round_delivered = self.total
            self.round_count += 1
        at = self.total if prior is None else prior
        slowed = self.limited_from is not None and self.limited_from <= at <= self.limited_to
        self.app_limited = rs.get("app_limited", False) or slowed
        if "interval_ns" in rs:
            rate = Decimal(self.total - at) / rs["interval_ns"]
            if not less(rate, self.bw()) or not self.app_limited:
                oldest = self.round_count - self.p["bandwidth_rounds"]
                self.filter.append((self.round_count, rate))
                self.filter = [(n, r) for n, r in self.filter if n > oldest]

    def update_ack_aggregation(self, e: Event) -> None:
        """`bbr_update_ack_aggregation` of Linux."""
        rs = e.rate or {}
        if rs["newly"] == 0 or "interval_ns" not in rs:
            return
        if self.round_start:
            self.extra_rounds += 1
            if self.extra_rounds >= 5:
                self.extra_rounds = 0
                self.extra_acked = (Decimal(0), self.extra_acked[0])
        expected = self.bw() * (e.now_ns - self.epoch)
        # A surplus below half a byte counts as none (a reading).
        if less(self.epoch_acked - expected, Decimal("0.5")):
            self.epoch, self.epoch_acked, expected = e.now_ns, Decimal(0), Decimal(0)
        self.epoch_acked += rs["newly"]
        extra = min(self.epoch_acked - expected, self.cwnd)
        self.extra_acked = (max(self.extra_acked[0], extra), self.extra_acked[1])

    def surplus(self) -> Decimal:
        """`bbr_ack_aggregation_cwnd`: at most a gain times the bytes that 100 ms carry."""
        if not self.filled_pipe:
            return Decimal(0)
        return real(self.p["surplus_gain"]) * min(max(self.extra_acked), self.bw() * 10**8)

    def is_next_cycle_phase(self, e: Event, before: Decimal) -> bool:
        """BBRIsNextCyclePhase."""
        full_length = self.rtprop is not None and e.now_ns - self.cycle_stamp > self.rtprop
        match CYCLE[self.cycle_index]:
            case "probe_gain":
                target = self.inflight(real(self.p["probe_gain"]))
                return full_length and (e.lost > 0 or not less(before, target))
            case "drain_gain":
                return full_length or not less(self.inflight(Decimal(1)), before)
        return full_length

    def check_full_pipe(self) -> None:
        """BBRCheckFullPipe."""
        if self.filled_pipe or not self.round_start or self.app_limited:
            return
        if not less(self.bw(), self.full_bw * Decimal("1.25")):
            self.full_bw, self.full_bw_count = self.bw(), 0
            return
        self.full_bw_count += 1
        self.filled_pipe = self.full_bw_count >= 3

    def check_drain(self, e: Event) -> None:
        """BBRCheckDrain."""
        in_flight = Decimal((e.rate or {})["in_flight"])
        if self.state == "startup" and self.filled_pipe:
            self.state = "drain"
        if self.state == "drain" and not less(self.inflight(Decimal(1)), in_flight):
            self.enter_probe_bw(e)

    def enter_probe_bw(self, e: Event) -> None:
        """BBREnterProbeBW; the draft's random number is the time in microseconds (a reading)."""
        self.state = "probe bw"
        drawn = e.now_ns // 1000 % 7
        self.cycle_index = drawn + 1 if drawn else 0
        self.cycle_stamp = e.now_ns

    def update_rtprop(self, e: Event) -> None:
        """BBRUpdateRTprop."""
        rtt = (e.rate or {}).get("rtt_ns")
        window = nanoseconds(self.p["min_rtt_window"])
        known = self.rtprop is not None
        self.rtprop_expired = known and e.now_ns > self.rtprop_stamp + window
        if rtt is None:
            return
        lower = self.rtprop is None or rtt < self.rtprop
        equal = self.p["equal_refreshes"] and rtt == self.rtprop
        if lower or equal or self.rtprop_expired:
            self.rtprop, self.rtprop_stamp = rtt, e.now_ns

    def check_probe_rtt(self, e: Event) -> None:
        """BBRCheckProbeRTT, BBRHandleProbeRTT."""
        rs = e.rate or {}
        if self.state != "probe rtt" and self.rtprop_expired and not self.idle_restart:
            self.save()
            self.state, self.probe_rtt_done = "probe rtt", None
            self.limited_from = self.total
        if self.state == "probe rtt":
            self.limited_to = self.total + rs["in_flight"]
            if self.probe_rtt_done is None:
                if rs["in_flight"] <= self.min_pipe():
                    self.probe_rtt_done = e.now_ns + nanoseconds(self.p["probe_rtt"])
                    self.probe_rtt_round_done = False
                    self.next_round_delivered = self.total
            else:
                self.probe_rtt_round_done |= self.round_start
                if self.probe_rtt_round_done and e.now_ns > self.probe_rtt_done:
                    self.rtprop_stamp = e.now_ns
                    self.cwnd = max(self.cwnd, self.prior_cwnd)
                    if self.filled_pipe:
                        self.enter_probe_bw(e)
                    else:
                        self.state = "startup"
        if rs["newly"] > 0:
            self.idle_restart = False

    def set_pacing_rate(self, gain: Decimal) -> None:
        """BBRSetPacingRateWithGain."""
        rate = gain * self.bw() * (1 - real(self.p["pacing_margin"]))
        if rate == 0:
            return
        if self.pacing_rate is None or self.filled_pipe or less(self.pacing_rate, rate):
            self.pacing_rate = rate

    def save(self) -> None:
        """BBRSaveCwnd."""
        whole = self.before in {"open", "cwr"} and self.state != "probe rtt"
        self.prior_cwnd = self.cwnd if whole else max(self.prior_cwnd, self.cwnd)

    def set_cwnd(self, e: Event) -> None:
        """BBRSetCwnd, with BBRModulateCwndForRecovery and ...ForProbeRTT."""
        rs = e.rate or {}
        key = {"startup": "startup_gain", "drain": "startup_gain", "probe bw": "cwnd_gain"}
        gain = real(self.p[key[self.state]]) if self.state in key else Decimal(1)
        target = self.inflight(gain) + self.surplus()
        stays = Decimal(rs["in_flight"] + rs["newly"])
        repairs = {"recovery", "loss"}
        if e.phase == "recovery" and self.before != "recovery":
            self.save()
            self.packet_conservation = True
            self.next_round_delivered = self.total
            self.cwnd = max(stays, Decimal(self.mss))
        elif e.phase not in repairs and self.before in repairs:
            self.packet_conservation = False
            self.cwnd = max(self.cwnd, self.prior_cwnd)
        elif e.phase == "recovery" and self.round_start:
            self.packet_conservation = False
        self.before = e.phase
        if e.lost > 0 and e.phase in repairs:
            self.cwnd = max(self.cwnd - e.lost, Decimal(self.mss))
        if self.packet_conservation:
            self.cwnd = max(self.cwnd, stays)
        else:
            if self.filled_pipe:
                self.cwnd = min(self.cwnd + rs["newly"], target)
            elif less(self.cwnd, target) or self.total < self.initial_window:
                self.cwnd += rs["newly"]
            self.cwnd = max(self.cwnd, self.min_pipe())
        if self.state == "probe rtt":
            self.cwnd = min(self.cwnd, self.min_pipe())
        self.cwnd = max(self.cwnd, Decimal(self.mss))

    def window(self) -> tuple[int, int | None]:
        """Returns the window in whole bytes; BBR has no threshold."""
        return super().window()[0], None

    def avoid(self, _: Event, n: int) -> None:
        """Does nothing: see `set_cwnd`."""

    def reduce(self, e: Event, cause: str) -> None:
        """Does nothing: the window follows losses ACK by ACK."""

    def on_restart(self) -> None:
        """Does nothing: an idle period changes nothing."""

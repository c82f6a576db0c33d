"""A namespace with a TUN device in it, and the state of a socket in it."""

from __future__ import annotations

import ctypes
import fcntl
import os
import select
import socket
import struct
import time
from dataclasses import dataclass
from pathlib import Path

CLONE_NEWNET = 0x4000_0000
TUNSETIFF = 0x4004_54CA
IFF_TUN, IFF_NO_PI = 0x0001, 0x1000
SIOCSIFADDR, SIOCSIFNETMASK, SIOCSIFFLAGS, SIOCSIFTXQLEN = 0x8916, 0x891C, 0x8914, 0x8943
IFF_UP, IFF_RUNNING = 0x1, 0x40
ADDRESS, MASK = "10.0.0.1", "255.0.0.0"
#: Priority under SCHED_FIFO: what is late changes what is recorded.
PRIORITY = 50

SYSCTLS = {
    "tcp_no_metrics_save": "1",
    "tcp_wmem": "4096 4194304 4194304",
    "tcp_ecn": "1",
    "tcp_sack": "1",
    "tcp_timestamps": "1",
    "tcp_dsack": "1",
    "tcp_frto": "2",
    "tcp_recovery": "1",
    "tcp_early_retrans": "3",
    "tcp_reordering": "3",
    "tcp_slow_start_after_idle": "1",
    # Segments do not wait for more to go with them: the endpoint's preset has no chunks.
    "tcp_tso_win_divisor": "255",
}


def enter_namespace() -> int:
    """Moves this process to its own network namespace with a TUN device; returns its descriptor."""
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "no network namespace of its own (are you root?)")
    tun = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(tun, TUNSETIFF, struct.pack("16sH22x", b"probe", IFF_TUN | IFF_NO_PI))
    # Its own messages are no part of a probe.
    Path("/proc/sys/net/ipv6/conf/all/disable_ipv6").write_text("1")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        for request, address in ((SIOCSIFADDR, ADDRESS), (SIOCSIFNETMASK, MASK)):
            packed = struct.pack(
                "16sHH4s8x", b"probe", socket.AF_INET, 0, socket.inet_aton(address)
            )
            fcntl.ioctl(control, request, packed + bytes(8))
        fcntl.ioctl(control, SIOCSIFTXQLEN, struct.pack("16si20x", b"probe", 10_000))
        fcntl.ioctl(control, SIOCSIFFLAGS, struct.pack("16sH22x", b"probe", IFF_UP | IFF_RUNNING))
    for name, value in SYSCTLS.items():
        Path("/proc/sys/net/ipv4", name).write_text(value)
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(PRIORITY))
    return tun


def packets(tun: int) -> list[bytes]:
    """Reads all packets that wait at the device."""
    found = []
    while True:
        try:
            found.append(os.read(tun, 65_536))
        except BlockingIOError:
            return found


def wait(tun: int, until: float) -> bool:
    """Sleeps until then, on the monotonic clock, or until something is sent: then `True`."""
    while (left := until - time.monotonic()) > 0:
        if select.select([tun], [], [], left)[0]:
            return True
    return False


#: The names of TCP_CA_*.
PHASES = ("open", "disorder", "cwr", "recovery", "loss")
#: TCP_INFINITE_SSTHRESH
INFINITE = 0x7FFF_FFFF


@dataclass(frozen=True)
class State:
    """Fields of `tcp_info`; times in ms. Its `tcpi_rttvar` is the mean deviation."""

    phase: str
    cwnd: int
    ssthresh: int | None
    unacked: int
    sacked: int
    lost: int
    retrans: int
    total: int
    rto: float
    rtt: float
    mdev: float

    @classmethod
    def of(cls, connection: socket.socket) -> State:
        """Reads the current state of a socket."""
        info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104)
        fields = struct.unpack_from("24I", info, 8)
        ssthresh = fields[17]
        return cls(
            phase=PHASES[info[1]],
            cwnd=fields[18],
            ssthresh=None if ssthresh >= INFINITE else ssthresh,
            unacked=fields[4],
            sacked=fields[5],
            lost=fields[6],
            retrans=fields[7],
            total=fields[23],
            rto=fields[0] / 1000,
            rtt=fields[15] / 1000,
            mdev=fields[16] / 1000,
        )

    def counts(self) -> tuple[object, ...]:
        """All but times."""
        counts = (self.unacked, self.sacked, self.lost, self.retrans, self.total)
        return (self.phase, self.cwnd, self.ssthresh, *counts)

    def __str__(self) -> str:
        """Formats it for the recording, without counts that are 0 at the end."""
        ssthresh = "-" if self.ssthresh is None else self.ssthresh
        times = f"{self.rto:.0f} {self.rtt:.1f} {self.mdev:.1f}"
        counts = [self.total, self.retrans, self.lost, self.sacked]
        while counts and counts[-1] == 0:
            counts.pop()
        words = [self.phase, self.cwnd, ssthresh, self.unacked, times, *counts]
        return " ".join(str(word) for word in words)

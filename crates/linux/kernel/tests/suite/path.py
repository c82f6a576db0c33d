"""A short flow of the real kernel over a slow path, for the tests of kernel controllers.

Run it as `unshare -n python3 path.py …`. It creates a second network namespace, joins the two by
TUN devices, and forwards between them at a rate, with a delay and a queue. Both namespaces go when
it ends. It prints one line of JSON. It offers only what the tests need; measurements are the
testbed's work.
"""

from __future__ import annotations

import argparse
import collections
import fcntl
import json
import os
import select
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from forged import (
    FRAMES,
    OPTIONS,
    PORT,
    QUENCHES,
    SEGMENTS,
    load_at,
    option_at,
    outside,
    with_ecn,
    with_load_mark,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

RECEIVE = """
import socket, sys, threading
def drain(connection):
    try:
        while connection.recv(1 << 16):
            pass
    except ConnectionResetError:
        pass
sys.stdin.readline()
open("/proc/sys/net/ipv4/tcp_ecn", "w").write(sys.argv[1])
server = socket.create_server(("10.77.0.2", 5001))
print("up", flush=True)
while True:
    connection, _ = server.accept()
    threading.Thread(target=drain, args=(connection,), daemon=True).start()
"""

SEND = """
import json, socket, struct, sys, time
controller, seconds, pause = sys.argv[1], float(sys.argv[2]), float(sys.argv[3])
port, thin = int(sys.argv[4]), float(sys.argv[5])
flow = socket.socket()
flow.bind(("10.77.0.1", port))
flow.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, controller.encode())
flow.connect(("10.77.0.2", 5001))
flow.settimeout(0.05)
block, sent, end = bytes(1 << 16), 0, time.monotonic() + seconds
thin = end - seconds + thin if thin else end
silence = end - seconds / 2 if pause else end
while time.monotonic() < end:
    if time.monotonic() > silence:
        time.sleep(pause)
        silence = end
    if time.monotonic() > thin:
        time.sleep(0.02)
        block = bytes(100)
    try:
        sent += flow.send(block)
    except TimeoutError:
        pass
try:
    rto_max = flow.getsockopt(socket.IPPROTO_TCP, 44)
except OSError:
    rto_max = None
info = flow.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 128)
words = struct.unpack_from("24I", info, 8)
flow.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
flow.close()
print(json.dumps({"controller": controller, "sent": sent, "ssthresh": words[17], "cwnd": words[18],
                  "rto_max": rto_max}))
"""

#: Python without site packages, for a fast start.
PYTHON = [sys.executable, "-I", "-S"]
ECT_0, CE = 2, 3
SYN = 0x02
IFF_TUN, IFF_TAP = 1, 2
#: MAC address of the device `side`.
MAC = bytes.fromhex("020000000001")
#: First word of a `--hold` command that runs in the receiver's namespace.
FAR = "far:"


def asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("controllers", nargs="+")
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--mbit", type=float, default=10)
    parser.add_argument("--rtt-ms", type=float, default=40)
    parser.add_argument("--mark-above", type=int, default=0, help="bytes in the queue, then CE")
    parser.add_argument("--drop-above", type=int, default=1 << 30, help="bytes in the queue")
    parser.add_argument(
        "--ecn", type=int, default=1, help="net.ipv4.tcp_ecn where packets are marked"
    )
    parser.add_argument(
        "--drop-marked", type=int, default=0, help="drop what comes so long after a mark"
    )
    parser.add_argument(
        "--dead", type=float, default=0, help="seconds in the middle without a path"
    )
    parser.add_argument(
        "--pause", type=float, default=0, help="seconds of silence of the sender in the middle"
    )
    parser.add_argument(
        "--thin", type=float, default=0, help="after so many seconds little is sent at a time"
    )
    parser.add_argument(
        "--hold", default="", help="a command to run beside the flows, for its JSON"
    )
    parser.add_argument(
        "--quench", choices=QUENCHES, help="quench data, or what pretends to be that"
    )
    parser.add_argument(
        "--loads", default="", help="load factors that ADPM tells, as `seconds:factor,…` from when"
    )
    parser.add_argument("--option", choices=OPTIONS, help="what becomes of the option in ACKs")
    parser.add_argument(
        "--stranger", action="store_true", help="data with CE, not of the window, beside all data"
    )
    parser.add_argument("--frame", choices=FRAMES, help="the same at an Ethernet device `side`")
    parser.add_argument("--forge", choices=SEGMENTS, help="segments of a stranger, beside each ACK")
    parser.add_argument("--group", type=Path, help="the control group to be in")
    parser.add_argument(
        "--quench-above",
        type=int,
        default=0,
        help="bytes in the queue, then each packet is quenched",
    )
    return parser.parse_args()


def main() -> None:
    options = asked()
    if options.group:
        (options.group / "cgroup.procs").write_text(str(os.getpid()))
    near = tun("near")
    far = tun("far")
    side = None
    if options.frame:
        side = tun("side", IFF_TAP)
        ip(f"link set side address {MAC.hex(':')} up")
    receiver = subprocess.Popen(
        [
            "unshare",
            "-n",
            *PYTHON,
            "-c",
            RECEIVE,
            str(max(2, options.ecn)),
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    # The device can only move once unshare has created the namespace.
    own = Path("/proc/self/ns/net").stat().st_ino
    while Path(f"/proc/{receiver.pid}/ns/net").stat().st_ino == own:
        time.sleep(0.005)
    ip("link set far netns", str(receiver.pid))
    ip("addr add 10.77.0.1/24 dev near")
    ip("link set near mtu 1500 txqueuelen 10000 up")
    inside = ["nsenter", "-n", "-t", str(receiver.pid)]
    ip("addr add 10.77.0.2/24 dev far", inside=inside)
    ip("link set far mtu 1500 txqueuelen 10000 up", inside=inside)
    asks = options.mark_above or options.loads
    Path("/proc/sys/net/ipv4/tcp_ecn").write_text(str(options.ecn) if asks else "0")
    receiver.stdin.write(b"go\n")
    receiver.stdin.flush()
    receiver.stdout.readline()
    held = None
    if options.hold:
        words = options.hold.split()
        # In the receiver's namespace.
        beside = [*inside, *words[1:]] if words[0] == FAR else words
        held = subprocess.Popen(beside, stdout=subprocess.PIPE)
        ready = held.stdout.readline()
        if not ready:
            sys.exit("the command ended")
    numbers = [str(options.seconds), str(options.pause)]
    senders = [
        subprocess.Popen(
            [*PYTHON, "-c", SEND, one, *numbers, str(PORT + index), str(options.thin)],
            stdout=subprocess.PIPE,
        )
        for index, one in enumerate(options.controllers)
    ]
    try:
        result = forward((near, far, side), options, senders, held)
    finally:
        receiver.kill()
    result["flows"] = [json.loads(sender.stdout.readline() or "null") for sender in senders]
    if held:
        held.terminate()
        # `None` if it was killed.
        result["held"] = json.loads(held.stdout.readline() or "null")
        held.wait()
    print(json.dumps(result))


def ip(command: str, *more: str, inside: list[str] = ()) -> None:
    subprocess.run([*inside, "ip", *command.split(), *more], check=True)


def tun(name: str, kind: int = IFF_TUN) -> int:
    device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    # 0x400454CA is TUNSETIFF, 0x1000 is IFF_NO_PI.
    fcntl.ioctl(device, 0x400454CA, struct.pack("16sH22x", name.encode(), 0x1000 | kind))
    return device


def forward(
    devices: tuple[int, int, int | None],
    options: argparse.Namespace,
    senders: list[subprocess.Popen],
    held: subprocess.Popen | None,
) -> dict:
    """Forwards packets: a queue, a line of a rate, and half of the delay in each direction."""
    near, far, _ = devices
    half = options.rtt_ms / 2000
    byte_s = 8 / (options.mbit * 1e6)
    queue, there, back = collections.deque(), collections.deque(), collections.deque()
    queued = marks = drops = quenches = forged = late_queue = 0
    unheard = []
    accurate = False
    free = begin = time.monotonic()
    next_mark = drop_until = 0.0
    loads, stranger = Loads(options, far), Stranger(options.forge, near, far)
    after_hold = AfterHold(held)
    poll = select.poll()
    poll.register(near, select.POLLIN)
    poll.register(far, select.POLLIN)
    while any(sender.poll() is None for sender in senders):
        poll.poll(1)
        now = time.monotonic()
        dead = options.dead and 0 <= now - begin - options.seconds / 2 < options.dead
        for packet in packets(near):
            kept = packet
            size = len(packet)
            unheard += [now - begin] if dead else []
            if dead or queued + size > options.drop_above or (now < drop_until and size > 1000):
                drops += 1
                drop_until = 0.0
                continue
            # At most one mark per round trip, as an AQM that controls its queue would set.
            if (
                options.mark_above
                and queued > options.mark_above
                and now > next_mark
                and packet[1] & 3 == ECT_0
            ):
                kept = marked(packet)
                marks += 1
                next_mark = now + 2 * half
                if options.drop_marked and marks % options.drop_marked == 0:
                    drop_until = now + half
            queue.append((now, loads.data(kept, now - begin)))
            queued += size
            late_queue = max(late_queue, queued * (now - begin > options.seconds / 2))
            quenches += quench(devices, options, packet, queued)
        for packet in packets(far):
            forged += stranger.beside(packet, now)
            accurate = accurate or accepts_accurate_ecn(packet)
            kept = loads.ack(packet)
            if not dead:
                back.append((now + half, kept))
        while queue and max(free, queue[0][0]) <= now:
            came, packet = queue.popleft()
            queued -= len(packet)
            free = max(free, came) + len(packet) * byte_s
            there.append((free + half, packet))
        for line, end in ((there, far), (back, near)):
            while line and line[0][0] <= now:
                packet = line.popleft()[1]
                os.write(end, packet)
                after_hold.arrived(len(packet) * (end == far))
    return {
        "marks": marks,
        "drops": drops,
        "accurate": accurate,
        "quenches": quenches,
        "forged": forged,
        "after_hold": after_hold.bytes,
        "late_queue": late_queue,
        "unheard": unheard,
        "acks": loads.acks,
        # ACKs with an estimate of the load.
        "options": loads.options,
        "places": len(loads.places),
    }


def quench(
    devices: tuple[int, int, int | None], options: argparse.Namespace, packet: bytes, queued: int
) -> int:
    """Sends the quenches of a router or an attacker for a data packet; returns their number."""
    near, _, side = devices
    count = 0
    if queued > options.quench_above and len(packet) > 1000:
        if options.quench:
            count += write(near, QUENCHES[options.quench](packet))
        if side is not None:
            count += write(side, FRAMES[options.frame](packet, MAC))
    return count


class Loads:
    """A router that signals loads by two bits, if asked to, and changes estimates in ACKs."""

    def __init__(self, options: argparse.Namespace, far: int) -> None:
        self.asked = options
        self.far = far
        self.places = set()
        self.acks = self.options = 0

    def data(self, packet: bytes, since: float) -> bytes:
        kept = packet
        if self.asked.loads and packet[1] & 3:
            kept, place = with_load_mark(packet, load_at(self.asked.loads, since))
            self.places.add(place)
        if self.asked.stranger and len(packet) > 1000:
            os.write(self.far, outside(packet))
        return kept

    def ack(self, packet: bytes) -> bytes:
        at = option_at(packet)
        self.acks += 1
        if at is None:
            return packet
        self.options += 1
        return OPTIONS[self.asked.option](packet, at) if self.asked.option else packet


class Stranger:
    """An attacker that forges segments beside ACKs, fifty times a second."""

    def __init__(self, kind: str | None, near: int, far: int) -> None:
        self.segments = SEGMENTS[kind] if kind else lambda _: {}
        self.devices = {"near": near, "far": far}
        self.next = 0.0

    def beside(self, ack: bytes, now: float) -> int:
        # After a SYN-ACK the forged numbers would be right, which no attacker can know.
        if now < self.next or ack[33] & SYN:
            return 0
        self.next = now + 0.02
        forged = self.segments(ack).items()
        return sum(write(self.devices[end], segments) for end, segments in forged)


class AfterHold:
    """Counter of bytes forwarded since the held command ended by itself; `None` until then."""

    def __init__(self, held: subprocess.Popen | None) -> None:
        self.held = held
        self.bytes = None

    def arrived(self, size: int) -> None:
        if self.bytes is not None:
            self.bytes += size
        elif self.held and self.held.poll() is not None:
            self.bytes = 0


def write(device: int, packets: Iterable[bytes]) -> int:
    count = 0
    for packet in packets:
        os.write(device, packet)
        count += 1
    return count


def packets(device: int):
    while True:
        try:
            packet = os.read(device, 2048)
        except BlockingIOError:
            return
        if packet[0] >> 4 == 4 and packet[9] == socket.IPPROTO_TCP:
            yield packet


def accepts_accurate_ecn(packet: bytes) -> bool:
    """Returns `True` for a SYN-ACK that agrees to Accurate ECN (RFC 9768, table 2)."""
    tcp = (packet[0] & 15) * 4
    flags = (packet[tcp + 12] & 1) << 8 | packet[tcp + 13]
    ace = flags >> 6
    return flags & 0x12 == 0x12 and ace in {0b010, 0b011, 0b100, 0b110}


def marked(packet: bytes) -> bytes:
    return with_ecn(packet, CE)


if __name__ == "__main__":
    main()

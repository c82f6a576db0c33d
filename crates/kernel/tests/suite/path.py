"""A short flow of the real kernel over a slow path, for the tests of kernel controllers.

Run it as `unshare -n python3 path.py …`: it makes a second network namespace, joins the two by TUN devices, and forwards
between them at a rate, with a delay and a queue. Both namespaces go when it ends, however it ends. It prints one line
of JSON. It knows no more than a test needs; measuring is the testbed's work.
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

if TYPE_CHECKING:
    from collections.abc import Sequence

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
info = flow.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 128)
words = struct.unpack_from("24I", info, 8)
flow.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
flow.close()
print(json.dumps({"controller": controller, "sent": sent, "ssthresh": words[17], "cwnd": words[18]}))
"""

ECT_0, CE = 2, 3
#: The local port of the first flow; those of the others follow.
PORT = 40000


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
    parser.add_argument("--quench", choices=FORGED, help="quench data, or what pretends to be that")
    parser.add_argument(
        "--quench-above",
        type=int,
        default=0,
        help="bytes in the queue, then each packet is quenched",
    )
    return parser.parse_args()


def main() -> None:
    options = asked()
    near = tun("near")
    far = tun("far")
    receiver = subprocess.Popen(
        [
            "unshare",
            "-n",
            sys.executable,
            "-c",
            RECEIVE,
            str(max(2, options.ecn)),
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    # unshare has to have made its namespace before the device can move there.
    own = Path("/proc/self/ns/net").stat().st_ino
    while Path(f"/proc/{receiver.pid}/ns/net").stat().st_ino == own:
        time.sleep(0.005)
    ip("link set far netns", str(receiver.pid))
    ip("addr add 10.77.0.1/24 dev near")
    ip("link set near mtu 1500 txqueuelen 10000 up")
    inside = ["nsenter", "-n", "-t", str(receiver.pid)]
    ip("addr add 10.77.0.2/24 dev far", inside=inside)
    ip("link set far mtu 1500 txqueuelen 10000 up", inside=inside)
    Path("/proc/sys/net/ipv4/tcp_ecn").write_text(str(options.ecn) if options.mark_above else "0")
    receiver.stdin.write(b"go\n")
    receiver.stdin.flush()
    receiver.stdout.readline()
    held = None
    if options.hold:
        held = subprocess.Popen(options.hold.split(), stdout=subprocess.PIPE)
        ready = held.stdout.readline()
        if not ready:
            sys.exit("the command ended")
    numbers = [str(options.seconds), str(options.pause)]
    senders = [
        subprocess.Popen(
            [sys.executable, "-c", SEND, one, *numbers, str(PORT + index), str(options.thin)],
            stdout=subprocess.PIPE,
        )
        for index, one in enumerate(options.controllers)
    ]
    try:
        told = forward(near, far, options, senders)
    finally:
        receiver.kill()
    told["flows"] = [json.loads(sender.stdout.readline() or "null") for sender in senders]
    if held:
        held.terminate()
        told["held"] = json.loads(held.stdout.readline())
        held.wait()
    print(json.dumps(told))


def ip(command: str, *more: str, inside: list[str] = ()) -> None:
    subprocess.run([*inside, "ip", *command.split(), *more], check=True)


def tun(name: str) -> int:
    device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    # TUNSETIFF with IFF_TUN | IFF_NO_PI.
    fcntl.ioctl(device, 0x400454CA, struct.pack("16sH22x", name.encode(), 0x1001))
    return device


def forward(near: int, far: int, options: argparse.Namespace, senders: list) -> dict:
    """A queue before a line of a rate; the delay is half behind it, half on the way back."""
    half = options.rtt_ms / 2000
    byte_s = 8 / (options.mbit * 1e6)
    queue, there, back = collections.deque(), collections.deque(), collections.deque()
    queued = marks = drops = quenches = late_queue = 0
    unheard = []
    accurate = False
    free = begin = time.monotonic()
    next_mark = drop_until = 0.0
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
            # At most one a round trip, as an AQM that is in control of its queue would.
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
            queue.append((now, kept))
            queued += size
            late_queue = max(late_queue, queued * (now - begin > options.seconds / 2))
            if options.quench and queued > options.quench_above and size > 1000:
                quenches += quench(near, FORGED[options.quench](packet))
        for packet in packets(far):
            accurate = accurate or accepts_accurate_ecn(packet)
            if not dead:
                back.append((now + half, packet))
        while queue and max(free, queue[0][0]) <= now:
            came, packet = queue.popleft()
            queued -= len(packet)
            free = max(free, came) + len(packet) * byte_s
            there.append((free + half, packet))
        for line, end in ((there, far), (back, near)):
            while line and line[0][0] <= now:
                os.write(end, line.popleft()[1])
    return {
        "marks": marks,
        "drops": drops,
        "accurate": accurate,
        "quenches": quenches,
        "late_queue": late_queue,
        "unheard": unheard,
    }


def quench(device: int, messages: Sequence[bytes]) -> int:
    for message in messages:
        os.write(device, message)
    return len(messages)


def source_quench(packet: bytes, *, marked: bool = True, quoted: int = 28) -> bytes:
    """A router's word about a packet: RFC 792, with BECN's bit in the fifth octet (crates/wire)."""
    body = bytes([4, 0, 0, 0, 0x80 * marked, 0, 0, 0]) + packet[:quoted]
    body = body[:2] + checksum(body) + body[4:]
    header = struct.pack(
        "!BBHHHBBH4s4s", 0x45, 0, 20 + len(body), 0, 0, 64, 1, 0, ROUTER, packet[12:16]
    )
    return header[:10] + checksum(header) + header[12:] + body


def with_port(packet: bytes, add: int) -> bytes:
    port = int.from_bytes(packet[20:22]) + add
    return packet[:20] + port.to_bytes(2) + packet[22:]


def with_sequence(packet: bytes, add: int) -> bytes:
    sequence = int.from_bytes(packet[24:28]) + add & 0xFFFFFFFF
    return packet[:24] + sequence.to_bytes(4) + packet[28:]


def of_port(packet: bytes, port: int, *messages: bytes) -> Sequence[bytes]:
    return messages if int.from_bytes(packet[20:22]) == port else ()


def wrong_bit(message: bytes) -> bytes:
    return message[:-1] + bytes([message[-1] ^ 1])


ROUTER = bytes([10, 77, 0, 9])
#: What answers a packet of data: quenches of a router, and those that a stranger makes up.
FORGED = {
    "marked": lambda p: of_port(p, PORT, *[source_quench(p)] * 3),
    "dropped": lambda p: of_port(p, PORT, *[source_quench(p, marked=False)] * 3),
    "other connection": lambda p: of_port(p, PORT + 1, source_quench(p)),
    "port": lambda p: [source_quench(with_port(p, 1000))],
    "sequence": lambda p: [source_quench(with_sequence(p, 1 << 31))],
    "acknowledged": lambda p: [source_quench(with_sequence(p, -(1 << 24)))],
    "not sent": lambda p: [source_quench(with_sequence(p, 1 << 24))],
    "truncated": lambda p: [source_quench(p, quoted=27)],
    "checksum": lambda p: [wrong_bit(source_quench(p))],
    "guesses": lambda p: [*[source_quench(with_sequence(p, 1 << 24))] * 12, source_quench(p)],
}


def packets(device: int):
    while True:
        try:
            packet = os.read(device, 2048)
        except BlockingIOError:
            return
        if packet[0] >> 4 == 4 and packet[9] == socket.IPPROTO_TCP:
            yield packet


def accepts_accurate_ecn(packet: bytes) -> bool:
    """Whether it is a SYN-ACK that agrees to Accurate ECN (RFC 9768, table 2)."""
    tcp = (packet[0] & 15) * 4
    flags = (packet[tcp + 12] & 1) << 8 | packet[tcp + 13]
    ace = flags >> 6
    return flags & 0x12 == 0x12 and ace in {0b010, 0b011, 0b100, 0b110}


def marked(packet: bytes) -> bytes:
    header = bytearray(packet[:20])
    header[1] |= CE
    header[10:12] = b"\0\0"
    header[10:12] = checksum(header)
    return bytes(header) + packet[20:]


def checksum(data: bytes) -> bytes:
    """RFC 1071, of bytes whose own checksum is zero."""
    data = bytes(data) + bytes(len(data) % 2)
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    total = (total & 0xFFFF) + (total >> 16)
    total = (total & 0xFFFF) + (total >> 16)
    return struct.pack("!H", ~total & 0xFFFF)


if __name__ == "__main__":
    main()

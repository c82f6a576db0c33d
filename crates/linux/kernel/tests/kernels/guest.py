#!/usr/bin/python3
"""First process of a guest: loads modules, runs commands, and writes to the second serial port."""

import ctypes
import json
import os
import subprocess
import traceback
from pathlib import Path
from typing import TextIO

LIBC = ctypes.CDLL(None, use_errno=True)
FINIT_MODULE = 313
POWER_OFF = 0x4321FEDC
PLACES = (
    ("proc", "/proc"),
    ("sysfs", "/sys"),
    ("devtmpfs", "/dev"),
    ("tmpfs", "/tmp"),
    ("tmpfs", "/run"),
    ("cgroup2", "/sys/fs/cgroup"),
)


def main() -> None:
    os.environ["PATH"] = "/usr/bin:/usr/sbin:/bin:/sbin"
    for kind, place in PLACES:
        if LIBC.mount(b"none", place.encode(), kind.encode(), 0, b"") != 0:
            print(f"mount {place}: {os.strerror(ctypes.get_errno())}")
    with Path("/dev/ttyS1").open("w", buffering=1) as out:
        try:
            work(out)
        except Exception:  # the serial port is the only output
            traceback.print_exc(file=out)
        print("done", file=out)
    os.sync()
    LIBC.reboot(POWER_OFF)


def work(out: TextIO) -> None:
    for module in Path("/load").read_text().split():
        with Path(module).open("rb") as file:
            if LIBC.syscall(FINIT_MODULE, file.fileno(), b"", 0) != 0:
                print(f"{module}: {os.strerror(ctypes.get_errno())}", file=out)
    tun = Path("/dev/net/tun")
    if not tun.exists():
        tun.parent.mkdir(exist_ok=True)
        os.mknod(tun, 0o020666, os.makedev(10, 200))
    for command in json.loads(Path("/commands").read_text()):
        print(f"$ {command}", file=out)
        done = subprocess.run(
            ["sh", "-c", command], stdin=subprocess.DEVNULL, stdout=out, stderr=out, check=False
        )
        print(f"exit {done.returncode}", file=out)
        if done.returncode != 0:
            break


if __name__ == "__main__":
    main()

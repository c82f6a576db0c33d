"""Runs programs at set times and logs their output with its times; `cwnd rrul` executes this file.

It is run as `python -I -S programs.py PLAN`, on either side of a link. The plan is a JSON object:

- `log`: file of JSON lines `[time, program, line]`, and `[time, program, exit code]` at an end;
- `stop`: file that both sides watch, made by the one where a program fails: all programs end;
- `until_closed`: `true` if programs may run until standard input ends, else until all have ended;
- `programs`: for each program its `name`, `command`, Unix times `start` and `deadline`, and whether
  it is `optional`, so that it may fail.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
import time
from typing import Any

#: Exit code if a program failed.
_FAILED = 1
#: Exit code in the log of a program that reached its deadline, as of timeout(1).
_TIMED_OUT = 124
#: Longest wait for output, in seconds, after which deadlines and the file are looked at.
_WAIT_S = 0.5
_READ_BYTES = 1 << 16


class _Runner:
    """The programs of a plan."""

    def __init__(self, plan: dict[str, Any], log: Any) -> None:
        self._waiting = sorted(plan["programs"], key=lambda program: float(program["start"]))
        self._log = log
        self._selector = selectors.DefaultSelector()
        self._running: dict[str, tuple[subprocess.Popen[bytes], dict[str, Any]]] = {}
        self._partial: dict[str, bytes] = {}
        self._stop_file = plan["stop"]
        self._closed = False
        self._until_closed = bool(plan["until_closed"])
        if self._until_closed:
            self._selector.register(sys.stdin, selectors.EVENT_READ, None)

    def run(self) -> int:
        """Runs all programs; returns the exit code of this process."""
        try:
            while not self._over():
                now = time.time()
                while self._waiting and self._waiting[0]["start"] <= now:
                    self._start(self._waiting.pop(0))
                wait = self._waiting[0]["start"] - now if self._waiting else _WAIT_S
                for key, _ in self._selector.select(min(wait, _WAIT_S)):
                    if key.data is None:
                        self._closed = not os.read(key.fd, _READ_BYTES)
                    else:
                        self._read(key)
                for process, program in list(self._running.values()):
                    if time.time() > program["deadline"]:
                        process.kill()
                        self._end(program, _TIMED_OUT)
        finally:
            for process, _ in self._running.values():
                process.kill()
        return _FAILED if self._stopped() else 0

    def _stopped(self) -> bool:
        return os.path.exists(self._stop_file)  # noqa: PTH110 - pathlib takes longer to import

    def _over(self) -> bool:
        nothing_left = not (self._until_closed or self._waiting or self._running)
        return self._closed or nothing_left or self._stopped()

    def _start(self, program: dict[str, Any]) -> None:
        name = program["name"]
        try:
            process = subprocess.Popen(  # noqa: S603 - the commands of `cwnd rrul`
                program["command"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env={**os.environ, "LC_ALL": "C"},
            )
        except OSError as error:
            self._write(name, str(error))
            self._end(program, _FAILED)
            return
        self._running[name] = process, program
        self._partial[name] = b""
        reads = selectors.EVENT_READ
        self._selector.register(process.stdout, reads, name)  # type: ignore[arg-type]

    def _read(self, key: selectors.SelectorKey) -> None:
        name, data = key.data, os.read(key.fd, _READ_BYTES)
        *lines, self._partial[name] = (self._partial[name] + data).split(b"\n")
        for line in lines if data else [self._partial[name]]:
            if line:
                self._write(name, line.decode(errors="replace"))
        if not data:
            self._selector.unregister(key.fileobj)
            if name in self._running:
                process, program = self._running[name]
                self._end(program, process.wait())

    def _end(self, program: dict[str, Any], code: int) -> None:
        self._running.pop(program["name"], None)
        self._write(program["name"], code)
        if code != 0 and not program["optional"]:
            with open(self._stop_file, "w", encoding="utf-8"):  # noqa: PTH123 - as above
                pass

    def _write(self, name: str, what: str | int) -> None:
        self._log.write(json.dumps([time.time(), name, what]) + "\n")
        self._log.flush()


def _main(file: str) -> int:
    # As a program without handlers: all that runs behind a link ends with its command.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    with open(file, encoding="utf-8") as text:  # noqa: PTH123 - pathlib takes longer to import
        plan = json.load(text)
    with open(plan["log"], "w", encoding="utf-8") as log:  # noqa: PTH123 - as above
        return _Runner(plan, log).run()


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1]))

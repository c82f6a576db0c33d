"""Clients of a web server, each with its own connection; they begin when a file appears.

Run behind a link by `record.py`. A file has the requests and their times;
the answers are written to another. Its event loop is uvloop's if that is installed.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import time
from pathlib import Path
from typing import Any, cast

#: A GET with its headers has so many bytes, as in the simulator.
REQUEST_BYTES = 350


class Client(asyncio.Protocol):
    """Asks for a part of a file that is as large as wanted, headers included."""

    def __init__(self, wanted: int, headers: int, done: asyncio.Future[float]) -> None:
        self._body = max(1, wanted - headers)
        self._left: int | None = None
        self._head = b""
        self._done = done
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Sends the request."""
        self._transport = cast("asyncio.Transport", transport)
        start = (
            "GET /file HTTP/1.1\r\nHost: server\r\nConnection: close\r\n"
            f"Range: bytes=0-{self._body - 1}\r\nX-Padding: "
        )
        self._transport.write((start.ljust(REQUEST_BYTES - 4, "x") + "\r\n\r\n").encode())

    def data_received(self, data: bytes) -> None:
        """Counts the body; the request is done with its last byte, or fails without status 206."""
        if self._left is None:
            self._head += data
            head, separator, data = self._head.partition(b"\r\n\r\n")
            if not separator:
                return
            if not head.startswith(b"HTTP/1.1 206"):
                self._end(ConnectionError(head.decode(errors="replace")))
                return
            self._left = self._body
        self._left -= len(data)
        if self._left <= 0:
            self._end(None)

    def connection_lost(self, exc: Exception | None) -> None:
        """Ends the request with an error, unless it is done."""
        self._end(exc or ConnectionError("closed"))

    def _end(self, problem: Exception | None) -> None:
        if not self._done.done():
            if problem is None:
                self._done.set_result(time.monotonic())
            else:
                self._done.set_exception(problem)
        if self._transport is not None:
            self._transport.close()


async def one(
    plan: dict[str, Any], begin: float, at: float, size: int
) -> tuple[float, int, float, float]:
    """Sends one request; returns its planned time, size, response time and lateness, s and bytes.

    A negative response time is an error.
    """
    await asyncio.sleep(begin + at - time.monotonic())
    loop = asyncio.get_running_loop()
    done: asyncio.Future[float] = loop.create_future()
    asked = time.monotonic()
    try:
        await loop.create_connection(
            lambda: Client(size, plan["headers"], done), plan["host"], plan["port"]
        )
        return at, size, await done - asked, asked - begin - at
    except OSError:
        return at, size, -1.0, asked - begin - at


async def main(plan: dict[str, Any], requests: list[tuple[float, int]]) -> dict[str, Any]:
    """Asks for everything, and waits until the end."""
    ready, go = Path(plan["ready"]), Path(plan["go"])
    for name, value in plan["sysctls"].items():
        Path(f"/proc/sys/{name.replace('.', '/')}").write_text(value, encoding="utf-8")
    # Whether there is a way to the server.
    reader, writer = await asyncio.open_connection(plan["host"], plan["port"])
    writer.close()
    del reader
    ready.touch()
    while not go.exists():
        await asyncio.sleep(0.02)
    begin = float(go.read_text(encoding="utf-8"))
    tasks = [asyncio.create_task(one(plan, begin, at, size)) for at, size in requests]
    await asyncio.wait(tasks, timeout=begin + plan["until"] - time.monotonic())
    answers = [task.result() for task in tasks if task.done()]
    for task in tasks:
        task.cancel()
    return {"answers": answers, "asked": len(tasks)}


if __name__ == "__main__":
    with contextlib.suppress(ImportError):
        import uvloop

        asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())
    given = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    given["plan"]["host"] = sys.argv[3]
    found = asyncio.run(main(given["plan"], given["requests"]))
    Path(sys.argv[2]).write_text(json.dumps(found), encoding="utf-8")

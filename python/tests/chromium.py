"""Drives a headless Chromium over its debugging pipe: one page, its console, its pictures.

The pipe carries JSON messages that end with a NUL byte, on descriptors 3 (to Chromium) and 4 (from
it); see the Chrome DevTools Protocol.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import select
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

#: Names under which Debian and others install it.
NAMES = ("chromium", "chromium-browser", "google-chrome")
#: Timeout that suffices on a busy machine.
_PATIENCE_S = 60.0


def find() -> str | None:
    """Returns the path of the browser, if one is installed."""
    return next(filter(None, map(shutil.which, NAMES)), None)


class Chromium(contextlib.AbstractContextManager["Chromium"]):
    """A browser with one page. Requests to a network are complaints."""

    def __init__(self, profile: Path):
        there, self._out = os.pipe()
        self._in, back = os.pipe()
        # Without a sandbox, since tests may run as root; it reads nothing but our own page.
        command = [
            find() or "",
            "--headless",
            "--remote-debugging-pipe",
            "--no-sandbox",
            "--no-first-run",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--disable-background-networking",
            f"--user-data-dir={profile}",
        ]
        # A shell puts the ends of the pipes where Chromium looks for them.
        script = f'exec "$@" 3<&{there} 4>&{back}'
        self._process = subprocess.Popen(
            ["bash", "-c", script, "bash", *command],
            pass_fds=(there, back),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(there)
        os.close(back)
        self._received = b""
        self._count = 0
        self.events: list[dict[str, Any]] = []
        self._session: str | None = None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def __exit__(self, *_: object) -> None:
        os.close(self._out)  # it ends when nobody talks to it any more
        os.close(self._in)
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Sends a command and waits for its answer; what happens meanwhile becomes an event."""
        self._count += 1
        message: dict[str, Any] = {"id": self._count, "method": method, "params": params}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + _PATIENCE_S
        while True:
            answer = self._read(deadline, method)
            if answer.get("id") != self._count:
                self.events.append(answer)
                continue
            if "error" in answer:
                raise RuntimeError(f"{method}: {answer['error']['message']}")
            result: dict[str, Any] = answer["result"]
            return result

    def evaluate(self, expression: str) -> Any:
        """Returns the value of an expression in the page; waits for promises."""
        answer = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def until(self, expression: str) -> Any:
        """Waits until an expression is true in the page, or in the page that replaces it."""

        def found() -> Any:
            try:
                return self.evaluate(expression)
            except RuntimeError as error:
                if "navigated" not in str(error):
                    raise

        deadline = time.monotonic() + _PATIENCE_S
        while not (value := found()):
            if time.monotonic() > deadline:
                raise TimeoutError(f"never true in the page: {expression}")
            time.sleep(0.02)
        return value

    def open(self, file: Path) -> None:
        """Opens a page from disk."""
        self.call("Page.navigate", url=file.resolve().as_uri())
        self.until("document.readyState === 'complete'")

    def show_as(
        self, width: int, height: int, *, mobile: bool = False, scheme: str = "light"
    ) -> None:
        """Sets the window, and whether the user likes it light or dark."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=2 if mobile else 1,
            mobile=mobile,
        )
        self.call("Emulation.setTouchEmulationEnabled", enabled=mobile)
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self.call("Emulation.setEmulatedMedia", features=[feature])

    def move_to(self, x: float, y: float) -> None:
        """Moves the mouse."""
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def screenshot(self, file: Path) -> None:
        """Takes a picture of the whole page."""
        taken = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        file.write_bytes(base64.b64decode(taken["data"]))

    def pdf(self, file: Path) -> None:
        """Prints the page, with its background white."""
        size = {"paperWidth": 8.27, "paperHeight": 11.69, "preferCSSPageSize": True}
        printed = self.call("Page.printToPDF", **size)
        file.write_bytes(base64.b64decode(printed["data"]))

    def complaints(self) -> list[str]:
        """Errors and warnings on the console, exceptions, and requests to anywhere but the file."""
        found = []
        for event in self.events:
            params = event.get("params", {})
            match event.get("method"):
                case "Runtime.exceptionThrown":
                    found.append(str(params["exceptionDetails"]))
                case "Runtime.consoleAPICalled" if params["type"] in ("error", "warning", "assert"):
                    found.append(f"console.{params['type']}: {params['args']}")
                case "Log.entryAdded" if params["entry"]["level"] in ("error", "warning"):
                    found.append(str(params["entry"]))
                case "Network.requestWillBeSent":
                    url = params["request"]["url"]
                    if not url.startswith(("file:", "data:", "blob:", "about:")):
                        found.append(f"request: {url}")
        return found

    def _read(self, deadline: float, waiting_for: str) -> dict[str, Any]:
        while b"\0" not in self._received:
            ready, _, _ = select.select([self._in], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                raise TimeoutError(f"Chromium did not answer {waiting_for}")
            part = os.read(self._in, 1 << 20)
            if not part:
                raise RuntimeError(f"Chromium ended during {waiting_for}")
            self._received += part
        message, _, self._received = self._received.partition(b"\0")
        answer: dict[str, Any] = json.loads(message)
        return answer

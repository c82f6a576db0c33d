"""Builds the playground, `python/cwnd/playground/playground.html` (`make play`).

The page has the simulator as WebAssembly and uPlot, which npm fetches. It needs no other file and
no network. Without Rust's target or npm nothing is built, and a line says so.
"""

from __future__ import annotations

import base64
import gzip
import json
import shutil
import subprocess
import sys
import tarfile
import tomllib
from hashlib import sha512
from pathlib import Path
from typing import Any

from cwnd.report.colours import page_colours

ROOT = Path(__file__).resolve().parent.parent
FILE = ROOT / "python" / "cwnd" / "playground" / "playground.html"
ASSETS = FILE.parent / "assets"
TARGET = "wasm32-unknown-unknown"
#: Drawing library of the page, its version and the SHA-512 of its package, as npm has it.
UPLOT = "uplot-1.6.32.tgz"
UPLOT_SHA512 = (
    "KIMVnG68zvu5XXUbC4LQEPnhwOxBuLyW1AHtpm6IKTXImkbLgkMy+jabjLgSLMasNuGGzQm/ep3tOkyTxpiQIw=="
)


def main() -> int:
    """Builds the page; returns 1 after an error of a compiler."""
    if not runs("rustup", "target", "add", TARGET, stderr=subprocess.DEVNULL):
        return skip(f"rustup cannot get {TARGET}")
    if not shutil.which("npm"):
        return skip("npm is missing, which fetches uPlot: install Node.js")
    library = uplot()
    if library is None:
        return skip(f"npm cannot get {UPLOT}")
    options = ["--package", "cwnd-play", "--lib", "--profile", "play", "--target", TARGET]
    if not runs("cargo", "rustc", "--quiet", "--crate-type", "cdylib", *options, cwd=ROOT):
        return 1
    core = (ROOT / "target" / TARGET / "play" / "cwnd_play.wasm").read_bytes()
    FILE.write_text(page(core, *library), encoding="utf-8")
    size = len(gzip.compress(FILE.read_bytes(), 9))
    print(f"{FILE.relative_to(ROOT)}: {size / 1e6:.2f} MB compressed")
    return 0


def skip(reason: str) -> int:
    """Says why nothing is built."""
    print(f"skipped: play: {reason}", file=sys.stderr)
    return 0


def runs(*command: str, **options: Any) -> bool:
    """Runs a program; returns `False` if it is missing or fails."""
    if not shutil.which(command[0]):
        return False
    options = {"stdout": subprocess.DEVNULL, **options}
    return subprocess.run(command, check=False, **options).returncode == 0


def uplot() -> tuple[str, str, str] | None:
    """Returns script, style and licence of uPlot; `None` if npm cannot get it."""
    folder = ROOT / "target" / "tools"
    package = folder / UPLOT
    if not package.exists():
        folder.mkdir(parents=True, exist_ok=True)
        name, _, version = UPLOT.removesuffix(".tgz").rpartition("-")
        if not runs("npm", "pack", "--silent", f"{name}@{version}", cwd=folder):
            return None
    if base64.b64encode(sha512(package.read_bytes()).digest()).decode() != UPLOT_SHA512:
        sys.exit(f"error: {package} is not uPlot's package; remove it")
    with tarfile.open(package) as archive:

        def text(name: str) -> str:
            member = archive.extractfile(f"package/{name}")
            assert member is not None
            return member.read().decode().strip()

        return text("dist/uPlot.iife.min.js"), text("dist/uPlot.min.css"), text("LICENSE")


def page(core: bytes, library: str, style: str, licence: str) -> str:
    """Puts the page together."""

    def asset(*names: str) -> str:
        return "\n".join((ASSETS / name).read_text("utf-8") for name in names)

    def colours(name: str) -> str:
        found = page_colours(name)
        names = {key: f"line-{key}" if key.isdigit() else key for key in found}
        return "\n".join(f"    --{names[key]}: {value};" for key, value in found.items())

    script = asset("core.js", "plots.js", "controls.js", "page.js")
    parts = {
        "style": f"{style}\n{asset('page.css')}",
        "light": colours("light"),
        "dark": colours("dark"),
        "examples": json.dumps(examples()).replace("</", "<\\/"),
        "core": base64.b64encode(gzip.compress(core, 9, mtime=0)).decode(),
        "worker": asset("core.js", "worker.js"),
        "licence": licence,
        "library": library,
        "script": script,
    }
    html = asset("page.html")
    for name, text in parts.items():
        html = html.replace("{{" + name + "}}", text)
    return html


def examples() -> list[dict[str, str]]:
    """Returns the scenarios to choose from, the first as the page starts."""
    files = [ASSETS / "start.toml", *sorted((ROOT / "scenarios").glob("*.toml"))]
    found = []
    for file in files:
        text = file.read_text("utf-8")
        found.append({"name": file.stem, "about": tomllib.loads(text)["description"], "text": text})
    found[0]["name"] = "two-flows"
    return found


if __name__ == "__main__":
    sys.exit(main())

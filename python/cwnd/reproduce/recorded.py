"""What a paper's claims come to on real Linux, beside the simulator: recorded once, then shown."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cwnd.agreement import SIMULATOR
from cwnd.files import write_atomically
from cwnd.reproduce.linux import available
from cwnd.reproduce.run import judge
from cwnd.reproduce.shelf import paper
from cwnd.running import LINUX
from cwnd.sweeps import load

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from cwnd.reproduce.claims import Claim, Outcome, Paper

#: What is recorded, beside the scenarios that Linux can run.
RECORDED = "recorded.json"
#: Where the section of a paper's page begins that is of Linux.
BEGINS = "<!-- On real Linux -->"
#: The worlds, as the section names them.
_WORLDS = (SIMULATOR, LINUX)


def record(name: str, directory: Path) -> Path:
    """Judges a paper's claims by what `reproduce_on_linux` left, and writes that down.

    Of each claim those numbers count whose figures were run and which the kernel can tell.
    """
    of = paper(name)
    ran = [each for each in available(name) if (directory / each / LINUX).is_dir()]
    worlds = {world: {each: load(directory / each / world) for each in ran} for world in _WORLDS}
    found = {
        "kernel": sorted({k for run in worlds[LINUX].values() for k in _world(run)["kernel"]}),
        "invalid_runs": sum(_world(run)["invalid_runs"] for run in worlds[LINUX].values()),
        "lateness_p99_us": max(_world(run)["lateness_p99_us"] for run in worlds[LINUX].values()),
        "claims": {
            claim.id: checks for claim in of.claims if (checks := list(_checks(of, claim, worlds)))
        },
    }
    file = of.folder / LINUX / RECORDED
    text = json.dumps(found, indent=2, ensure_ascii=False) + "\n"
    write_atomically(file, text.encode())
    return file


def _world(run: Any) -> dict[str, Any]:
    return dict(run.manifest.world)


def _checks(of: Paper, claim: Claim, worlds: dict[str, dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for check in claim.checks:
        figure = check.arguments.get("figure", claim.figures[0])
        runs = of.runs_of(figure)
        if not check.linux or runs not in worlds[LINUX]:
            continue
        row: dict[str, Any] = {"what": check.what}
        for world, results in worlds.items():
            outcome = judge(check, claim, {**results, figure: results[runs]}, of.name)
            row["allowed"] = outcome.check.allowed
            row[world] = {"ours": outcome.text, "holds": _holds(outcome)}
        yield row


def _holds(outcome: Outcome) -> bool:
    """Whether it is as claimed; an order of a single run has no interval, but a side."""
    if outcome.check.kind == "order" and outcome.ours is not None and outcome.ours.n == 1:
        return outcome.ours.mean > 0
    return outcome.holds


@dataclass(frozen=True)
class _Part:
    """A claim, and what was recorded of it."""

    claim: Claim
    checks: Sequence[dict[str, Any]]

    def verdict(self, world: str) -> str:
        held = sum(check[world]["holds"] for check in self.checks)
        if held == len(self.checks):
            return "holds"
        return f"**does not hold** ({held} of {len(self.checks)} numbers)"


def section(of: Paper, images: str) -> str:
    """The section of a paper's page that is of Linux; empty where nothing is recorded.

    Args:
        of: The paper.
        images: Where its figures are, seen from the page.
    """
    file = of.folder / LINUX / RECORDED
    if not file.is_file():
        return ""
    found = json.loads(file.read_text(encoding="utf-8"))
    known = found["claims"]
    parts = [_Part(claim, known[claim.id]) for claim in of.claims if claim.id in known]
    rows = ["| claim | simulator, as Linux | Linux |", "|---|---|---|"]
    rows += [
        f"| {part.claim.id} | {' | '.join(part.verdict(world) for world in _WORLDS)} |"
        for part in parts
    ]
    about = (
        f"Linux {', '.join(found['kernel'])}. Invalid runs: {found['invalid_runs']}. In the worst"
        f" run 1 % of the packets left the router more than {found['lateness_p99_us'] / 1000:.2f}"
        " ms late."
    )
    text = [BEGINS, "## On real Linux", of.linux, about, "\n".join(rows)]
    text += [_claim(of, part, images) for part in parts]
    return "\n\n".join(each for each in text if each) + "\n"


def _claim(of: Paper, part: _Part, images: str) -> str:
    claim = part.claim
    rows = ["| what | counts | simulator, as Linux | Linux | |", "|---|---|---|---|---|"]
    for check in part.checks:
        ours = " | ".join(check[world]["ours"] for world in _WORLDS)
        mark = "" if check[LINUX]["holds"] else "**not on Linux**"
        rows.append(f"| {check['what']} | {check['allowed']} | {ours} | {mark} |")
    text = [f"### {claim.id} on Linux: {part.verdict(LINUX)}", "\n".join(rows)]
    if claim.linux:
        text.append(f"What we found: {claim.linux}")
    pictures = of.folder / images / LINUX
    for figure in claim.figures:
        if (pictures / f"{figure}-{LINUX}.png").is_file():
            both = " | ".join(
                f"![{figure}, {w}]({images}/{LINUX}/{figure}-{w}.png)" for w in _WORLDS
            )
            text.append(f"| simulator | Linux |\n|---|---|\n| {both} |")
    return "\n\n".join(text)

"""Numbers of README and docs/validation.md, against the pages and files that they come from."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from conftest import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")
VALIDATION = (ROOT / "docs" / "validation.md").read_text(encoding="utf-8")
TCP = Path("crates/tcp/tests")


def numbers(file: Path, pattern: str) -> tuple[str, ...]:
    found = re.search(pattern, (ROOT / file).read_text(encoding="utf-8"))
    assert found is not None, (file, pattern)
    return found.groups()


def test_rows_of_peers() -> None:
    hold, judged = numbers(Path("docs/peers.md"), r"(\d+) of (\d+) recorded rows")
    assert f"row by row ({hold} of {judged} hold" in VALIDATION


def test_scripts_of_the_endpoint() -> None:
    scripts = len(list((ROOT / TCP / "scripts").rglob("*.script")))
    assert f"[{scripts} scripts]" in VALIDATION


def test_probes_of_linux() -> None:
    equal, probes = numbers(TCP / "probes" / "differences.txt", r"equal: (\d+) of (\d+)")
    assert f"[{probes} stimuli]" in VALIDATION
    assert f"event by event, in {equal}," in VALIDATION
    page = (ROOT / "docs" / "packetdrill.md").read_text(encoding="utf-8")
    assert f"Of the {probes} **{equal} are equal**" in page


def test_other_peoples_scripts() -> None:
    pattern = r"passes (\d+) of the (\d+) scripts that Linux 6.18 passes"
    passes, of = numbers(Path("docs/packetdrill.md"), pattern)
    assert f"preset passes {passes} of the {of} that Linux passes" in VALIDATION


def test_points_of_the_comparison_with_linux() -> None:
    """Goodput and gains of the first 72 points by name, all others together."""
    page = Path("docs/agreement.md")
    three = best = points = 0
    for name in ("10 Mbit/s", "50 Mbit/s"):
        row = rf"\| {name}: goodput \| (\d+) of (\d+) \| (\d+) of \d+ \|"
        few, of, more = map(int, numbers(page, row))
        three, points, best = three + few, points + of, best + more
    everything, everywhere = map(
        int, numbers(page, r"all: goodput or completion time\*\* \| .* \| \*\*(\d+) of (\d+)\*\*")
    )
    gains = numbers(
        page, r"all: gain of ABE\*\* \| \*\*(\d+) of (\d+)\*\* .*\| \*\*(\d+) of \d+\*\*"
    )
    timeouts, asked = numbers(page, r"all: timeouts\*\* \| .* \| \*\*(\d+) of (\d+)\*\*")
    assert int(asked) == everywhere - points
    assert f"[{everywhere} points]" in README
    for told in (
        f"at [{points} points]",
        f"within 10 % of the kernel's at {three} ",
        f"percentage points at {gains[0]} of {gains[1]}.",
        f"it is {best} and {gains[2]}.",
        f"{everywhere - points} more points",
        f"within 10 % at {everything - best} of them",
        f"one a run at {timeouts}.",
    ):
        assert told in " ".join(VALIDATION.split()), told


def test_mechanisms_that_linux_was_given() -> None:
    """The first group is of what Linux has by itself, and ABE."""
    page = (ROOT / "docs" / "agreement.md").read_text(encoding="utf-8")
    share = r"\*\*(\d+ of \d+)\*\* \(\d+ %\)"
    row = rf"^\| ([^|]+) \| {share} \| \d+ % \| {share} \| {share} \|$"
    _, *groups = re.findall(row, page, flags=re.MULTILINE)
    assert groups
    for told in groups:
        assert f"| {' | '.join(told)} |\n" in VALIDATION, told


@pytest.mark.parametrize("paper", ["abe", "tcpstar", "becn", "dbaimd", "bmcc"])
def test_claims_of_papers(paper: str) -> None:
    page = Path("python/cwnd/studies/papers") / paper / "page.md"
    pattern = r"(\d+) of (\d+) claims are reproduced in full, (\d+) of their (\d+) numbers"
    claims, of, right, asked = numbers(page, pattern)
    line = re.search(rf"[^\n]*papers/{paper}/page\.md[^\n]*\n[^\n]*", VALIDATION)
    assert line is not None
    assert re.search(rf"\b{claims} of {of} claims", line[0])
    assert f"{right} of their {asked} numbers" in line[0]


def test_speed_beside_ns3() -> None:
    page = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
    times = re.search(r"\[(\d+) to (\d+) times as fast as ns-3\]", README)
    assert times is not None
    beside = page[page.index("## Beside ns-3 and ns-2") :]
    assert all(re.search(rf"\b{each}\b", beside) for each in times.groups())

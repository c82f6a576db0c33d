"""Numbers of README and validation.md, against the pages and files that they come from."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from conftest import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")
VALIDATION = (ROOT / "docs" / "explanation" / "validation.md").read_text(encoding="utf-8")
TCP = Path("crates/tcp/tests")


def numbers(file: Path, pattern: str) -> tuple[str, ...]:
    found = re.search(pattern, (ROOT / file).read_text(encoding="utf-8"))
    assert found is not None, (file, pattern)
    return found.groups()


def test_rows_of_peers() -> None:
    page = Path("python/cwnd/studies/peers/recorded/page.md")
    hold, judged = numbers(page, r"(\d+) of (\d+) recorded rows")
    assert f"row by row ({hold} of {judged} hold" in VALIDATION


def test_scripts_of_the_endpoint() -> None:
    scripts = len(list((ROOT / TCP / "scripts").rglob("*.script")))
    assert f"[{scripts} scripts]" in VALIDATION


def test_probes_of_linux() -> None:
    equal, probes = numbers(TCP / "probes" / "differences.txt", r"equal: (\d+) of (\d+)")
    assert f"[{probes} stimuli]" in VALIDATION
    assert f"event by event, in {equal}," in VALIDATION
    page = (ROOT / "crates/tcp/tests/packetdrill/README.md").read_text(encoding="utf-8")
    assert f"Of the {probes} **{equal} are equal**" in page


def test_other_peoples_scripts() -> None:
    pattern = r"passes (\d+) of the (\d+) scripts that Linux 6.18 passes"
    passes, of = numbers(Path("crates/tcp/tests/packetdrill/README.md"), pattern)
    assert f"preset passes {passes} of the {of} that Linux passes" in VALIDATION


def test_points_of_the_comparison_with_linux() -> None:
    """The first group is of what Linux has by itself, and ABE; the others are counted together."""
    page = (ROOT / "python/cwnd/studies/worlds/overview/page.md").read_text(encoding="utf-8")
    share = r"\*\*(\d+) of (\d+)\*\* \(\d+ %\)"
    row = rf"^\| \[[^|]+ \| {share} \| \d+ % \| {share} \| {share} \|$"
    first, *others = [[*map(int, of)] for of in re.findall(row, page, flags=re.MULTILINE)]
    together = [sum(of) for of in zip(*others, strict=True)]
    validation = " ".join(VALIDATION.split())
    for within, of in (*batched(first), *batched(together)):
        assert f" at {within} of {of}" in validation
    assert f"[{first[1]} points]" in README


def batched(counts: list[int]) -> list[tuple[int, int]]:
    """Pairs of a count and its total."""
    return list(zip(counts[::2], counts[1::2], strict=True))


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
    page = (ROOT / "benches" / "README.md").read_text(encoding="utf-8")
    times = re.search(r"\[(\d+) to (\d+) times as fast as ns-3\]", README)
    assert times is not None
    beside = page[page.index("## Beside ns-3 and ns-2") :]
    assert all(re.search(rf"\b{each}\b", beside) for each in times.groups())

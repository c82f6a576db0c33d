"""Every block of every page does what it says, and what pages say in passing is there.

`docblocks` finds the blocks, and says how a page tells a test what it needs.
"""

from __future__ import annotations

import re
import subprocess
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import docblocks
import pytest
import steered
import tomli_w
from _pytest.mark.structures import ParameterSet
from conftest import CWND, ROOT

import cwnd
from cwnd import _core
from cwnd.running import plans

BLOCKS = [block for page in docblocks.pages() for block in docblocks.blocks(page)]
RUN = [block for block in BLOCKS if block.language in docblocks.RUN]
#: Pages that send real packets: one block of them does, and shares what others leave.
TESTBED = {block.page for block in RUN if "root" in block.needs}
#: Page that runs alone: its controllers apply to all connections of the host.
ALONE = "docs/how-to/kernel.md"

CLUSTER = "a cluster of several machines; test_sweep_on_ray.py makes one"
#: Commands that are not run, by page, with the reason.
NOT_RUN = {
    ("CONTRIBUTING.md", "make dev"): "it builds what runs this",
    ("CONTRIBUTING.md", "make run"): "README runs it",
    ("CONTRIBUTING.md", "cargo test"): "it compiles",
    ("CONTRIBUTING.md", ".venv/bin/pytest"): "tests do not run tests",
    ("CONTRIBUTING.md", "make lint"): "make test runs it",
    ("docs/how-to/kernel.md", "apt install"): "it changes the machine",
    **{
        (page, command): reason
        for page in ("docs/fuzzing.md", "fuzz/page.md")
        for command, reason in (
            ("make fuzz", "it installs programs, and takes minutes"),
            ("make test-long", "it takes more than half an hour"),
        )
    },
    ("docs/how-to/sweeps.md", "pip install"): "what it installs is there, or the block is not run",
    ("docs/how-to/sweeps.md", "cwnd run my.toml --on ray:10"): CLUSTER,
    ("docs/how-to/sweeps.md", "cwnd run my.toml --on ray://"): CLUSTER,
}
#: Pages whose commands and settings are read where they stand in a sentence or a table, too.
READ = [
    page
    for page in docblocks.pages()
    if page in ("README.md", "CONTRIBUTING.md")
    or page.startswith(("docs/", "python/cwnd/studies/"))
]


#: Pages with settings of other simulators.
OTHERS = ("python/cwnd/studies/peers/",)
#: Code spans that look like a setting and are none.
FORMULAS = ("sojourn = now − time of arrival",)


@pytest.fixture(scope="session")
def readers() -> dict[str, docblocks.Reader]:
    return {}


def _marked(block: docblocks.Block) -> ParameterSet:
    marks = [pytest.mark.xdist_group(block.page)]
    if block.page in TESTBED:
        marks.append(pytest.mark.real_time if block.page == ALONE else pytest.mark.testbed)
    return pytest.param(block, id=block.place, marks=marks)


@pytest.mark.parametrize("block", [_marked(block) for block in RUN])
def test_a_block_does_what_it_says(
    block: docblocks.Block,
    readers: dict[str, docblocks.Reader],
    tmp_path_factory: pytest.TempPathFactory,
):
    if block.lacks is not None:
        pytest.skip(f"needs {block.lacks}")
    if block.page not in readers:
        readers[block.page] = docblocks.Reader(tmp_path_factory.mktemp("page"), block.page)
    readers[block.page].through(block)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("\n```sh\ntrue\ncwnd check no.toml\ntrue\n```\n", "page.md:4: failed: cwnd check no.toml"),
        ("\n```python\nfound = []\nfound[1]\n```\n", "page.md:3"),
        ("\n```toml\n[flow.main]\nrtt = '1 s'\nrt = '1 s'\n```\n", "unknown key `rt`"),
        ("<!-- test: swap x => y -->\n```sh\ntrue\n```\n", "page.md:3: 'x'"),
        ('<!-- test: not run "x": of old -->\n```sh\ntrue\n```\n', "page.md:3: 'x'"),
    ],
)
def test_a_block_that_fails_is_named_with_its_line(text: str, place: str, tmp_path: Path):
    (block,) = docblocks.blocks_of(text, "page.md")
    with pytest.raises(docblocks.BlockError, match=re.escape(place)):
        docblocks.Reader(tmp_path, "page.md").do(block)


def test_a_part_of_a_scenario_replaces_the_keys_that_it_names():
    before = {"dumbbell": {"rate": "1 Mbit/s", "queue": "pie"}, "flow": {"main": {"rtt": "1 ms"}}}
    part = "[dumbbell]\nqueue = 'codel'\n\n[sweep.axis.rtt]\nvalues = [1]\n"
    assert docblocks.added(before, part) == {
        "dumbbell": {"rate": "1 Mbit/s", "queue": "codel"},
        "flow": {"main": {"rtt": "1 ms"}},
        "sweep": {"axis": {"rtt": {"values": [1]}}},
    }


def test_what_is_not_run_is_known_with_its_reason():
    found = {
        (block.page, start): reason for block in BLOCKS for start, reason in block.not_run.items()
    }
    assert found == NOT_RUN


def test_orders_to_the_test_are_ones_that_it_knows():
    known = ("file", "onto", "given", "swap", "needs", "not run", "serves")
    for block in BLOCKS:
        for order in block.orders:
            assert order.startswith(tuple(f"{each} " for each in known)), (block.place, order)
        wrong = [each for each in block.told("not run") if not each.startswith('"')]
        assert not wrong, (block.place, wrong)
    # Each comment stands right before its block, or it would say nothing.
    comments = sum(
        (ROOT / page).read_text("utf-8").count("<!-- test:") for page in docblocks.pages()
    )
    assert comments == sum(bool(block.orders) for block in BLOCKS)


def test_what_is_to_be_run_says_its_language():
    """A block without a language is a drawing, or the output of a program."""
    for block in BLOCKS:
        if block.language not in docblocks.RUN:
            assert block.language in ("", "text", "json", "rust"), block.place
            commands = re.findall(r"^(?:\$ |sudo |cwnd |make |import )", block.text, re.MULTILINE)
            assert not commands, block.place


@pytest.mark.parametrize("page", READ)
def test_commands_in_passing_are_there_with_their_options(page: str):
    for command in _spans(page):
        words = re.sub(r"^(?:sudo )?(?:\.venv/bin/)?", "", command).split()
        if words[:1] == ["make"] and words[1:2] and re.fullmatch(r"[a-z-]+", words[1]):
            assert re.search(rf"^{words[1]}:", _makefile(), re.MULTILINE), (page, command)
        if words[:1] == ["cwnd"] and words[1:2] and re.fullmatch(r"[a-z]+", words[1]):
            about = _help(*_command(words[1:]))
            # What stands behind `--` is another program's.
            ours = " ".join(words[2:]).split(" -- ")[0]
            for option in set(re.findall(r"(?<!\S)--[a-z][\w-]*", ours)) - {"--help"}:
                assert re.search(rf"{option}\b", about), (page, command, option)


@pytest.mark.parametrize("page", [page for page in READ if not page.startswith(OTHERS)])
def test_settings_in_passing_are_ones_that_a_scenario_takes(page: str, tmp_path: Path):
    for trace in ("up.trace", "down.trace"):
        (tmp_path / trace).write_text("1\n2\n", encoding="utf-8")
    (tmp_path / "wifi.csv").write_text("time_s,added_ms\n0,5\n", encoding="utf-8")
    (tmp_path / "recorded.txt").write_text("0 4.2\n1 3.9\n", encoding="utf-8")
    for span in _spans(page):
        if re.match(r"[a-z_]+ = ", span) and "…" not in span and span not in FORMULAS:
            assert _taken(tomllib.loads(span), tmp_path / "setting.toml"), (page, span)


def _taken(setting: dict[str, Any], file: Path) -> bool:
    """`True` if a section of a scenario accepts the setting."""
    for section, around in _places():
        document: dict[str, Any] = {
            "schema": 1,
            "run": {"duration": "1 s"},
            "dumbbell": {"rate": "10 Mbit/s"},
            "flow": {"main": {"rtt": "20 ms"}},
        }
        if section == ("flow", "hosts"):
            way = {"from": "a", "to": "b", "rate": "none", "delay": "1 ms", "duplex": True}
            document |= {"flow": {}, "link": {"way": way}}
            del document["dumbbell"]
        if section[-1:] == ("arrivals",) or "arrivals" in setting:
            document["flow"]["main"]["workload"] = {"kind": "bytes", "size": "30 kB"}
        controller = setting.get("controller", "")
        kind = controller if isinstance(controller, str) else controller.get("kind", "")
        if kind in steered.NEEDED and "dumbbell" in document:
            meter, echo = steered.NEEDED[kind]
            document["dumbbell"]["meter"] = meter
            document["flow"]["main"]["endpoint"] = {"ecn": True, "echo": echo}
        table = document
        for name in section:
            table = table.setdefault(name, {})
        table.update({**around, **setting})
        if section == ("dumbbell",) and "trace" in setting:
            del table["rate"]
        file.write_text(tomli_w.dumps(document), encoding="utf-8")
        try:
            plans.plan(file)
        except cwnd.ScenarioError:
            continue
        return True
    return False


def _places() -> Iterator[tuple[tuple[str, ...], dict[str, Any]]]:
    """The sections of a scenario, and what stands in each besides."""
    yield from (
        (section, {}) for section in ((), ("run",), ("dumbbell",), ("sweep",), ("flow", "main"))
    )
    # Of a graph: between several nodes.
    yield ("flow", "hosts"), {"from": ["a", "b"], "to": ["a", "b"]}
    yield ("dumbbell",), {"reorder_delay": "1 ms"}
    yield ("sweep", "axis", "any"), {"values": ["10 ms"]}
    parts = {"queue": ("dumbbell",), "controller": ("flow", "main"), "arrivals": ("flow", "main")}
    for part, section in parts.items():
        for kind, _, _ in _core.kinds()[part]:
            yield (*section, part), {"kind": kind}
    for preset in ("rfc", "linux", "ns2"):
        yield ("flow", "main", "endpoint"), {"preset": preset}


def _spans(page: str) -> list[str]:
    """Returns the code spans of a page: in sentences and tables, not in blocks."""
    text = (ROOT / page).read_text(encoding="utf-8")
    text = re.sub(r"^ *```.*?^ *```", "", text, flags=re.DOTALL | re.MULTILINE)
    return [" ".join(span.split()) for span in re.findall(r"(?<!`)`([^`]+)`(?!`)", text)]


@cache
def _makefile() -> str:
    return (ROOT / "Makefile").read_text(encoding="utf-8")


@cache
def _help(*command: str) -> str:
    done = subprocess.run(
        [CWND, *command, "--help"], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, (command, done.stderr)
    return done.stdout


def _command(words: list[str]) -> tuple[str, ...]:
    """The command, and what it is to do where it does several things."""
    several = {
        "study": "run check page",
        "sweep": "verify",
        "testbed": "calibrate clean",
        "topology": "hot import",
    }
    deeper = words[1:2] if words[1:2] and words[1] in several.get(words[0], "").split() else []
    return (words[0], *deeper)


@pytest.mark.parametrize("part", ["controller", "queue", "meter", "messenger"])
def test_a_kind_has_a_page_and_a_result_that_it_is_held_against(part: str) -> None:
    kinds = [kind for kind, _, _ in _core.kinds()[part] if kind != "none"]
    assert kinds
    pages = {page.stem for page in (ROOT / f"docs/reference/{part}s").glob("*.md")}
    assert set(kinds) <= pages
    features = (ROOT / "docs/reference/features.md").read_text(encoding="utf-8")
    assert [kind for kind in kinds if f"({part}s/{kind}.md)" not in features] == []
    if part in ("controller", "queue"):
        files = [*(ROOT / "vectors").glob("*.json"), *(ROOT / "tests/golden").glob("*.txt")]
        names = {file.stem.removesuffix("-sender") for file in files}
        # A line for each pair of a controller and a queue.
        pairs = (ROOT / "tests/golden/one-flow.txt").read_text(encoding="utf-8").splitlines()[2:]
        names |= {name for pair in pairs for name in pair.split()[:2]}
        assert set(kinds) <= names


def _anchors(page: Path) -> set[str]:
    """Returns the anchors that code hosts give a page's headings."""
    text = re.sub(
        r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL
    )
    found: dict[str, int] = {}
    anchors = set(re.findall(r'<a (?:id|name)="([^"]+)"', text))
    for heading in re.findall(r"^#+ (.+)$", text, flags=re.MULTILINE):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
        slug = re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
        number = found[slug] = found.get(slug, -1) + 1
        anchors.add(f"{slug}-{number}" if number else slug)
    return anchors


@pytest.mark.parametrize("page", docblocks.pages())
def test_links_lead_somewhere(page: str):
    text = (ROOT / page).read_text(encoding="utf-8")
    text = re.sub(r"^```.*?^```|`[^`\n]*`", "", text, flags=re.MULTILINE | re.DOTALL)
    folder = (ROOT / page).parent
    # Texts that a script puts into a page of the folder above.
    if re.match(r"docs/[^/]+/template\.md", page):
        folder = folder.parent
    wrong = []
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        file = folder / name if name else ROOT / page
        if not file.exists() or (
            anchor and file.suffix == ".md" and anchor not in _anchors(file.resolve())
        ):
            wrong.append(target)
    assert not wrong

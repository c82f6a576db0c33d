"""Every block of every page does what it says, numbers are those of their sources, the site builds.

`docblocks` finds the blocks, and says how a page tells a test what it needs.
"""

from __future__ import annotations

import html
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import chromium
import docblocks
import pytest
import tomli_w
from _pytest.mark.structures import ParameterSet
from conftest import NEEDED, ROOT, Cli

import cwnd
from cwnd import _core
from cwnd.running import plans

BLOCKS = [block for page in docblocks.pages() for block in docblocks.blocks(page)]
RUN = [block for block in BLOCKS if block.language in docblocks.RUN]
#: Pages that send real packets: one block of them does, and shares what others leave.
TESTBED = {block.page for block in RUN if "root" in block.needs}
#: Pages that run alone: controllers of one apply to all connections of the host; the others start
#: Ray, of which a machine has one.
ALONE = {"docs/how-to/kernel.md", *(block.page for block in RUN if "ray" in block.needs)}

CLUSTER = "a cluster of several machines; test_sweep_on_ray.py makes one"
#: Commands that are not run, by page, with the reason.
NOT_RUN = {
    ("docs/how-to/write-a-controller.md", "pip install"): "test_rust_controllers.py builds,"
    " installs and runs the crate",
    ("docs/how-to/write-a-controller.md", "cwnd run mine/"): "likewise",
    ("docs/how-to/write-a-controller.md", "cd mystack"): "test_installed.py runs it",
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
    ("docs/how-to/play.md", "cwnd play"): "it opens a browser",
    ("docs/how-to/play.md", "make play"): "it builds the page",
    ("docs/how-to/play.md", "widget = cwnd.play"): "it needs the page that make play builds",
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
    if block.page in ALONE:
        marks.append(pytest.mark.real_time)
    elif block.page in TESTBED:
        marks.append(pytest.mark.testbed)
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
        # `py` and `go` read vectors, in test_packages.py.
        if block.language not in (*docblocks.RUN, "py", "go"):
            assert block.language in ("", "text", "json", "rust", "yaml"), block.place
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
        if kind in NEEDED and "dumbbell" in document:
            meter, echo = NEEDED[kind]
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
    answer = Cli(ROOT)(*command, "--help")
    assert answer.code == 0, (command, answer.err)
    return answer.out


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
    pattern = r"\*\*(\d+) of (\d+) numbers hold\*\* .* before the runs, (\d+) if .* counts, (\d+) "
    hold, of, others, departures = numbers(page, pattern)
    line = re.search(rf"[^\n]*papers/{paper}/page\.md[^\n]*\n[^\n]*", VALIDATION)
    assert line is not None
    assert f"{hold} of {of} numbers hold ({others}, {departures})" in line[0]


def test_speed_beside_ns3() -> None:
    page = (ROOT / "benches" / "README.md").read_text(encoding="utf-8")
    times = re.search(r"\[(\d+) to (\d+) times as fast as ns-3\]", README)
    assert times is not None
    beside = page[page.index("## Beside ns-3 and ns-2") :]
    assert all(re.search(rf"\b{each}\b", beside) for each in times.groups())


#: Attributes that load something when a page is opened; links to follow are none of them.
LOADED = re.compile(r"<(?:script|img|iframe)[^>]*? src=\"([^\"]+)|<link[^>]*? href=\"([^\"]+)")
#: `true` once each table is in a frame within which it scrolls.
FRAMED = """[...document.querySelectorAll('.md-content table:not([class])')]
    .every((each) => each.closest('.md-typeset__scrollwrap'))"""
#: What is wider than the page and does not scroll.
WIDE = """[...document.querySelectorAll('.md-content :is(.md-typeset__scrollwrap, img, pre)')]
    .filter((each) => each.getBoundingClientRect().right > innerWidth)
    .map((each) => each.outerHTML)"""
SEARCH = """(() => {
    const query = document.querySelector('[data-md-component=search-query]');
    query.focus();
    query.value = 'delayed ACK';
    query.dispatchEvent(new KeyboardEvent('keyup', { bubbles: true }));
})()"""
FOUND = "document.querySelectorAll('.md-search-result__item').length"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("material")
    there = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", there]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return there


def test_no_page_loads_from_the_network(site: Path):
    pages = list(site.rglob("*.html"))
    loaded = {
        (page.name, url)
        for page in pages
        for found in LOADED.findall(page.read_text(encoding="utf-8"))
        for url in found
        if re.match(r"(?:\w+:)?//", url)
    }
    assert len(pages) > 50
    assert not loaded


def test_the_python_api_has_all_public_names(site: Path):
    page = next(site.rglob("python.html")).read_text(encoding="utf-8")
    assert [name for name in cwnd.__all__ if f'id="cwnd.{name}"' not in page] == ["__version__"]


def test_the_gallery_shows_every_figure_that_pages_show(site: Path):
    shown = re.compile(r"<img[^>]* src=\"([^\"]+)\"")
    gallery = site / "gallery.html"
    figures = {
        (page.parent / html.unescape(name)).resolve()
        for page in site.rglob("*.html")
        for name in shown.findall(page.read_text(encoding="utf-8"))
        if page != gallery and page.name != "404.html" and not name.startswith("data:")
    }
    there = shown.findall(gallery.read_text(encoding="utf-8"))
    assert figures <= {(site / html.unescape(name)).resolve() for name in there}
    assert all(figure.exists() for figure in figures)


@pytest.mark.skipif(chromium.find() is None, reason="Chromium is not installed")
def test_pages_fit_and_can_be_searched_without_a_server(site: Path, tmp_path: Path):
    with chromium.Chromium(tmp_path) as browser:
        for width in (400, 1400):
            browser.show_as(width, 1200)
            for page in ("index.html", "gallery.html", "metrics.html"):
                browser.open(next(site.rglob(page)))
                browser.until(FRAMED)
                assert browser.evaluate("document.documentElement.scrollWidth") <= width
                assert browser.evaluate(WIDE) == []
        browser.evaluate(SEARCH)
        assert browser.until(FOUND) > 0
        assert browser.complaints() == []

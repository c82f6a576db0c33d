"""The playground: digests of the simulator in Node and Chromium, curves, controls, address, widget.

`make play` builds the page; without it these tests are skipped. Screenshots are left in pytest's
temporary directory.
"""

from __future__ import annotations

import base64
import builtins
import gzip
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import chromium
import polars as pl
import pytest
from conftest import ROOT, SHORT, SWEEP, Cli

import cwnd
from cwnd import _core, playground
from cwnd.playground import page as page_module

if TYPE_CHECKING:
    from collections.abc import Iterator

built = pytest.mark.skipif(not playground.FILE.exists(), reason="`make play` has not built it")
in_browser = pytest.mark.skipif(
    chromium.find() is None, reason=f"none of {', '.join(chromium.NAMES)} is installed"
)
#: Expression: `true` once set-up A shows the answer to its newest message.
SETTLED = "typeof setups !== 'undefined' && setups.A && setups.A.seen === setups.A.seq"
#: Two flows, a marking queue, and a flow that starts late.
TWO = """\
schema = 2
[run]
duration = "12 s"
warmup = "1 s"
[dumbbell]
rate = "20 Mbit/s" # a line
queue = { kind = "codel", limit = "100 packets" }
[flow.one]
rtt = "40 ms"
controller = "cubic"
endpoint = { ecn = true }
[flow.two]
rtt = "40 ms"
start = "3 s"
"""
#: A run that takes longer than the page waits for its first picture.
LONG = TWO.replace("20 Mbit/s", "200 Mbit/s").replace("12 s", "60 s")
#: Script for Node: prints the digest of each scenario that it is given.
NODE = """
const [core, compiled, ...texts] = JSON.parse(require("fs").readFileSync(0, "utf8"));
const { loadCore, readTables } = new Function(`${core}; return { loadCore, readTables };`)();
WebAssembly.compile(Buffer.from(compiled, "base64")).then(async (module) => {
  const playground = await loadCore(module);
  const digests = texts.map((text) => {
    const { errors } = playground.open(text, 0);
    return errors ? errors.text : readTables(playground.results()).digest;
  });
  console.log(JSON.stringify(digests));
});
"""


def digest(text: str, index: int = 0) -> str:
    """Digest of a run in the native simulator."""
    return _core.parse(text, name="scenario.toml").cell(index).run().digest


@built
@pytest.mark.skipif(shutil.which("node") is None, reason="Node is not installed")
def test_digests_in_node_are_those_of_the_native_simulator():
    texts = [file.read_text() for file in sorted((ROOT / "scenarios").glob("*.toml"))]
    stacks = ("rfc", "linux", "freebsd", "quic")
    texts += [TWO.replace("start =", f'stack = "{stack}"\nstart =') for stack in stacks]
    html = playground.FILE.read_text()
    packed = re.search(r'id="core">([^<]+)<', html)
    assert packed is not None
    module = base64.b64encode(gzip.decompress(base64.b64decode(packed[1]))).decode()
    core = (playground.ASSETS / "core.js").read_text()
    ended = subprocess.run(
        ["node", "-e", NODE],
        input=json.dumps([core, module, *texts]),
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(ended.stdout) == [digest(text) for text in texts]


@built
def test_the_page_is_small_and_loads_nothing():
    html = playground.FILE.read_text()
    assert len(gzip.compress(html.encode(), 9)) <= 1.5e6
    assert "default-src 'none'" in html
    assert "Permission is hereby granted" in html, "uPlot's licence"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[chromium.Chromium]:
    with chromium.Chromium(tmp_path_factory.mktemp("profile")) as started:
        yield started


def opened(browser: chromium.Chromium, folder: Path, text: str, width: int = 1400) -> None:
    """Opens the page with a scenario, once it is simulated."""
    browser.show_as(width, 900, mobile=width < 500)
    (folder / "scenario.toml").write_text(text)
    browser.open(playground.write(folder / "scenario.toml", folder / "play.html"))
    browser.until(f"{SETTLED} && setups.A.results")


def typed(browser: chromium.Chromium, text: str) -> None:
    """Types a text in place of the scenario."""
    browser.evaluate(
        f"""(() => {{
            const text = document.querySelector('#text');
            text.focus();
            text.value = {json.dumps(text)};
            text.dispatchEvent(new Event('input'));
        }})()"""
    )


def press(browser: chromium.Chromium, key: str, code: int) -> None:
    """Presses a key."""
    for kind in ("keyDown", "keyUp"):
        browser.call("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code)


@built
@in_browser
def test_curves_in_chromium_are_those_of_a_run(browser: chromium.Chromium, tmp_path: Path):
    opened(browser, tmp_path, TWO)
    run = cwnd.run(tmp_path / "scenario.toml")
    assert browser.evaluate("setups.A.results.digest") == digest(TWO)
    link = run.link_series.filter(pl.col("link") == "bottleneck")
    drawn = {
        name: browser.evaluate(f"setups.A.plots.drawn.{name}.plot.data.map((each) => [...each])")
        for name in ("window", "queue", "goodput", "delay")
    }
    assert drawn["window"][0] == link["time_s"].to_list()
    assert drawn["queue"][1] == link["qlen_pkts"].to_list()
    assert drawn["delay"][1] == pytest.approx((link["sojourn_us"] / 1e3).to_list())
    hits = link.select(pl.col("mark", "drop").diff().fill_null(0) > 0)
    for points, column in zip(drawn["queue"][2:], hits.columns, strict=True):
        expected = pl.when(hits[column]).then(link["qlen_pkts"])
        assert points == link.select(expected)["qlen_pkts"].to_list(), column
    assert any(drawn["queue"][2]), "there are marks"
    for number, name in enumerate(("one", "two"), 1):
        flow = run.series.filter(pl.col("group") == name)
        late = [None] * (link.height - flow.height)
        assert drawn["window"][number] == late + flow["snd_cwnd_pkts"].to_list()
        # Half a second has five samples.
        bits = flow["delivered"].diff(5) * 8e-6 / flow["time_s"].diff(5)
        assert drawn["goodput"][number][len(late) + 5 :] == pytest.approx(bits[5:].to_list())
    assert browser.complaints() == []


@built
@in_browser
def test_a_slider_moved_by_keys_changes_text_and_result(browser: chromium.Chromium, tmp_path: Path):
    opened(browser, tmp_path, TWO)
    browser.evaluate("document.querySelector('#dumbbell\\\\.rate').focus()")
    press(browser, "Tab", 9)
    assert browser.evaluate("document.activeElement.type") == "range"
    for _ in range(3):
        press(browser, "ArrowRight", 39)
    browser.until(f"{SETTLED} && setups.A.seq > 3")
    text = browser.evaluate("document.querySelector('#text').value")
    assert re.search(r'rate = "2\d(\.\d)? Mbit/s" # a line', text), text
    assert '"20 Mbit/s"' not in text
    assert browser.evaluate("setups.A.results.digest") == digest(text)
    # A plot is read by keys, too.
    browser.evaluate("document.querySelector('.plot').focus()")
    press(browser, "ArrowRight", 39)
    assert "time: –" not in browser.evaluate("document.querySelector('.u-legend').innerText")
    assert browser.complaints() == []


@built
@in_browser
@pytest.mark.parametrize("record", ["", "\n[record]\nflows = 0.1\n"])
@pytest.mark.parametrize("name", ["two-flows", "web-poisson"])
def test_goodputs_of_groups_are_those_of_a_summary(
    browser: chromium.Chromium, tmp_path: Path, name: str, record: str
):
    folder = {"two-flows": playground.ASSETS / "start.toml"}
    text = folder.get(name, ROOT / "scenarios" / f"{name}.toml").read_text() + record
    opened(browser, tmp_path, text)
    browser.until(SETTLED)
    (tmp_path / "cell.toml").write_text(_core.parse(text, name="it.toml").cell(0).resolved)
    groups = cwnd.run(tmp_path / "cell.toml").summary().filter(pl.col("group") != "*")
    shown = browser.evaluate("Object.fromEntries(summaryOf(setups.A))")
    expected = {
        f"Goodput of {group}": f"{goodput / 1e6:.3g} Mbit/s"
        for group, goodput in groups.select("group", "goodput_bit_s").iter_rows()
    }
    assert expected.items() <= shown.items()


@built
@in_browser
def test_two_set_ups_share_axes_and_an_address_restores_them(
    browser: chromium.Chromium, tmp_path: Path
):
    opened(browser, tmp_path, TWO)
    browser.evaluate("document.querySelector('#compare').click()")
    browser.until("setups.B && setups.B.results")
    browser.evaluate(
        """(() => {
            const select = document.getElementById("dumbbell.queue.kind");
            select.value = "fifo";
            select.dispatchEvent(new Event("change"));
        })()"""
    )
    browser.until("setups.B.seen === setups.B.seq && /fifo/.test(setups.B.text)")
    both = "Object.values(setups).map((each) => [each.text, each.results.digest])"
    found = browser.evaluate(both)
    assert [shown for _, shown in found] == [digest(text) for text, _ in found]
    assert 'queue = "fifo"' in found[1][0]
    tops = "Object.values(setups).map(({ plots }) => plots.drawn.queue.plot.scales.y.max)"
    assert len(set(browser.evaluate(tops))) == 1
    browser.until("recalled().then(([, second]) => /fifo/.test(second?.text))")
    address = browser.evaluate("location.href")
    browser.call("Page.navigate", url="about:blank")
    browser.call("Page.navigate", url=address)
    browser.until("document.readyState === 'complete'")
    browser.until(f"{SETTLED} && setups.A.results && setups.B?.results && !setups.B.isPartial")
    assert browser.evaluate(both) == found
    # Another address in the same tab opens it, and one that means nothing the page's own scenario.
    for state in ([{"text": SHORT}], [], {}, None, [None]):
        browser.evaluate("globalThis.isOld = true")
        browser.evaluate(
            f"packed(JSON.stringify({json.dumps(state)}), 'deflate-raw')"
            ".then((code) => (location.hash = code.replaceAll('+', '-').replaceAll('/', '_')))"
        )
        text = SHORT if state == [{"text": SHORT}] else TWO
        browser.until(f"!globalThis.isOld && {SETTLED}")
        assert browser.evaluate("Object.values(setups).map(({ text }) => text)") == [text]
        assert browser.evaluate("document.querySelector('#failure').hidden")
    assert browser.complaints() == []


@built
@in_browser
def test_a_point_of_a_sweep_is_chosen_and_its_keys_are_those_of_the_axis(
    browser: chromium.Chromium, tmp_path: Path
):
    opened(browser, tmp_path, SWEEP)
    count = _core.parse(SWEEP, name="scenario.toml").runs
    assert browser.evaluate("setups.A.results.digest") == digest(SWEEP)
    browser.evaluate(f"setups.A.change(null, {count - 1})")
    browser.until(SETTLED)
    assert browser.evaluate("setups.A.results.digest") == digest(SWEEP, count - 1)
    selects = "[...document.querySelectorAll('[id^=\"axis.\"]')]"
    last = browser.evaluate(f"{selects}.every((each) => each.selectedIndex === each.length - 1)")
    assert last
    disabled = browser.evaluate("document.querySelectorAll('#settings :disabled').length")
    assert disabled > 0
    # The file has 20 ms.
    shown = ("{}.value", "{}.title", "{}.nextSibling.offsetHeight > 0")
    field = "document.getElementById('flow.main.rtt')"
    parts = [browser.evaluate(each.format(field)) for each in shown]
    assert parts == ["40 ms", "set by the sweep's axis rtt", True]
    browser.evaluate("setups.A.change(null, 0)")
    browser.until(SETTLED)
    assert browser.evaluate(f"{field}.value") == "10 ms"
    assert float(browser.evaluate(f"getComputedStyle({field}).opacity")) < 1
    typed(browser, SWEEP.replace('path = "flow.main.rtt"', 'path = "flow.main.start"'))
    browser.until(f"!{field}.disabled")
    assert browser.evaluate(f"{field}.value") == "20 ms"
    assert browser.complaints() == []


@built
@in_browser
def test_controls_under_an_axis_of_many_links_or_a_quoted_name_are_disabled(
    browser: chromium.Chromium, tmp_path: Path
):
    text = (ROOT / "scenarios" / "rrul.toml").read_text()
    opened(browser, tmp_path, text)
    is_set = "document.getElementById('{}').disabled"
    keys = ("down.queue.kind", "up.queue.limit", "up.rate", "down.delay")
    found = [browser.evaluate(is_set.format(f"link.{key}")) for key in keys]
    assert found == [True, True, False, False]
    axis = '[sweep.axis.rtt]\npath = \'flow."two.b".rtt\'\nvalues = ["10 ms", "20 ms"]\n'
    opened(browser, tmp_path, TWO.replace("[flow.two]", '[flow."two.b"]') + axis)
    keys = ("two.b.rtt", "two.b.start", "one.rtt")
    found = [browser.evaluate(is_set.format(f"flow.{key}")) for key in keys]
    assert found == [True, False, False]
    assert browser.complaints() == []


@built
@in_browser
def test_each_scenario_to_choose_is_drawn(browser: chromium.Chromium, tmp_path: Path):
    opened(browser, tmp_path, TWO)
    names = browser.evaluate("examples.map(({ name }) => name)")
    assert set(names) >= {file.stem for file in (ROOT / "scenarios").glob("*.toml")}
    for name in names:
        browser.evaluate(
            f"""(() => {{
                const select = document.querySelector("#example");
                select.value = "{name}";
                select.dispatchEvent(new Event("change"));
            }})()"""
        )
        browser.until(SETTLED)
        assert browser.evaluate("setups.A.errors.textContent") == "", name
        assert browser.evaluate("setups.A.curves.times.length") > 10, name
    assert browser.complaints() == []


@built
@in_browser
def test_a_long_run_shows_its_beginning_first(browser: chromium.Chromium, tmp_path: Path):
    opened(browser, tmp_path, TWO)
    browser.evaluate(
        """(() => {
            globalThis.seen = [];
            const receive = setups.A.receive;
            setups.A.receive = function (data) {
                receive.call(this, data);
                if (data.tables) seen.push([data.isPartial, this.status.textContent]);
            };
        })()"""
    )
    browser.evaluate(f"setups.A.replace({json.dumps(LONG)})")
    browser.until(SETTLED)
    seen = browser.evaluate("seen")
    assert len(seen) > 1
    assert [partial for partial, _ in seen] == [True] * (len(seen) - 1) + [False]
    assert re.fullmatch(r"the first [\d.]+ s of 60 s; simulating the rest …", seen[0][1])
    assert browser.evaluate("setups.A.results.digest") == digest(LONG)
    assert browser.complaints() == []


@built
@in_browser
def test_mistakes_are_shown_with_line_and_key(browser: chromium.Chromium, tmp_path: Path):
    opened(browser, tmp_path, TWO)
    wrong = TWO.replace("20 Mbit/s", "20 Mbits")
    typed(browser, wrong)
    browser.until("!document.querySelector('article .errors').hidden")
    error = browser.evaluate("document.querySelector('article .errors').textContent")
    with pytest.raises(_core.ScenarioError) as native:
        _core.parse(wrong, name="scenario.toml")
    assert error == str(native.value)
    assert "scenario.toml:6" in error
    typed(browser, TWO.replace("[flow.one]", 'messenger = "quench"\n[flow.one]'))
    browser.until("document.querySelector('article .errors').hidden")
    warnings = browser.evaluate("document.querySelector('article .hint').innerText")
    assert "warning: source quenches change nothing" in warnings
    typed(browser, TWO)
    browser.until("document.querySelector('article .hint').innerText === ''")
    assert browser.complaints() == []


@built
@in_browser
def test_a_text_belongs_to_its_set_up_at_once(browser: chromium.Chromium, tmp_path: Path):
    opened(browser, tmp_path, TWO)
    browser.evaluate("compare()")
    browser.until("setups.B?.results && !setups.B.isPartial")
    changed = TWO.replace("20 Mbit/s", "30 Mbit/s")
    typed(browser, changed)
    browser.evaluate("activate('A')")
    browser.until("setups.B.seen === setups.B.seq")
    assert browser.evaluate("[setups.A.text, setups.B.text]") == [TWO, changed]
    # A control after it does not undo it.
    typed(browser, TWO.replace('"3 s"', '"4 s"'))
    browser.evaluate("document.querySelector('#run\\\\.seed').focus()")
    browser.evaluate("setups.A.change([[['run', 'seed'], 2]])")
    browser.until(f"{SETTLED} && /seed/.test(setups.A.text)")
    assert 'start = "4 s"' in browser.evaluate("setups.A.text")
    # A second set-up starts with it.
    typed(browser, changed)
    browser.evaluate("document.activeElement.blur(); compare(); compare()")
    assert browser.evaluate("setups.B.text") == changed
    assert browser.complaints() == []


@built
@in_browser
@pytest.mark.parametrize("width", [400, 1400])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_fits_and_every_control_has_a_name(
    browser: chromium.Chromium, tmp_path: Path, width: int, scheme: str
):
    opened(browser, tmp_path, TWO, width)
    browser.show_as(width, 900, mobile=width < 500, scheme=scheme)
    browser.evaluate("compare()")
    browser.until("setups.B?.results && !setups.B.isPartial")
    assert browser.evaluate("document.documentElement.scrollWidth <= innerWidth")
    nameless = """[...document.querySelectorAll("input, select, textarea, button")]
        .filter((each) => !each.labels?.length && !each.ariaLabel && !each.textContent.trim())
        .map((each) => each.outerHTML)"""
    assert browser.evaluate(nameless) == []
    browser.screenshot(tmp_path / f"{width}-{scheme}.png")
    assert browser.complaints() == []


@built
@in_browser
def test_a_notebook_learns_what_is_edited(browser: chromium.Chromium, tmp_path: Path):
    pytest.importorskip("anywidget")
    sections = {"dumbbell": {"rate": "5 Mbit/s"}, "flow": {"main": {"rtt": "20 ms"}}}
    scenario = cwnd.Scenario(schema=2, run={"duration": "2 s"}, **sections)
    widget = cwnd.play(scenario)
    source = (playground.ASSETS / "widget.js").read_text()
    (tmp_path / "notebook.html").write_text("<!doctype html><title>notebook</title><body>")
    browser.open(tmp_path / "notebook.html")
    names = ("page", "height", "scenarios", "indices")
    values = json.dumps({name: getattr(widget, name) for name in names})
    browser.evaluate(
        f"""(async () => {{
            globalThis.values = {values};
            globalThis.saved = 0;
            const model = {{
                get: (name) => values[name],
                set: (name, value) => (values[name] = value),
                save_changes: () => (saved += 1),
            }};
            const source = new Blob([{json.dumps(source)}], {{ type: "text/javascript" }});
            const url = URL.createObjectURL(source);
            const {{ default: widget }} = await import(url);
            globalThis.render = () => widget.render({{ model, el: document.body }});
            render();
        }})()"""
    )
    browser.until("saved > 0")
    assert browser.evaluate("values.scenarios") == [scenario.to_toml()]
    # A view that comes anew, as of a cell that moves, shows what was edited.
    edited = [scenario.to_toml().replace("5 Mbit/s", rate) for rate in ("7 Mbit/s", "9 Mbit/s")]
    browser.evaluate(f"values.scenarios = {json.dumps(edited)}; saved = 0")
    browser.evaluate("document.querySelector('iframe').remove(); render()")
    browser.until("saved > 0")
    assert browser.evaluate("values.scenarios") == edited
    assert browser.evaluate("values.indices") == [0, 0]
    assert browser.complaints() == []


@built
def test_the_command_writes_the_page_with_the_scenario(cli: Cli, tmp_path: Path):
    (tmp_path / "short.toml").write_text(SHORT + "# </script>\n")
    ended = cli("play", "short.toml", "--no-browser", "-o", "page.html")
    assert (ended.code, ended.out) == (0, "page.html\n")
    html = (tmp_path / "page.html").read_text()
    given = re.search(r'id="given">(.*)</script>', html)
    assert given is not None
    assert json.loads(given[1]) == [{"text": SHORT + "# </script>\n", "index": 0}]
    (tmp_path / "short.toml").write_text(SHORT.replace("10 Mbit/s", "fast"))
    ended = cli("play", "short.toml", "--no-browser")
    assert ended.code == 2
    assert "short.toml:9" in ended.err


@built
def test_the_command_opens_the_page_where_there_is_a_screen(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    seen: list[str] = []
    monkeypatch.setattr("webbrowser.open", seen.append)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    for display in ("", ":0"):
        monkeypatch.setenv("DISPLAY", display)
        assert cli("play").code == 0
    assert seen == [(tmp_path / "play.html").as_uri()]


@pytest.mark.parametrize("missing", ["rustup", "npm"])
def test_what_the_build_lacks_is_said(tmp_path: Path, missing: str):
    # A rustup that has the target; neither compiler nor network is reached.
    if missing == "npm":
        (tmp_path / "rustup").write_text("#!/bin/sh\n")
        (tmp_path / "rustup").chmod(0o755)
    ended = subprocess.run(
        [sys.executable, ROOT / "scripts" / "playground.py"],
        env={**os.environ, "PATH": str(tmp_path), "PYTHONPATH": str(ROOT / "python")},
        capture_output=True,
        text=True,
        check=True,
    )
    says = {"rustup": "rustup cannot get wasm32-unknown-unknown", "npm": "npm is missing"}
    assert ended.stderr.startswith(f"skipped: play: {says[missing]}")


def test_what_is_missing_is_a_sentence(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(page_module, "FILE", tmp_path / "playground.html")
    ended = cli("play", "--no-browser")
    assert ended.code == 3
    assert "rustup target add wasm32-unknown-unknown" in ended.err
    imported = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name == "cwnd.playground.widget":
            raise ImportError(name)
        return imported(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(cwnd.InputError, match="anywidget is not installed; `pip install"):
        cwnd.play()

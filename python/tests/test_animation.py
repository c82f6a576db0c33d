"""Animations of packets: what they draw against the counters of the run, and in a browser."""

from __future__ import annotations

import base64
import gzip
import json
import re
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

import chromium
import polars as pl
import pytest
from conftest import ROOT, Cli

import cwnd

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Two flows 5 ms in front of a router and 40 ms behind it, with marks and drops.
SIGNALS = """
schema = 2
name = "signals"

[run]
duration = "6 s"

[link.access]
from = "sender"
to = "router"
rate = "100 Mbit/s"
delay = "5 ms"
duplex = true

[link.bottleneck]
from = "router"
to = "receiver"
rate = "5 Mbit/s"
delay = "40 ms"
queue = { kind = "red", ecn = true }

[link.back]
from = "receiver"
to = "router"
rate = "5 Mbit/s"
delay = "40 ms"

[flow.main]
from = "sender"
to = "receiver"
count = 2

[sweep.axis.signal]
path = ["flow.main.endpoint", "link.bottleneck.messenger"]
values = [[{ ecn = true }, "none"], [{ preset = "becn" }, "quench"]]
labels = ["ECN", "BECN"]
"""
#: A link that loses packets behind its queue, and ACKs on the way back.
LOSSY = """
schema = 2
name = "lossy"

[run]
duration = "4 s"

[dumbbell]
rate = "10 Mbit/s"
queue = { kind = "fifo", limit = "2000 packets" }
loss = 0.02
reverse_rate = "100 kbit/s"
reverse_queue = { kind = "fifo", limit = "3 packets" }

[flow.main]
rtt = "40 ms"
"""
DATA, ACK, QUENCH = 0, 1, 2
#: Never, in nanoseconds.
NEVER = 1 << 62


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> cwnd.Run:
    file = tmp_path_factory.mktemp("signals") / "signals.toml"
    file.write_text(SIGNALS)
    return cwnd.run(file)


@pytest.fixture
def signals(cli: Cli) -> Cli:
    cli.write("signals.toml", SIGNALS)
    return cli


def scenes_of(page: Path) -> list[dict[str, Any]]:
    """The data of a page; each packet as a mapping, its times since the start of the run."""
    packed = re.search(r'id="packets">([^<]*)<', page.read_text(encoding="utf-8"))
    assert packed is not None
    scenes = json.loads(gzip.decompress(base64.b64decode(packed[1])))
    for scene in scenes:
        columns = scene["packets"]
        columns["sent"] = list(accumulate(columns["sent"]))
        for name in ("arrived", "start", "left", "ended", "ce"):
            columns[name] = [
                NEVER if after < 0 else sent + after
                for sent, after in zip(columns["sent"], columns[name], strict=True)
            ]
        columns["kind"] = [flags & 3 for flags in columns["flags"]]
        rows = zip(*columns.values(), strict=True)
        scene["packets"] = [dict(zip(columns, row, strict=True)) for row in rows]
    found: list[dict[str, Any]] = scenes
    return found


def counted(run: cwnd.Run, signal: str) -> dict[str, int]:
    """Counters of the bottleneck in the whole run."""
    at = (pl.col("signal") == signal) & (pl.col("link") == "bottleneck")
    row = run.links.row(by_predicate=at, named=True)
    names = ("arrived", "delivered", "dropped", "marked", "quenches")
    return {name: row[f"{name}_total_pkts"] for name in names}


def test_each_packet_mark_drop_and_quench_of_the_run_is_in_the_page(signals: Cli, run: cwnd.Run):
    answer = signals("animate", "signals.toml", "-o", "page.html", "--json")
    assert answer.code == 0, answer.err
    scenes = scenes_of(signals.directory / "page.html")
    assert [scene["title"] for scene in scenes] == ["ECN", "BECN"]
    for scene, shown in zip(scenes, answer.json["runs"], strict=True):
        packets = scene["packets"]
        at_queue = [p for p in packets if p["arrived"] < NEVER and p["kind"] != QUENCH]
        drawn = {
            "arrived": len(at_queue),
            "delivered": sum(p["left"] < NEVER for p in at_queue),
            "dropped": sum(p["left"] == NEVER and p["lost"] > 0 for p in at_queue),
            "marked": sum(p["marked"] > 0 for p in at_queue),
            "quenches": sum(p["kind"] == QUENCH for p in packets),
        }
        assert drawn == counted(run, scene["title"])
        assert shown["packets"]["marked"] == drawn["marked"]
        # By reason, too.
        mine = (pl.col("signal") == scene["title"]) & (pl.col("link") == "bottleneck")
        for verdict, column in (("marked", "marked"), ("dropped", "lost")):
            rows = run.reasons.filter(mine, pl.col("verdict") == verdict)
            found = {
                reason: sum(p[column] == number for p in at_queue)
                for number, reason in enumerate(scene["reasons"])
                if number and any(p[column] == number for p in at_queue)
            }
            assert found == dict(rows.select("reason", "total_packets").iter_rows())
    ecn, becn = (counted(run, signal) for signal in ("ECN", "BECN"))
    assert min(ecn["marked"], ecn["dropped"], becn["marked"], becn["quenches"]) > 10


def test_the_queue_drawn_is_the_queue_of_the_samples(signals: Cli, run: cwnd.Run):
    signals("animate", "signals.toml", "-o", "page.html")
    for scene in scenes_of(signals.directory / "page.html"):
        at_queue = [
            (p["arrived"], p["start"] if p["start"] < NEVER or not p["lost"] else p["ended"])
            for p in scene["packets"]
            if p["kind"] != QUENCH
        ]
        samples = run.link_series.filter(
            pl.col("signal") == scene["title"], pl.col("link") == "bottleneck"
        )
        expected = samples["qlen_pkts"].to_list()
        assert max(expected) > 30
        times = [round(time * 1e9) for time in samples["time_s"]]
        assert [sum(a <= t < b for a, b in at_queue) for t in times] == expected


def test_a_quench_takes_the_short_way_and_an_echo_the_round_trip(signals: Cli):
    signals("animate", "signals.toml", "-o", "page.html")
    ecn, becn = (scene["packets"] for scene in scenes_of(signals.directory / "page.html"))
    for quench in (p for p in becn if p["kind"] == QUENCH):
        # 5 ms and 56 B at 100 Mbit/s, perhaps behind ACKs.
        assert 5_004_480 <= quench["ended"] - quench["sent"] < 6_000_000
        assert any(p["ce"] == quench["sent"] and p["flow"] == quench["flow"] for p in becn)
    first = next(p for p in ecn if p["marked"])
    echo = next(
        p for p in ecn if p["kind"] == ACK and p["flags"] & 8 and p["flow"] == first["flow"]
    )
    assert echo["ended"] - first["ce"] > 85_000_000


def test_a_part_of_a_run_has_the_same_packets(signals: Cli):
    signals("animate", "signals.toml", "-o", "whole.html")
    window = ("--from", "2 s", "--to", "3 s", "--at", "signal=ECN")
    signals("animate", "signals.toml", *window, "-o", "part.html")
    (part,) = scenes_of(signals.directory / "part.html")
    whole = scenes_of(signals.directory / "whole.html")[0]
    begin, end = part["window"]
    assert (begin, end) == (2_000_000_000, 3_000_000_000)
    inside = [p for p in whole["packets"] if p["sent"] <= end and p["ended"] >= begin]
    same = ("sent", "arrived", "left", "ended", "ce", "flags", "flow")
    assert [[p[key] for key in same] for p in part["packets"]] == [
        [p[key] for key in same] for p in inside
    ]


def test_a_result_is_animated_as_its_scenario(signals: Cli, run: cwnd.Run):
    run.save(signals.directory / "stored", plots=False)
    signals("animate", "stored", "-o", "stored.html")
    signals("animate", "signals.toml", "-o", "page.html")
    stored, page = (signals.directory / f"{name}.html" for name in ("stored", "page"))
    assert stored.read_bytes() == page.read_bytes()


def test_a_result_of_other_numbers_is_refused(signals: Cli, run: cwnd.Run):
    other = cwnd.Run.load(run.save(signals.directory / "stored", plots=False))
    other.links = other.links.with_columns(pl.col("arrived_total_pkts") + 1)
    other.save(signals.directory / "other", plots=False)
    answer = signals("animate", "other")
    assert answer.code == 1
    assert "gives other numbers than those stored" in answer.err


def test_a_diagram_has_a_line_for_each_packet(signals: Cli):
    window = ("--from", "1 s", "--to", "1.6 s")
    signals("animate", "signals.toml", *window, "-o", "page.html")
    answer = signals("animate", "signals.toml", *window, "-o", "lines.svg")
    assert answer.code == 0, answer.err
    drawn = (signals.directory / "lines.svg").read_text()
    packets = [p for s in scenes_of(signals.directory / "page.html") for p in s["packets"]]
    at_queue = [p for p in packets if p["arrived"] < NEVER and p["kind"] != QUENCH]
    back = [p for p in packets if p["arrived"] == NEVER]
    expected = {
        "mark": sum(p["ce"] < NEVER and p["left"] < NEVER for p in at_queue),
        "drop": sum(p["left"] == NEVER and p["lost"] > 0 for p in at_queue),
        "quench": sum(p["kind"] == QUENCH for p in packets),
        "echo": sum(p["flags"] & 8 > 0 for p in back),
        "ack": sum(p["flags"] & 8 == 0 for p in back),
    }
    expected["data"] = len(at_queue) - expected["mark"] - expected["drop"]
    assert {kind: drawn.count(f'class="{kind}"') for kind in expected} == expected
    assert expected["mark"] > 0


def test_a_packet_lost_behind_the_queue_is_counted_and_ends_there(cli: Cli):
    cli.write("lossy.toml", LOSSY)
    answer = cli("animate", "lossy.toml", "--link", "bottleneck", "-o", "page.html", "--json")
    counts = answer.json["runs"][0]["packets"]
    reasons = cwnd.run(cli.directory / "lossy.toml").reasons.filter(reason="link_loss", link_id=0)
    assert (counts["dropped"], [counts["lost_later"]]) == (0, reasons["total_packets"].to_list())
    assert f"{counts['lost_later']} lost after the queue" in (
        cli.directory / "page.html"
    ).read_text(encoding="utf-8")
    part = ("--link", "bottleneck", "--to", "2 s")
    cli("animate", "lossy.toml", *part, "-o", "lines.svg")
    drawn = (cli.directory / "lines.svg").read_text()
    lines = re.findall(r'class="data".* points="([^"]*)"', drawn)
    ends = [[tuple(map(float, at.split(","))) for at in line.split()[-2:]] for line in lines]
    assert not [end for end in ends if end[0][0] < end[1][0] and end[0][1] == end[1][1]]
    cli("animate", "lossy.toml", *part, "-o", "part.html")
    (scene,) = scenes_of(cli.directory / "part.html")
    lost = [p["kind"] for p in scene["packets"] if p["lost"]]
    assert {DATA, ACK} == set(lost)
    assert drawn.count('class="cross"') == len(lost)


@pytest.mark.parametrize(
    ("scenario", "options", "labels"),
    [
        ("fifo-one-flow", (), ["fifo limit"]),
        ("variable-rate", ("--at", "queue=CoDel"), ["codel limit"]),
        ("rrul", ("--at", "queue=FIFO", "--link", "up"), []),
    ],
)
def test_a_threshold_is_drawn_if_its_number_of_packets_is_known(
    cli: Cli, scenario: str, options: tuple[str, ...], labels: list[str]
):
    file = str(ROOT / "scenarios" / f"{scenario}.toml")
    part = ("--from", "20 s", "--to", "20100 ms")
    answer = cli("animate", file, *options, *part, "-o", "page.html")
    assert answer.code == 0, answer.err
    (scene,) = scenes_of(cli.directory / "page.html")
    assert [threshold["label"] for threshold in scene["thresholds"]] == labels


def test_the_reverse_link_of_a_dumbbell_has_the_threshold_of_its_own_queue(cli: Cli):
    cli.write("lossy.toml", LOSSY)
    cli("animate", "lossy.toml", "--link", "reverse", "-o", "page.html")
    (scene,) = scenes_of(cli.directory / "page.html")
    assert [threshold["packets"] for threshold in scene["thresholds"]] == [3.0]


def test_the_legend_of_many_groups_fits_and_repeats_no_colour(cli: Cli):
    groups = "".join(
        f'[flow.a-long-name-of-{n}]\nrtt = "40 ms"\nendpoint = {{ ecn = true }}\n' for n in range(8)
    )
    cli.write("many.toml", LOSSY.partition("[flow")[0].replace('"fifo"', '"red"') + groups)
    cli("animate", "many.toml", "--to", "1 s", "-o", "page.html")
    (scene,) = scenes_of(cli.directory / "page.html")
    flows = {(flow["label"], flow["colour"]) for flow in scene["flows"]}
    assert len(flows) == len(dict(flows)) == len({colour for _, colour in flows}) == 5
    assert "others" in dict(flows)
    # The first groups have the colours of figures.
    assert [colour for _, colour in sorted(flows)][:3] == [0, 1, 2]
    cli("animate", "many.toml", "--to", "1 s", "-o", "lines.svg")
    drawn = (cli.directory / "lines.svg").read_text()
    texts = re.findall(r'<text x="([\d.]+)" y="\d+.0" font-size="13"[^>]*>([^<]*)<', drawn)
    assert [text for _, text in texts][-2:] == ["others", "mark, echo"]
    assert max(float(x) + 7.5 * len(text) for x, text in texts) <= 480
    cli("animate", "many.toml", "--to", "1 ms", "-o", "lines.svg")
    assert "mark, echo" not in (cli.directory / "lines.svg").read_text()


def test_ticks_have_the_digits_of_their_step(cli: Cli):
    cli.write("lossy.toml", LOSSY.replace('"4 s"', '"101 s"'))
    cli("animate", "lossy.toml", "--from", "100 s", "--to", "100005 ms", "-o", "lines.svg")
    labels = re.findall(r">([\d.]+ s)<", (cli.directory / "lines.svg").read_text())
    assert labels == [f"{100 + n / 2000:.4f} s" for n in range(11)]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--link", "nowhere"), "there is no link `nowhere`; there are access, access.reverse"),
        (("--from", "5 s", "--to", "7 s"), "the run lasts from 0 s to 6 s"),
        (("--from", "5"), "--from '5': a time needs a unit"),
        (("--set", "run.duration=61 s"), "choose a part of the run with --from and --to"),
        (
            ("--set", "link.bottleneck.rate=none", "--link", "bottleneck"),
            "has no rate, so no queue",
        ),
        (("--at", "signal=DECbit"), "axis `signal` has no label `DECbit`; it has ECN, BECN"),
        (("-o", "page.pdf"), "name a file that ends in .html or .svg"),
        (("-o", "page.svg"), "choose a part with --from and --to"),
    ],
)
def test_what_cannot_be_shown_is_a_sentence(signals: Cli, options: tuple[str, ...], words: str):
    answer = signals("animate", "signals.toml", *options)
    assert answer.code == 2
    assert words in answer.err


def test_neither_a_file_nor_a_result_is_a_sentence(signals: Cli):
    (signals.directory / "empty").mkdir()
    assert "not a cwnd result" in signals("animate", "empty").err
    assert "no such file" in signals("animate", "nothing.toml").err
    answer = signals("animate", "caf\udce9.toml")
    assert (answer.code, "the name is not in UTF-8; rename" in answer.err) == (2, True)


def test_a_controller_of_ones_own_is_animated_once_it_is_trusted(cli: Cli, untrusted: None):
    cli("new", "controller", "mine.py")
    refused = cli("animate", "mine.toml", "--to", "1 s")
    assert refused.code == 2
    assert "read it, and give --trust once" in refused.err
    assert cli("animate", "mine.toml", "--to", "1 s", "--trust", "-o", "mine.html").code == 0
    (scene,) = scenes_of(cli.directory / "mine.html")
    assert len(scene["packets"]) > 100


def test_a_sweep_of_many_points_asks_for_two(cli: Cli):
    answer = cli("animate", "sweep.toml")
    assert answer.code == 2
    said = "the axes and their labels are arm = NewReno, NewReno+ABE; rtt = 10 ms, 20 ms, 40 ms"
    assert said in answer.err
    assert cli("animate", "sweep.toml", "--at", "rtt=20 ms").code == 0
    both = ("--at", "rtt=20 ms", "--at", "rtt=40 ms", "--at", "arm=NewReno")
    assert cli("animate", "sweep.toml", *both, "-o", "both.html").code == 0
    titles = [scene["title"] for scene in scenes_of(cli.directory / "both.html")]
    assert titles == ["NewReno, rtt = 20 ms", "NewReno, rtt = 40 ms"]
    assert cli("sweep", "sweep.toml", "-o", "swept", "--no-plots").code == 0
    assert cli("animate", "swept", *both, "-o", "stored.html").code == 0
    assert [scene["title"] for scene in scenes_of(cli.directory / "stored.html")] == titles


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[chromium.Chromium]:
    if chromium.find() is None:
        pytest.skip(f"none of {', '.join(chromium.NAMES)} is installed")
    cli = Cli(tmp_path_factory.mktemp("animation"))
    cli.write("signals.toml", SIGNALS)
    cli("animate", "signals.toml", "-o", "page.html")
    with chromium.Chromium(cli.directory / "profile") as browser:
        browser.show_as(1400, 900)
        browser.open(cli.directory / "page.html")
        browser.until("document.documentElement.dataset.animation === 'ready'")
        yield browser


#: Script: the numbers of packets drawn in the queues.
WAITING = "[...document.querySelectorAll('.picture')].map((c) => Number(c.dataset.waiting))"


def press(page: chromium.Chromium, key: str) -> None:
    code = {" ": "Space"}.get(key, key)
    for kind in ("keyDown", "keyUp"):
        page.call("Input.dispatchKeyEvent", type=kind, key=key, code=code, text=key[:1])


def test_a_browser_draws_the_queue_of_the_samples(page: chromium.Chromium, run: cwnd.Run):
    samples = run.link_series.filter(pl.col("link") == "bottleneck")
    columns = [
        samples.filter(pl.col("signal") == signal).select("time_s", "qlen_pkts").rows()
        for signal in ("ECN", "BECN")
    ]
    for (time_s, ecn), (_, becn) in list(zip(*columns, strict=True))[::5]:
        page.evaluate(f"player.seek({round(time_s * 1e9)})")
        assert page.evaluate(WAITING) == [ecn, becn]
    assert page.complaints() == []


def test_the_keyboard_plays_and_steps(page: chromium.Chromium):
    page.evaluate("document.activeElement.blur(); player.seek(0)")
    press(page, " ")
    page.until("player.time > 0")
    assert page.evaluate("document.getElementById('play').textContent") == "⏸ Pause"
    press(page, " ")
    stopped = page.evaluate("player.time")
    assert not page.evaluate("player.playing")
    press(page, "n")
    first = page.evaluate("player.time")
    assert first > stopped
    assert "is marked (red_early)" in page.evaluate("document.getElementById('status').textContent")
    assert page.evaluate("player.scenes.flatMap(({ ring }) => [...ring]).length") == 2
    press(page, "n")
    press(page, "p")
    assert page.evaluate("player.time") == first
    slow = page.evaluate("player.slow")
    press(page, "+")
    assert page.evaluate("player.slow") < slow
    press(page, "ArrowRight")
    assert page.evaluate("player.time") > first
    assert page.complaints() == []


def test_with_reduced_motion_it_plays_in_still_pictures(page: chromium.Chromium):
    feature = {"name": "prefers-reduced-motion", "value": "reduce"}
    page.call("Emulation.setEmulatedMedia", features=[feature])
    drawn = page.evaluate(
        "(async () => { let count = 0; const draw = player.draw.bind(player);"
        "player.draw = () => { count += 1; draw(); };"
        "player.toggle(); await new Promise((done) => setTimeout(done, 1300)); player.toggle();"
        "delete player.draw; return count; })()"
    )
    page.call("Emulation.setEmulatedMedia", features=[])
    assert 1 <= drawn <= 3


def test_the_scrubber_and_the_strip_seek(page: chromium.Chromium):
    page.evaluate(
        "(() => { const s = document.getElementById('scrubber'); s.value = s.max / 2;"
        "s.dispatchEvent(new Event('input')); })()"
    )
    assert page.evaluate("player.time") == 3e9
    x, y = page.evaluate(
        "(() => { const strip = document.querySelector('.strip');"
        "strip.scrollIntoView({ block: 'center' });"
        "const box = strip.getBoundingClientRect();"
        "return [box.x + player.scenes[0].stripX(1.5e9, box.width), box.y + 20]; })()"
    )
    page.call(
        "Input.dispatchMouseEvent", type="mousePressed", x=x, y=y, button="left", clickCount=1
    )
    page.call("Input.dispatchMouseEvent", type="mouseReleased", x=x, y=y, button="left")
    assert page.evaluate("player.time") == pytest.approx(1.5e9, abs=1e7)


def test_a_page_fits_a_phone_and_the_dark(page: chromium.Chromium):
    page.show_as(400, 860, mobile=True, scheme="dark")
    page.evaluate("player.seek(1e9)")
    assert page.evaluate("document.documentElement.scrollWidth") == 400
    assert page.evaluate("[...document.querySelectorAll('canvas')].every((c) => c.width > 700)")
    page.show_as(1400, 900)
    assert page.complaints() == []


def test_losses_behind_the_queue_are_signals(page: chromium.Chromium, cli: Cli):
    cli.write("lossy.toml", LOSSY)
    cli("animate", "lossy.toml", "--link", "bottleneck", "-o", "page.html")
    (scene,) = scenes_of(cli.directory / "page.html")
    lost = [p for p in scene["packets"] if p["lost"] and p["arrived"] < NEVER]
    page.open(cli.directory / "page.html")
    page.until("document.documentElement.dataset.animation === 'ready'")
    assert page.evaluate("player.signals.map(({ when }) => when)") == [p["ended"] for p in lost]
    page.evaluate("player.step(1)")
    said = page.evaluate("document.getElementById('status').textContent")
    assert "a packet of main is lost after the queue (link_loss)" in said
    assert page.complaints() == []

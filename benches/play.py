"""Measures the playground in Chromium: 50 moves of the slider of the rate, from move to picture.

Two flows, 40 ms, 30 s, up to 20 Mbit/s; a picture is drawn once the frame after it has begun. The
second row is a run of 200 Mbit/s, whose first picture is that of its beginning. Each row is the
best of several turns, as other programs only slow it down.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from cwnd import playground

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "python" / "tests"))
import chromium  # type: ignore[import-not-found] # of the tests, which mypy does not read

SCENARIO = """\
schema = 2
run.duration = "30 s"
dumbbell = { rate = "20 Mbit/s" }
flow.a = { rtt = "40 ms", controller = "cubic" }
flow.b = { rtt = "40 ms" }
"""
#: Limit of the 95th percentile of the moves, ms.
MOST_MS = 100.0
#: Script: moves the slider and waits for the picture, or for the first one; times in ms.
MOVES = """(async () => {
    const slider = document.getElementById("dumbbell.rate").nextElementSibling;
    const times = [];
    for (let move = 0; move < MOVES; move++) {
        await new Promise((done) => setTimeout(done, 30));
        const seq = setups.A.seq + 1;
        const started = performance.now();
        const drawn = new Promise((done) => {
            const draw = setups.A.draw;
            setups.A.draw = function () {
                draw.call(this);
                if (this.drawn < seq || (WHOLE && this.isPartial)) return;
                delete setups.A.draw;
                requestAnimationFrame(() => done(performance.now() - started));
            };
        });
        slider.value = Number(slider.value) - 1;
        slider.dispatchEvent(new Event("input"));
        times.push(await drawn);
    }
    return times;
})()"""
#: Expression: `true` once the newest message has been answered.
SETTLED = "typeof setups !== 'undefined' && setups.A && setups.A.seen === setups.A.seq"


def main() -> int:
    """Runs the benchmark; returns 1 above the limit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--moves", type=int, default=50)
    parser.add_argument("--turns", type=int, default=3)
    arguments = parser.parse_args()
    moves = arguments.moves
    if not playground.FILE.exists() or chromium.find() is None:
        print("skipped: bench-play: it needs the page of `make play`, and Chromium")
        return 0
    worst = 0.0
    for rate, whole in (("20 Mbit/s", True), ("200 Mbit/s", False)):
        turns = [measured(rate, moves, whole=whole) for _ in range(arguments.turns)]
        middle, most = min(turns, key=lambda turn: turn[1])
        picture = "picture" if whole else "first picture"
        print(f"{rate}: {picture} after {middle:.0f} ms (median), {most:.0f} ms (p95)")
        worst = max(worst, most)
    return int(worst > MOST_MS)


def measured(rate: str, moves: int, *, whole: bool) -> tuple[float, float]:
    """Median and 95th percentile in ms of the moves on a page that was just opened."""
    with tempfile.TemporaryDirectory() as there:
        scenario = Path(there) / "scenario.toml"
        scenario.write_text(SCENARIO.replace("20 Mbit/s", rate))
        page = playground.write(scenario, Path(there) / "play.html")
        with chromium.Chromium(Path(there) / "profile") as browser:
            browser.show_as(1400, 900)
            browser.open(page)
            browser.until(SETTLED)
            script = MOVES.replace("MOVES", str(moves)).replace("WHOLE", str(whole).lower())
            times = sorted(browser.evaluate(script))
    return times[round(0.5 * (moves - 1))], times[round(0.95 * (moves - 1))]


if __name__ == "__main__":
    sys.exit(main())

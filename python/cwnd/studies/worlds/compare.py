"""Repeats a recorded comparison: `cwnd study run worlds/NAME --record FILE.csv`.

The simulator's side is repeated beside what the table has of Linux. With `--on linux`, as root and
in real time, both worlds run.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from cwnd.running import bar
from cwnd.store import LINUX, load
from cwnd.study.agreement import SIMULATOR, agree, renew, table

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Runs of each world at points where the scenario's own runs scatter too far to decide.
UP_TO = 30


def main(arguments: Sequence[str]) -> None:
    """Runs a comparison, and keeps its table and facts."""
    file = Path(arguments[0])
    scenario, kept = file.with_suffix(".toml"), file.with_name("facts.json")
    facts = json.loads(kept.read_text(encoding="utf-8"))
    runs = Path("out") / "agree" / file.stem
    if LINUX in arguments:
        found = agree(scenario, runs, up_to=UP_TO, progress=lambda on: bar(f"{file.stem}, {on}"))
        text = table(found)
        if found.repeated is not None:
            # Rows of points that ran more often stand behind the others.
            text += table(found.repeated).partition("\n")[2]
        file.write_text(text, encoding="utf-8")
        facts[file.stem] = found.world
    else:
        renew(scenario, file, runs / SIMULATOR)
    engine = {SIMULATOR: load(runs / SIMULATOR).manifest.engine}
    facts[file.stem] = engine | facts[file.stem] | engine
    text = json.dumps(facts, indent=1, ensure_ascii=False)
    kept.write_text(f"{text}\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])

"""Studies: format, pages and figures of all, and samples repeated."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from conftest import Cli

import cwnd
from cwnd import InputError, study
from cwnd.study import images, inputs, runner, tables

if TYPE_CHECKING:
    from cwnd.study import Study

NAMES = study.studies()
#: Warnings of scenarios that study what they describe, or compare controllers of other needs.
STUDIED = (
    "hold back look like a queue",
    "ECN never acts",
    "nothing but the receive window limits these flows",
)


def of(name: str) -> Study:
    return study.study(name)


@pytest.mark.parametrize("name", NAMES)
def test_the_parts_of_a_study_belong_together(name: str) -> None:
    each = of(name)
    assert study.faults(each) == []
    for experiment in runner.all_experiments(each):
        found = cwnd.check(each.scenario(experiment), set=each.experiment(experiment).set)
        known = [p for p in found if any(words in p["message"] for words in STUDIED)]
        assert found == known


@pytest.mark.parametrize(
    # They share nothing: each is a group of its own.
    "name",
    [pytest.param(name, marks=pytest.mark.xdist_group(name)) for name in NAMES],
)
def test_a_study_says_what_a_part_of_it_gives(name: str, tmp_path: Path) -> None:
    assert study.check(of(name), directory=tmp_path) == []


@pytest.mark.parametrize("name", NAMES)
def test_figures_of_recorded_files_can_be_drawn(name: str) -> None:
    each = of(name)
    recorded = inputs.Inputs(each, {})
    for figure in runner.all_figures(each):
        arguments = recorded.of(each.figure(figure))
        if arguments is not None:
            assert study.function(each, "FIGURES", figure)(*arguments).panels


def test_images_are_small() -> None:
    files = [file for name in NAMES for file in (of(name).folder / "images").rglob("*.png")]
    assert sum(file.stat().st_size for file in files) < 3_000_000
    for file in files:
        assert file.read_bytes()[25] == 3, f"{file} has no palette"  # the header's colour type


TOY = """
title = "A toy"
question = "Does it run?"

[experiment.short]
sample = ["sweep.axis.rtt.values=[\\"20 ms\\"]"]

[experiment.long]
scenario = "short.toml"
set = ["sweep.axis.rtt.values=[\\"80 ms\\"]"]

[table.goodput]
runs = ["short"]

[table.recorded]
runs = ["rows.csv"]

[figure.goodput]
runs = ["rows.csv"]

[record."rows.csv"]
runs = ["short", "long"]
"""
MEASURES = """
import polars as pl
from cwnd.figures import Panel, Picture
from cwnd.study import ONE_PANEL, curve, table


def rows(run):
    return [(str(row["rtt"]), f"{row['goodput_bit_s'] / 1e6:.2f}") for row in
            run.per_run().iter_rows(named=True)]


def record(short, long):
    found = [*rows(short), *rows(long)]
    return pl.DataFrame({"rtt": [r for r, _ in found], "goodput": [float(g) for _, g in found]})


def figure(frame):
    values = frame["goodput"]
    return Picture([Panel([curve(range(len(values)), values, 0)])], *ONE_PANEL)


TABLES = {
    "goodput": lambda run: table(["RTT", "goodput"], rows(run)),
    "recorded": lambda frame: table(["RTT"], ([rtt] for rtt in frame["rtt"])),
}
FIGURES = {"goodput": figure}
RECORDS = {"rows.csv": record}
"""
PAGE = """# A toy

<!-- table goodput -->
<!-- end -->

Text between.

<!-- table recorded -->
<!-- end -->

![Goodput](images/goodput.png)
"""
SCENARIO = """
schema = 1
[run]
duration = "2 s"
sample = "100 ms"
[dumbbell]
rate = "5 Mbit/s"
[flow.main]
rtt = "20 ms"
[sweep.axis.rtt]
path = "flow.main.rtt"
values = ["20 ms", "40 ms"]
"""


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    folder = tmp_path / "toy"
    folder.mkdir()
    for name, text in {
        "study.toml": TOY,
        "measures.py": MEASURES,
        "page.md": PAGE,
        "short.toml": SCENARIO,
    }.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def test_a_folder_of_a_user_is_a_study(toy: Path, cli: Cli) -> None:
    ran = cli("study", "run", toy, "-o", "ran")
    assert ran.code == 0, ran.err
    assert "| 40 ms | " in ran.out
    assert (cli.directory / "ran/figures/goodput.png").is_file()

    written = cli("study", "page", toy, "-o", "ran")
    assert written.code == 0, written.err
    page = (toy / "page.md").read_text(encoding="utf-8")
    assert list(tables.blocks(page)) == ["goodput", "recorded"]
    assert tables.blocks(page)["recorded"][2:] == ["| 20 ms |", "| 40 ms |", "| 80 ms |"]
    assert "\nText between.\n" in page
    again = cli("study", "check", toy)
    assert again.code == 0, again.out
    assert again.out == (
        "toy is as its page says (2 tables, 1 record); repeated: short; without a sample: long\n"
    )

    document = cli("study", "run", toy, "-o", "ran", "--json").json
    assert document["study"] == "toy"
    assert document["tables"]["recorded"][-1] == "| 80 ms |"
    assert cli("study", "check", toy, "--json").json == {"study": "toy", "faults": []}
    listed = cli("study", "--json").json["studies"]
    assert [each["name"] for each in listed] == NAMES
    shown = cli("study").out.splitlines()
    asked = next(each for each in listed if each["question"])
    assert f"{asked['name']}: {asked['title']} – {asked['question']}" in shown
    assert shown[-2].startswith("`cwnd study run NAME` runs one")


def test_a_difference_is_reported_with_its_line(toy: Path, tmp_path: Path) -> None:
    study.write(of(str(toy)), directory=tmp_path / "ran")
    assert study.check(of(str(toy)), directory=tmp_path / "sample") == []
    page = toy / "page.md"
    text = page.read_text(encoding="utf-8")
    (row,) = (line for line in tables.blocks(text)["goodput"] if line.startswith("| 20 ms"))
    page.write_text(text.replace(row, "| 20 ms | 9.99 |"), encoding="utf-8")
    (fault,) = study.check(of(str(toy)), directory=tmp_path / "sample")
    assert fault.startswith("table `goodput`: the page has no line | RTT: 20 ms | goodput: ")
    # A row that is not in the sample is not repeated, a table of recorded rows is.
    page.write_text(text.replace("| 80 ms |", "| 81 ms |"), encoding="utf-8")
    (fault,) = study.check(of(str(toy)), directory=tmp_path / "sample")
    assert fault == "table `recorded`: the page has no line | 80 ms |"


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        (
            "page.md",
            "table recorded",
            "table recordet",
            "block `recordet` has no table (did you mean `recorded`?)",
        ),
        ("page.md", "![Goodput](images/goodput.png)", "", "`goodput` is not shown by the page"),
        ("measures.py", '"rows.csv": record', "", "measures.py: `rows.csv` is in records and not"),
        ("measures.py", '"goodput": figure', "", "`goodput` is in figures and not in FIGURES"),
    ],
)
def test_a_part_without_its_other_is_a_fault(
    toy: Path, file: str, old: str, new: str, message: str
) -> None:
    path = toy / file
    path.write_text(path.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")
    assert any(message in fault for fault in study.faults(of(str(toy))))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("question", "questiom", "there is no key `questiom`"),
        ("scenario =", "scenaria =", r"experiment\.long: there is no key `scenaria`"),
        (
            'runs = ["short", ',
            'runs = ["shirt", ',
            r"rows.csv needs shirt\.toml, which is not there",
        ),
        ("[table.goodput]", "[table]\ngoodput = 1\n[table.other]", "`table.goodput` is a table"),
    ],
)
def test_a_fault_of_the_file_is_named(toy: Path, old: str, new: str, message: str) -> None:
    file = toy / "study.toml"
    file.write_text(file.read_text(encoding="utf-8").replace(old, new, 1), encoding="utf-8")
    with pytest.raises(InputError, match=message):
        of(str(toy))


def test_unknown_studies_experiments_and_records_are_refused(toy: Path, cli: Cli) -> None:
    assert "there is no study `toi`; there are papers/abe, " in cli("study", "run", "toi").err
    assert "nonsense needs nonsense.toml" in cli("study", "run", toy, "nonsense").err
    refused = cli("study", "run", toy, "--record", "rows.csv")
    assert "toy has no record `rows.csv` with a program; it has none" in refused.err
    shutil.rmtree(toy)
    assert cli("study", "page", toy).code == 2


def test_a_palette_keeps_what_is_drawn() -> None:
    image = pytest.importorskip("PIL.Image")
    big = image.new("RGB", (2400, 600), "white")
    big.paste("#1f77b4", (100, 100, 400, 400))
    import io

    written = io.BytesIO()
    big.save(written, "PNG")
    small = image.open(io.BytesIO(images.palette_png(written.getvalue())))
    assert small.mode == "P"
    assert small.size == (900, 225)
    assert small.convert("RGB").getpixel((90, 90)) == (0x1F, 0x77, 0xB4)

"""Studies: format, pages and figures of all, samples repeated, and messages of what is wrong."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from conftest import IS_LONG, Cli

import cwnd
from cwnd import CwndError, InputError, study
from cwnd.study import images, inputs, runner, tables
from cwnd.study.toml_table import line_of

if TYPE_CHECKING:
    from cwnd.study import Study


NAMES = study.studies()
#: The largest study; test_questions repeats a part of it.
LARGEST = "questions/closed_forms"
#: Studies whose samples are repeated.
CHECKED = [name for name in NAMES if name != LARGEST or IS_LONG]
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
    [pytest.param(name, marks=pytest.mark.xdist_group(name)) for name in CHECKED],
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
number = "Fig. 1"
caption = "Goodput by RTT."

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


CLAIM = """
[[claim]]
id = "T1"
text = "The goodput is below the rate"
figures = ["goodput"]

[[claim.check]]
what = "goodput"
kind = "bound"
unit = "Mbit/s"
at_most = 5.0
deterministic = true
measure = { name = "own", figure = "short", rtt = "20 ms" }
"""
OWN = """
from cwnd.study import at


def own(results, figure, rtt):
    run = results[figure]
    return [value / 1e6 for value in at(run, run.per_run(), {"rtt": rtt})["goodput_bit_s"]]


MEASURES = {"own": own}
"""


def edit(file: Path, old: str, new: str) -> None:
    text = file.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new, 1), encoding="utf-8")


def add(file: Path, text: str) -> None:
    file.write_text(file.read_text(encoding="utf-8") + text, encoding="utf-8")


def claimed(toy: Path) -> Path:
    add(toy / "study.toml", CLAIM)
    add(toy / "measures.py", OWN)
    return toy


def test_claims_of_a_users_folder_are_paged_and_checked(toy: Path, cli: Cli) -> None:
    claimed(toy)
    (toy / "page.md").unlink()
    written = cli("study", "page", toy, "-o", "ran")
    assert written.code == 0, written.err
    page = (toy / "page.md").read_text(encoding="utf-8")
    assert "**1 of 1 numbers hold**.\n" in page
    assert "2026" not in page
    assert "`cwnd study run toy` runs everything again" in page
    assert "cwnd reproduce" not in page
    assert page.count("![Fig. 1](images/goodput.png)\n\n**Fig. 1.** Goodput by RTT.") == 1
    checked = cli("study", "check", toy)
    assert checked.code == 0, checked.out + checked.err
    edit(toy / "study.toml", "is below the rate", "is above the rate")
    assert cli("study", "check", toy).code == 1


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('["goodput"]\n', '["godput"]\n', 'measures.py:{line}: RECORDS["rows.csv"]: KeyError'),
        ("import polars as pl", "import polars as", "measures.py:{line}: the file cannot be impor"),
        ("import polars as pl", "import polaris", "measures.py:{line}: the file cannot be"),
        ('"goodput": lambda run: table(["RTT", "goodput"], rows(run))', '"goodput": lambda run: 3',
         'measures.py:{line}: TABLES["goodput"] returned a wrong value: a table is a list'),
        ('return pl.DataFrame(', "return dict(", "measures.py:{line}: RECORDS[\"rows.csv\"]"),
        ("TABLES = {", "TABLES = [{}]\nOTHERS = {", "measures.py: TABLES is a dictionary"),
        ('"recorded": lambda', '"recordet": lambda', 'measures.py: TABLES has no `recorded`; add'),
    ],
)  # fmt: skip
def test_a_users_function_is_named_with_its_line(
    toy: Path, cli: Cli, old: str, new: str, message: str
) -> None:
    if old == '["goodput"]\n':
        old, new = "row['goodput_bit_s']", "row['godput']"
    edit(toy / "measures.py", old, new)
    ran = cli("study", "run", toy, "-o", "ran")
    assert ran.code == 2, ran.err
    assert "this is a bug" not in ran.err
    lines = (toy / "measures.py").read_text(encoding="utf-8").splitlines()
    places = [n for n, line in enumerate(lines, 1) if new.splitlines()[0] in line]
    places += [lines.index("def record(short, long):") + 1]
    assert any(message.format(line=line) in ran.err for line in places), ran.err


def test_a_figure_that_fails_is_an_error(toy: Path, cli: Cli) -> None:
    edit(toy / "measures.py", 'frame["goodput"]', 'frame["godput"]')
    ran = cli("study", "run", toy, "-o", "ran")
    assert ran.code == 1
    assert "figure `goodput` could not be drawn" in ran.err
    assert "measures.py:" in ran.err
    assert "; the runs are complete in" in ran.err
    assert "claims" not in ran.err
    assert "this is a bug" not in ran.err
    written = cli("study", "page", toy, "-o", "ran")
    assert written.code == 1
    assert "page.md is written without goodput" in written.err


def draws(toy: Path, code: str) -> None:
    old = "[figure.goodput]\nruns = "
    edit(toy / "study.toml", f'{old}["rows.csv"]', f'{old}["short"]')
    edit(toy / "measures.py", '"goodput": figure', f'"goodput": lambda run: {code}')


def test_a_figure_of_a_run_is_accepted(toy: Path, tmp_path: Path) -> None:
    draws(toy, 'run.plot("sweep")')
    found = study.run(study.study(toy), directory=tmp_path / "ran")
    assert {file.name for file in found.figures} == {"goodput.png", "goodput.svg"}
    assert found.undrawn == ()


def test_a_wrong_value_of_a_figure_is_named(toy: Path, tmp_path: Path) -> None:
    draws(toy, "3")
    with pytest.warns(match="Picture, or the Figure of `run.plot`, not int"):
        assert study.run(study.study(toy), directory=tmp_path / "ran").undrawn == ("goodput",)


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("question", "questiom", "questiom", "no key `questiom` (did you mean `question`?); keys"),
        ("scenario =", "scenaria =", "scenaria", "experiment.long: there is no key `scenaria`"),
        ('["rows.csv"]', '["fifo.csv"]', "fifo", "recorded needs fifo.csv, which is not there"),
        ('["short", ', '["shirt", ', "shirt", "which is not there (did you mean `short`?)"),
        ("[experiment.long]", '[experiment.long]\non = ["mars"]', "mars", "`on` has `mars`; it is"),
        ("axis.rtt", "axis.rtx", "rtx", "experiment.short, sample: sweep.axis.rtx.values"),
        ("axis.rtt.values=[\\\"80", "axis.rtx.values=[\\\"80", "rtx", "experiment.long, set:"),
        ("[table.goodput]", '[[quick]]\nset = ["run.x=1"]\n[table.goodput]', "run.x", "quick, set"),
        ('unit = "Mbit/s"', 'units = "Mbit/s"', "units", "has no `units` (did you mean `unit`?)"),
        ('id = "T1"', 'id = "T1"\ntxt = "a"', "txt", "no key `txt` (did you mean `text`?)"),
        ('name = "own"', 'name = "owm"', "owm", "no measure `owm` (did you mean `own`?)"),
        ('rtt = "20 ms" }', 'rt = "20 ms" }', "rt =", "unexpected keyword argument 'rt'"),
        ('id = "T1"', 'id = "T1"\nreading = [{ name = "b", figures = {}, checks = ["T1.9"] }]',
         "T1.9", "`checks` has `T1.9` (did you mean `T1.1`?); it is of T1.1"),
    ],
)  # fmt: skip
def test_an_error_of_study_toml_has_its_line(  # noqa: PLR0917 - one case
    toy: Path, tmp_path: Path, old: str, new: str, line: str, message: str
) -> None:
    file = claimed(toy) / "study.toml"
    edit(file, old, new)
    lines = file.read_text(encoding="utf-8").splitlines()
    number = next(n for n, text in enumerate(lines, 1) if line in text)
    with pytest.raises(InputError) as refused:
        study.run(study.study(toy), directory=tmp_path / "ran")
    assert str(refused.value).startswith(f"{file}:{number}: "), refused.value
    assert message in str(refused.value)


def test_an_axis_of_a_claim_is_named_with_its_check(toy: Path, tmp_path: Path) -> None:
    claimed(toy)
    edit(toy / "measures.py", '{"rtt": rtt}', '{"delay": rtt}')
    with pytest.raises(InputError, match=r"study\.toml:\d+: T1 `goodput`.*has no axis `delay`; it"):
        study.run(study.study(toy), directory=tmp_path / "ran")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("<!-- end -->\n\nText", "<!-- enb -->\n\nText", "page.md:3: block `goodput` has no `<!--"),
        ("table recorded", "table recordet", "page.md:8: block `recordet` has no table (did"),
        ("<!-- table recorded -->\n<!-- end -->", "", "page.md: table `recorded` has no block"),
        ("<!-- table recorded -->", "", "page.md:9: `<!-- end -->` ends no block"),
        (PAGE, "", "table `goodput` has no block"),
    ],
)  # fmt: skip
def test_a_fault_of_the_page_has_its_line(toy: Path, old: str, new: str, message: str) -> None:
    edit(toy / "page.md", old, new)
    with pytest.raises(InputError) as refused:
        study.write(study.study(toy))
    assert message in str(refused.value)
    assert any(message in fault for fault in study.faults(study.study(toy)))


def test_a_study_without_a_page_names_what_it_needs(toy: Path, cli: Cli) -> None:
    (toy / "page.md").unlink()
    for command in ("page", "check"):
        refused = cli("study", command, toy)
        assert refused.code == 2
        assert "page.md is not there; write it" in refused.err
        assert "<!-- table recorded -->\n<!-- end -->" in refused.err


def test_debugging_shows_the_traceback(
    toy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CWND_DEBUG", "1")
    edit(toy / "measures.py", "row['goodput_bit_s']", "row['godput']")
    with pytest.raises(CwndError, match="KeyError"):
        study.run(study.study(toy), directory=tmp_path / "ran")
    assert "Traceback" in capsys.readouterr().err


def test_lines_of_keys_are_found() -> None:
    text = 'a = 1\n[b.c]\nd = """\n[x]\n"""\n[[e]]\nf = 1\n[[e]]\n[[e.g]]\n"h.i" = 2\n'
    found = {
        ("a",): 1, ("b", "c"): 2, ("b", "c", "d"): 3, ("e", 0, "f"): 7, ("e", 1): 8,
        ("e", 1, "g", 0, "h.i"): 10, ("b", "c", "missing"): 2, ("x",): 1,
    }  # fmt: skip
    assert {path: line_of(text, path) for path in found} == found

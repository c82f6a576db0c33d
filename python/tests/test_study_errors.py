"""Studies of users: messages of what is wrong, each with its file, line and remedy."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import Cli
from test_studies import PAGE, toy

from cwnd import CwndError, InputError, study
from cwnd.study.toml_table import line_of

__all__ = ["toy"]

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
    assert "1 of 1 claims are reproduced in full" in page
    assert "`cwnd study run toy` runs everything again" in page
    assert "cwnd reproduce" not in page
    assert page.count("![goodput](images/goodput.png)") == 1
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

"""Comparison of several results: table, figure, exit code, LaTeX; completion of the shell."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
import svgs
from conftest import SHORT, Cli
from rich.table import Table
from rich.text import Text

import cwnd
from cwnd import plots
from cwnd.cli.latex import tabular
from cwnd.errors import InputError
from cwnd.results import merged


@pytest.fixture(scope="module")
def rates(scenarios: Path) -> dict[str, cwnd.Run]:
    return {
        rate: cwnd.run(scenarios / "sweep.toml", set={"dumbbell.rate": rate})
        for rate in ("10 Mbit/s", "5 Mbit/s", "20 Mbit/s")
    }


def test_a_merged_result_has_the_numbers_of_each(rates: dict[str, cwnd.Run]):
    summary = merged(rates).summary()
    for name, run in rates.items():
        rows = summary.filter(summary["result"] == name).drop("result")
        assert rows.select(run.summary().columns).equals(run.summary())


def test_the_figure_has_a_mark_for_each_result_and_point(rates: dict[str, cwnd.Run]):
    picture = plots.compare(rates, metrics=["goodput"])
    for panel, drawn in zip(picture.panels, svgs.read(picture), strict=True):
        assert [line.label for line in panel.lines] == list(rates)
        for line, run in zip(panel.lines, rates.values(), strict=True):
            rows = run.summary(["goodput"])
            rows = rows.filter(rows["arm"] == panel.title)
            marks = [drawn.at(place) for place in drawn.markers[line.colour]]
            assert [x for x, _ in marks] == pytest.approx([10, 20, 40], abs=0.5)
            assert [y for _, y in marks] == pytest.approx(
                [value / 1e6 for value in rows["goodput_bit_s"]], rel=0.01
            )


def test_results_without_a_sweep_are_points_along_x(short: cwnd.Run):
    (panel, *_) = plots.compare({"one": short, "two": short}).panels
    assert panel.ticks == [(0, "one"), (1, "two")]


def test_results_whose_axes_differ_are_not_merged(short: cwnd.Run, sweep: cwnd.Run):
    with pytest.raises(InputError, match="its axis `arm` varies, and another result lacks it"):
        merged({"short": short, "sweep": sweep})


@pytest.fixture
def three(saved: Cli, rates: dict[str, cwnd.Run]) -> Cli:
    for name, run in zip("abc", rates.values(), strict=True):
        run.save(saved.directory / name, plots=False)
    return saved


def test_each_result_is_compared_with_the_first(three: Cli):
    document = three("compare", "a", "b", "c", "--json").json
    for found, name in zip(document["comparisons"], "bc", strict=True):
        assert found["differences"] == three("compare", "a", name, "--json").json["differences"]
    answer = three("compare", "a", "b", "c", "--metric", "goodput", "-o", "all.svg")
    assert answer.code == 0, answer.err
    (settings,) = (line for line in answer.out.splitlines() if "dumbbell.rate.initial" in line)
    assert settings.split()[1:] == ["10", "Mbit/s", "5", "Mbit/s", "20", "Mbit/s"]
    rows = [line for line in answer.out.splitlines() if "Goodput" in line]
    assert len(rows) == 6
    assert all(row.count("%") == 2 for row in rows)
    assert (three.directory / "all.svg").read_text().startswith("<svg")


def test_one_regression_of_several_results_fails(three: Cli):
    condition = ("--fail-if", "goodput < -5 %")
    assert three("compare", "a", "c", *condition).code == 0
    answer = three("compare", "a", "c", "b", *condition)
    assert answer.code == 1
    assert answer.out.index("c:\n") < answer.out.index("kept") < answer.out.index("b:\n")
    assert "regression: goodput < -5 % at arm NewReno, rtt 10 ms" in answer.out


@pytest.mark.parametrize("kind", ["infer", "link"])
def test_other_results_are_compared_with_the_first(three: Cli, kind: str):
    old = Path(__file__).parent / "data" / "v1" / kind
    answer = three("compare", old, old, old)
    assert answer.code == 0, answer.err
    assert answer.out.count("difference") == 2
    mixed = three("compare", old, old, "a")
    assert (mixed.code, f"is a result of `cwnd {kind}`, and a is not" in mixed.err) == (2, True)
    assert "--output are for results" in three("compare", old, old, "-o", "x.svg").err


def test_names_and_labels_are_text_and_results_may_repeat(three: Cli):
    axis = (
        '[sweep.axis.b]\npath = "dumbbell.rate"\nvalues = ["1 Mbit/s"]\nlabels = ["[/c] [bold]"]\n'
    )
    three.write("labels.toml", SHORT + axis)
    assert three("run", "labels.toml", "-o", "dir[/x]", "--no-plots").code == 0
    answer = three("compare", "dir[/x]", "dir[/x]", "dir[/x]", "--metric", "goodput", "-o", "x.svg")
    assert answer.code == 0, answer.err
    assert all(text in answer.out for text in ("[/c] [bold]", "dir[/x] (1)", "dir[/x] (3)"))
    assert "[/h]" in three("query", "dir[/x]", 'select 1 as "[/h]"').out


@pytest.mark.parametrize(
    ("file", "said"), [("x.gif", ".svg, .png or .pdf"), ("no/x.svg", "no folder no")]
)
def test_a_figure_that_cannot_be_written_is_refused_first(three: Cli, file: str, said: str):
    answer = three("compare", "a", "b", "-o", file)
    assert (answer.code, answer.out) == (2, "")
    assert said in answer.err


def test_tables_for_latex_have_the_cells_of_the_terminal(three: Cli):
    answer = three("compare", "a", "b", "--metric", "goodput", "--latex")
    assert answer.code == 0, answer.err
    settings, numbers = answer.out.split("\\end{tabular}\n")[:2]
    assert "dumbbell.rate.initial & 10 Mbit/s & 5 Mbit/s" in settings
    rows = [line for line in numbers.splitlines() if "Goodput" in line]
    shown = three("compare", "a", "b", "--metric", "goodput").out.splitlines()
    for row, line in zip(rows, (each for each in shown if "Goodput" in each), strict=True):
        plain = (
            row.removesuffix(r" \\").replace("$\\pm$", "±").replace("$-$", "-").replace("\\%", "%")
        )
        assert " ".join(plain.replace("&", " ").split()) == " ".join(line.split())


def test_only_tables_are_on_stdout_for_latex(three: Cli):
    answer = three("run", "short.toml", "-o", "latex", "--latex", "--no-plots")
    assert answer.out.count("\\begin{tabular}") == 1
    assert all(
        line.startswith(("%", "\\")) or line.endswith("\\\\") for line in answer.out.splitlines()
    )
    assert "latex" in answer.err
    queried = three("query", "latex", "select 'a_b' as \"x%\", 1.5 as y", "--latex")
    assert "x\\% & y \\\\" in queried.out
    assert "a\\_b & 1.5 \\\\" in queried.out
    assert three("query", "latex", "select 1", "--latex", "--csv").code == 2


def test_characters_of_latex_are_written_as_text():
    table = Table("a\nb", "c")
    table.add_row(Text(r"50 % of $1 & {x}_y^z ~ \end #"), "≤ 3 µs", end_section=True)
    table.add_row(Text("[1] -4.5 --ecn"), "")
    assert tabular(table).splitlines() == [
        r"\begin{tabular}{ll}",
        r"\toprule",
        r"\shortstack{a\\b} & c \\",
        r"\midrule",
        r"50 \% of \$1 \& \{x\}\_y\textasciicircum{}z \textasciitilde{} \textbackslash{}end \#"
        r" & $\leq$ 3 $\mu$s \\",
        r"\midrule",
        r"{}[1] $-$4.5 -{}-ecn &  \\",
        r"\bottomrule",
        r"\end{tabular}",
    ]


def test_the_shell_completes_commands_options_and_choices(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("HOME", str(cli.directory))
    script = cli.directory / "completion"
    assert cli("completion", "--shell", "bash", "-o", script).code == 0
    assert not (cli.directory / ".bashrc").exists()
    assert cli("completion", "--shell", "bash").code == 0
    assert (cli.directory / ".bashrc").exists()
    words = {"com": "compare completion", "compare --fail": "--fail-if", "plot --kind sw": "sweep"}
    for typed, expected in words.items():
        bash = (
            f"source {script}; COMP_WORDS=(cwnd {typed}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1));"
            ' _cwnd; echo "${COMPREPLY[@]}"'
        )
        found = subprocess.run(
            ["bash", "-c", bash], capture_output=True, text=True, check=True
        ).stdout
        assert found.split() == expected.split()

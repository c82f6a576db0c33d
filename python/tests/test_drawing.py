"""A result is safe before its figures are drawn: one that fails is a warning."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from conftest import Cli
from polars.testing import assert_frame_equal

import cwnd
from cwnd import plots, report, study
from cwnd.errors import FigureWarning
from cwnd.figures import render
from cwnd.link import Direction, LinkOutcome, Settings, command
from cwnd.link import presentation as link_figure
from cwnd.plots import kinds
from cwnd.report import page
from cwnd.study.agreement import Agreement, write
from cwnd.study.agreement import figure as agreement

#: Message of an error that once broke a figure.
FAULT = "must be real number, not NoneType"


def broken(*_: object, **__: object) -> None:
    raise TypeError(FAULT + "\nand more lines")


@pytest.fixture
def broken_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in ("windows", "timeseries"):
        monkeypatch.setitem(kinds.KINDS, kind, broken)


@pytest.mark.parametrize(("command", "scenario"), [("run", "short"), ("sweep", "sweep")])
@pytest.mark.usefixtures("broken_windows")
def test_a_figure_that_fails_costs_no_simulation(cli: Cli, command: str, scenario: str):
    answer = cli(command, f"{scenario}.toml")

    assert answer.code == 0, answer.err
    kind = {"short": "timeseries", "sweep": "windows"}[scenario]
    warnings = [line for line in answer.err.splitlines() if not line.startswith("note: ")]
    assert warnings == [
        f"warning: figure `{kind}` could not be drawn (TypeError: {FAULT}); the result is complete"
        f" in out/{scenario}, and `cwnd plot out/{scenario}` tries again; this is a bug of cwnd;"
        " CWND_DEBUG=1 shows where, please report it"
    ]
    assert f"plots/{kind}" not in answer.out
    assert "plots/qdelay.svg" in answer.out
    out = cli.directory / "out"
    assert cwnd.load(out / scenario).series.height > 0
    assert not list(out.glob(".*"))


@pytest.mark.usefixtures("broken_windows")
def test_saving_from_python_warns_and_saves(short: cwnd.Run, tmp_path: Path):
    with pytest.warns(FigureWarning, match="figure `timeseries` could not be drawn"):
        short.save(tmp_path / "result")

    assert_frame_equal(cwnd.load(tmp_path / "result").series, short.series)
    assert {file.stem for file in (tmp_path / "result" / "plots").iterdir()} == {"qdelay"}


@pytest.mark.parametrize("error", [MemoryError(), OSError(28, "No space left on device", "x.svg")])
def test_what_is_no_bug_is_not_called_one(
    short: cwnd.Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
):
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(kinds, "default_kinds", fail)
    with pytest.warns(FigureWarning, match="the figures could not be drawn") as told:
        short.save(tmp_path / "result")

    assert "report" not in str(told[0].message)


def test_a_panic_of_the_extension_is_a_warning_too(
    short: cwnd.Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    class PanicException(BaseException):
        pass

    def panic(*_: object) -> None:
        raise PanicException("index out of bounds")

    monkeypatch.setattr(render, "svg", panic)
    with pytest.warns(FigureWarning, match="PanicException: index out of bounds"):
        plots.draw_result(short, short.save(tmp_path / "result", plots=False), quick=True)


def test_ctrl_c_while_figures_are_drawn_leaves_the_result(
    short: cwnd.Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setitem(kinds.KINDS, "qdelay", interrupt)
    with pytest.raises(KeyboardInterrupt):
        short.save(tmp_path / "result")

    assert cwnd.load(tmp_path / "result").manifest == short.manifest
    assert [path.name for path in tmp_path.iterdir()] == ["result"]


def test_a_report_goes_without_a_figure_that_fails(
    short: cwnd.Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setitem(page._FIGURES, "timeseries", broken)
    with pytest.warns(FigureWarning, match=r"figure `timeseries` of the report"):
        text = report.write([short], tmp_path / "report.html").read_text()

    assert "qdelay" in text


def test_claims_are_judged_and_kept_before_figures_are_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(plots, "save", broken)
    with pytest.warns(FigureWarning, match="could not be drawn"):
        found = study.run(study.paper("abe"), claims=["A3"], directory=tmp_path)

    assert found.figures == ()
    assert (tmp_path / "claims.json").exists()


def test_the_table_of_an_agreement_is_there_without_its_figure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(agreement, "figure", broken)
    with pytest.warns(FigureWarning, match="figure `agreement` could not be drawn"):
        write(Agreement("arms", [], [], {}, tmp_path))

    assert (tmp_path / "agreement.csv").exists()
    assert (tmp_path / "agreement.json").exists()
    assert not list(tmp_path.glob("agreement.[ps]*"))


def test_the_records_of_a_link_are_there_without_their_picture(
    short: cwnd.Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(link_figure, "picture", broken)
    report = SimpleNamespace(
        summary=dict,
        links=short.links,
        reasons=short.reasons,
        link_series=short.link_series,
        qdelay=short.qdelay,
    )
    finished = LinkOutcome(
        0,
        report,  # type: ignore[arg-type]
        Settings(Direction("1 Mbit/s")).scenario(),
        [],
    )
    with pytest.warns(FigureWarning, match=r"figure `link\.svg` could not be drawn"):
        command.Records(tmp_path, force=False).save(finished)

    assert (tmp_path / "link.json").exists()
    assert (tmp_path / "link_series.parquet").exists()
    assert not (tmp_path / "link.svg").exists()

"""Lessons: each notebook runs as a student runs it, untouched and with the solutions below."""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Iterator
from fractions import Fraction
from importlib import resources
from typing import Any

import numpy as np
import pytest
from conftest import Cli
from IPython.core.interactiveshell import InteractiveShell

from cwnd.lessons import NAMES, NotYet, bufferbloat, ecn, fairness, own, sawtooth

#: Text for each `...`, by lesson and task.
SOLUTIONS = {
    "sawtooth": [
        ["(1 + buffer_bdp) * rate * rtt / 8 / 1500"],
        ["0.8"],
        ["(1 - beta) / beta"],
    ],
    "bufferbloat": [["packets * 1500 * 8 / rate * 1000"], ["7"], ["0.114"]],
    "ecn": [['{"flow.main.endpoint.ecn": True}'], ["beta_ecn * window"], ["0.8"]],
    "fairness": [
        ["(a + b) ** 2 / (2 * (a**2 + b**2))"],
        ["far_rtt / near_rtt"],
        ['"fq-codel"'],
    ],
    "bbr": [["3"], ["16"], ["88"]],
    "own": [
        ["self.mss * ack.acked_bytes / self.window", "max(self.window / 2, 2 * self.mss)"],
        [
            """if not ack.grow or path.rtt is None:
            return
        if path.rtt - path.min_rtt < 0.01:
            super().on_ack(path, ack)
        else:
            self.ssthresh = self.window
            self.window -= self.mss * ack.acked_bytes / self.window"""
        ],
    ],
}
#: Answers that are wrong though of the right form, by lesson and task.
WRONG = {
    "sawtooth": [["rate * rtt / 8 / 1500"], ["1.0"], ["2 * (1 - beta)"]],
    "bufferbloat": [["packets * 1500 / rate * 1000"], ["5"], ["0.5"]],
    "ecn": [['{"dumbbell.queue": "fifo"}'], ["beta * window"], ["0.95"]],
    "fairness": [["min(a, b) / max(a, b)"], ["1.0"], ['"codel"']],
    "bbr": [["0.5"], ["4"], ["0"]],
    "own": [
        ["self.mss * ack.acked_bytes / self.window", "max(0.55 * self.window, 2 * self.mss)"],
        ["super().on_ack(path, ack)"],
    ],
}
Cell = dict[str, Any]


def cells(lesson: str) -> list[Cell]:
    text = resources.files("cwnd.lessons").joinpath(f"{lesson}.ipynb").read_text(encoding="utf-8")
    return [cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]


def is_task(cell: Cell) -> bool:
    return "task" in cell["metadata"].get("tags", [])


def answered(cell: Cell, answers: list[str]) -> str:
    text = "".join(cell["source"])
    assert text.count("...") == len(answers)
    for answer in answers:
        text = text.replace("...", answer, 1)
    return text


class Shell:
    """A notebook's shell, with what the last cell printed and raised."""

    def __init__(self) -> None:
        self.shell = InteractiveShell()

    def run(self, source: str) -> tuple[str, BaseException | None]:
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            result = self.shell.run_cell(source, store_history=True)
        return printed.getvalue(), result.error_in_exec or result.error_before_exec


@pytest.fixture
def shell() -> Iterator[Shell]:
    yield Shell()
    InteractiveShell.clear_instance()


@pytest.mark.parametrize("lesson", NAMES)
def test_untouched_tasks_are_not_done_and_all_else_runs(lesson: str, shell: Shell):
    for cell in cells(lesson):
        printed, error = shell.run("".join(cell["source"]))
        if is_task(cell):
            assert isinstance(error, NotYet) or lesson == "own", cell["source"]
            assert error is not None
            assert "✓" not in printed
            assert lesson == "own" or "is still `...`" in printed
        elif "Mine" not in "".join(cell["source"]):
            assert error is None, (cell["source"], error)


@pytest.mark.parametrize("lesson", NAMES)
def test_solutions_pass(lesson: str, shell: Shell):
    solutions = iter(SOLUTIONS[lesson])
    for cell in cells(lesson):
        task = is_task(cell)
        source = answered(cell, next(solutions)) if task else "".join(cell["source"])
        printed, error = shell.run(source)
        assert error is None, (source, error)
        assert ("✓ right" in printed) == task
    assert next(solutions, None) is None


@pytest.mark.parametrize("lesson", NAMES)
def test_wrong_answers_are_told_what_they_lack(lesson: str, shell: Shell):
    wrong, solutions = iter(WRONG[lesson]), iter(SOLUTIONS[lesson])
    for cell in cells(lesson):
        if not is_task(cell):
            if "import" in "".join(cell["source"]):
                shell.run("".join(cell["source"]))
            continue
        printed, error = shell.run(answered(cell, next(wrong)))
        assert isinstance(error, NotYet), (cell["source"], error)
        assert "✗ not yet: " in printed
        assert "Traceback" not in printed
        shell.run(answered(cell, next(solutions)))


def test_a_start_of_a_scenario_runs_and_lessons_are_written(cli: Cli):
    assert cli("new", "scenario", "mine.toml").code == 0
    assert cli("check", "mine.toml").out == "mine.toml: ok, 15 runs\n"
    answer = cli("new", "lessons", "class")
    assert answer.code == 0, answer.err
    files = [cli.directory / line for line in answer.out.splitlines()]
    assert [file.stem.split("-")[1] for file in files] == list(NAMES)
    assert all(json.loads(file.read_text())["nbformat"] == 4 for file in files)
    again = cli("new", "lessons", "class")
    assert (again.code, "--force" in again.err) == (2, True)
    assert cli("new", "scenario", "mine.py").code == 2


@pytest.mark.parametrize(
    ("check", "answer", "said"),
    [
        (sawtooth.check_smallest_buffer, 0.79, "in tenths"),
        (sawtooth.check_smallest_buffer, 1e-9, "a queue of size zero"),
        (sawtooth.check_formula, lambda beta: 1 / (beta - 0.5), "fails: ZeroDivisionError"),
        (bufferbloat.check_target, "7", "is to be a number, not '7'"),
        (bufferbloat.check_target, 1e-9, "the download gets 17.* not at least 18.5 Mbit/s"),
        (bufferbloat.check_target, 9, "the call waits .* not at most 8 ms"),
        (bufferbloat.check_full_buffer, lambda packets, rate: 0.12, "not your 0.12 "),
        (ecn.check_window, lambda window, beta, beta_ecn: 0.5, "not your 0.5 "),
        (ecn.check_beta, 0.99, "0.99 costs .* not at most 2.5 ms"),
        (fairness.check_jain, lambda a, b: 0.9996, "not your 0.9996"),
        (ecn.check_marks, {"flow.main.endpoint.ecn": "on"}, "ecn"),
        (fairness.check_queue, "fq_codel", "did you mean `fq-codel`"),
        (own.check_aimd, int, "__init__|argument"),
    ],
)
def test_answers_of_the_wrong_form_are_sentences(check: Any, answer: object, said: str):
    with pytest.raises(NotYet, match=said):
        check(answer)


@pytest.mark.parametrize("answer", [7, np.int64(7), np.float32(7), Fraction(7)])
def test_all_kinds_of_numbers_are_numbers(answer: object):
    bufferbloat.check_target(answer)

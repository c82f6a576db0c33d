"""A journal gives what was written to it, or less, but nothing else."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cwnd.errors import DamageError
from cwnd.store import journal
from cwnd.store.journal import Journal

#: Frames: names of cells, and a body.
FRAMES = st.lists(
    st.tuples(st.lists(st.text("0123456789abcdef", min_size=1), max_size=3), st.binary()),
    max_size=4,
)
#: Frames for tests that try every byte.
FEW = [(["a", "b"], b"tables"), (["c"], b""), (["d"], bytes(range(40)))]


@pytest.fixture(scope="module", autouse=True)
def no_wait_for_the_disk() -> Iterator[None]:
    """Leaves out the waits, of which a busy disk makes minutes; a kill needs none of them."""
    with pytest.MonkeyPatch.context() as patched:
        for name in ("fsync", "fdatasync"):
            patched.setattr(journal.os, name, lambda _: None)
        yield


def write(file: Path, frames: list[tuple[list[str], bytes]]) -> list[int]:
    """Writes frames; returns where each ends."""
    ends = []
    with Journal(file) as opened:
        for cells, body in frames:
            opened.append(cells, [len(body)] * len(cells), body)
            ends.append(file.stat().st_size)
    return ends


def read(folder: Path) -> list[tuple[list[str], bytes]]:
    return [(list(frame.cells), frame.body("")) for frame in journal.frames(folder)]


@given(st.lists(FRAMES, max_size=3))
def test_what_was_appended_is_found_in_order(writers: list[list[tuple[list[str], bytes]]]):
    with TemporaryDirectory() as folder:
        for number, frames in enumerate(writers):
            write(Path(folder, f"{number}"), frames)
        assert read(Path(folder)) == [frame for frames in writers for frame in frames]
        assert all(journal.heads_intact(file) for file in Path(folder).iterdir())


@settings(max_examples=30)
@given(FRAMES.filter(bool))
def test_a_file_that_ends_anywhere_has_the_frames_before_its_end(
    frames: list[tuple[list[str], bytes]],
):
    with TemporaryDirectory() as folder:
        file = Path(folder, "a")
        ends = write(file, frames)
        data = file.read_bytes()
        for length in range(len(data) + 1):
            file.write_bytes(data[:length])
            assert read(Path(folder)) == frames[: sum(end <= length for end in ends)]
            assert journal.heads_intact(file)


def test_any_bit_that_turns_is_noticed(tmp_path: Path):
    file = tmp_path / "a"
    write(file, FEW)
    data = file.read_bytes()
    for bit in range(8 * len(data)):
        turned = bytearray(data)
        turned[bit // 8] ^= 1 << bit % 8
        file.write_bytes(turned)
        whole, damaged = [], 0
        for frame in journal.frames(tmp_path):
            try:
                whole.append((list(frame.cells), frame.body("")))
            except DamageError:
                damaged += 1
        assert all(frame in FEW for frame in whole)
        assert len(whole) < len(FEW)
        assert damaged == 1 or not journal.heads_intact(file)


def test_zeros_at_the_end_are_those_of_a_power_failure(tmp_path: Path):
    write(tmp_path / "a", FEW)
    with (tmp_path / "a").open("ab") as out:
        out.write(bytes(4096))
    assert read(tmp_path) == FEW
    assert journal.heads_intact(tmp_path / "a")


def test_a_damaged_head_is_an_error_for_those_who_ask(tmp_path: Path):
    write(tmp_path / "a", FEW)
    (tmp_path / "a").write_bytes(b"x" + (tmp_path / "a").read_bytes()[1:])
    assert read(tmp_path) == []
    with pytest.raises(DamageError, match=r"damaged.*mend it"):
        list(journal.frames(tmp_path, "mend it"))


#: Appends frames, each time killed at a later call of the system, and prints what was promised.
KILLED = """
import os, signal, sys
from pathlib import Path
from cwnd.store import journal

folder = Path(sys.argv[1])
step = 0
while True:
    step += 1
    file = folder / f"{step:04d}"
    told, tell = os.pipe()
    child = os.fork()
    if child == 0:
        left = [step]
        def counted(name):
            call = getattr(os, name)
            def one(*arguments):
                left[0] -= 1
                if left[0] == 0:
                    if name == "pwrite":  # a part of it
                        call(arguments[0], arguments[1][: len(arguments[1]) // 2], arguments[2])
                    os.kill(os.getpid(), signal.SIGKILL)
                return call(*arguments)
            setattr(os, name, one)
        for name in ("open", "fsync", "pwrite", "fdatasync"):
            counted(name)
        with journal.Journal(file) as opened:
            for number in range(4):
                opened.append([f"{step}-{number}"], [1], bytes(1000))
                os.write(tell, b".")
        os._exit(0)
    os.close(tell)
    _, status = os.waitpid(child, 0)
    promised = len(os.read(told, 100))
    found = [f.cells for f in journal.frames(folder) if f.file == file]
    assert all(len(f.body("")) == 1000 for f in journal.frames(folder))
    assert found == [(f"{step}-{n}",) for n in range(len(found))], (step, found)
    assert promised <= len(found) <= promised + 1, (step, promised, found)
    if status == 0:
        break
print(step)
"""


def test_a_kill_at_any_write_leaves_what_was_promised(tmp_path: Path):
    done = subprocess.run(
        [sys.executable, "-c", KILLED, tmp_path],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    # Two calls to open the file, one to synchronise its folder, two for each frame.
    assert int(done.stdout) == 3 + 2 * 4 + 1


def test_a_disk_that_is_full_leaves_whole_frames(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    file = tmp_path / "a"
    pwrite = journal.os.pwrite
    room = 300

    def limited(descriptor: int, data: memoryview, place: int) -> int:
        if place >= room:
            raise OSError(28, "No space left on device")
        return pwrite(descriptor, data[: room - place], place)

    with Journal(file) as opened:
        opened.append(["a"], [1], b"1")
        monkeypatch.setattr(journal.os, "pwrite", limited)
        with pytest.raises(OSError, match="No space left on device") as caught:
            opened.append(["b"], [1], bytes(500))
        assert caught.value.filename == str(file)
        monkeypatch.undo()
        assert read(tmp_path) == [(["a"], b"1")]
        opened.append(["c"], [1], b"2")

    assert read(tmp_path) == [(["a"], b"1"), (["c"], b"2")]

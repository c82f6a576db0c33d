"""Boots other kernels in QEMU and tests the kernel's controllers in them: `make kernels`.

    run.py                     tests the kernels in KERNELS, and the newest
    run.py 6.1 6.12            tests the latest release of each in Debian's and Ubuntu's archives
    run.py --list              lists the available kernels
    run.py 6.1 --run COMMAND   shows the output of a shell command there, instead of the tests

A guest needs neither root nor the machine's network, and writes no file. If QEMU cannot use the
processor's virtualization, the guest's clock advances with its instructions, a nanosecond each.
So real-time tests need no fast machine.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from initramfs import Initramfs
from packages import Archives, Kernel, MissingError

HERE = Path(__file__).resolve().parent
KERNEL = HERE.parents[1]
ROOT = KERNEL.parents[2]
OUT = ROOT / "target" / "guests"
#: Too old; the oldest supported; one with links (6.4); long-term ones of Linux or Ubuntu. The
#: newest has a member for first transmissions (7.1).
KERNELS = ("5.10", "6.1", "6.5", "6.8", "6.12", "6.18")
#: Oldest supported kernel (docs/how-to/kernel.md); older ones must be refused as too old.
OLDEST = (6, 1)
CHECK = "cwnd-kernel check"
#: Modules of the suite, and the property of a kernel that each tests.
COLUMNS = {
    "command": "loads, unloads",
    "each": "each acts",
    "flows": "counts",
    "shadow": "CUBIC as its own",
}
#: Size from which a library is stripped, bytes.
LARGE = 8 << 20
#: Time after which a guest is given up, s; generous, for a machine under load.
LONGEST = 3600


@dataclass
class Outcome:
    """Output of a guest, and the test results in it."""

    release: str
    output: str
    seconds: float
    passed: set[str] = field(default_factory=set)
    failed: set[str] = field(default_factory=set)
    skipped: set[str] = field(default_factory=set)
    #: Properties of this kernel that tests found and accept.
    noted: list[str] = field(default_factory=list)
    #: Error of `cwnd-kernel check` on this kernel.
    refused: str = ""

    def __post_init__(self) -> None:
        if refusal := re.search(rf"^\$ {CHECK}\nerror: (.*)", self.output, re.MULTILINE):
            self.refused = refusal[1]
            return
        names = set(re.findall(r"^test (\w+::\w+) \.\.\. ", self.output, re.MULTILINE))
        self.skipped = set(re.findall(r"skipped: (\w+::\w+): ", self.output))
        self.noted = re.findall(r"noted: (\w+::.*)", self.output)
        self.failed = set(re.findall(r"^    (\w+::\w+)$", self.output, re.MULTILINE))
        self.passed = names - self.failed - self.skipped
        if "\ndone\n" not in self.output or not self.passed:
            self.failed.add("guest::ends")

    @property
    def good(self) -> bool:
        """`True` if this kernel behaves as docs/how-to/kernel.md says."""
        major, minor = (int(part) for part in self.release.split(".")[:2])
        if (major, minor) < OLDEST and self.refused:
            return "too old" in self.refused
        return not self.failed and not self.refused


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("versions", nargs="*", metavar="VERSION")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--run", action="append", metavar="COMMAND")
    options = parser.parse_args()
    try:
        qemu = qemu_command()
        archives = Archives(OUT / "apt")
        releases = archives.releases()
        if options.list:
            print("\n".join(f"{version:<6} {release}" for version, release in releases.items()))
            return 0
        wanted = options.versions or dict.fromkeys([*KERNELS, list(releases)[-1]])
        if unknown := [version for version in wanted if version not in releases]:
            parser.error(f"no kernel {', '.join(unknown)}; there are {', '.join(releases)}")
        initramfs = file_system()
        commands = options.run or [CHECK, "suite"]
        if not options.run:
            line("kernel", *COLUMNS.values(), "seconds")
        good = True
        for version in wanted:
            outcome = run_guest(qemu, archives.kernel(releases[version]), initramfs, commands)
            if options.run:
                print(outcome.output)
            else:
                show(outcome)
                good = good and outcome.good
    except MissingError as error:
        print(f"error: {error}", file=sys.stderr)
        return 3
    return 0 if good else 1


def qemu_command() -> list[str]:
    qemu = shutil.which("qemu-system-x86_64")
    if qemu is None:
        raise MissingError("QEMU is missing; apt install qemu-system-x86")
    # A virtual machine may have /dev/kvm without the processor's virtualization.
    flags = set(Path("/proc/cpuinfo").read_text().split())
    if os.access("/dev/kvm", os.W_OK) and flags & {"vmx", "svm"}:
        processor = "-accel kvm -cpu host -smp 2"
    else:
        processor = "-accel tcg -cpu max -smp 1 -icount shift=0,sleep=off"
    options = "-m 1024 -nodefaults -no-user-config -no-reboot -display none"
    return [qemu, *processor.split(), *options.split()]


def file_system() -> Initramfs:
    """Returns a file system with the tests, the program, and all that they need."""
    suite, program = built()
    initramfs = bare()
    for built_here, name in ((suite, "suite"), (program, "cwnd-kernel")):
        initramfs.libraries(built_here)
        initramfs.write(f"/usr/bin/{name}", stripped(built_here), 0o755)
    # The tests were compiled with the program's path.
    initramfs.links[str(program)] = "/usr/bin/cwnd-kernel"
    for path in (KERNEL / "tests" / "suite").glob("*.py"):
        initramfs.add(path)
    return initramfs


def stripped(program: Path) -> bytes:
    """Returns a program without debug information, most of its size: a guest keeps it in memory."""
    if shutil.which("strip") is None:
        return program.read_bytes()
    OUT.mkdir(parents=True, exist_ok=True)
    small = OUT / program.name
    subprocess.run(["strip", "-o", small, program], check=True)
    return small.read_bytes()


def bare() -> Initramfs:
    """Returns a file system with the parts that every guest needs."""
    initramfs = Initramfs()
    if missing := initramfs.tools():
        raise MissingError(f"missing: {', '.join(missing)}")
    initramfs.python()
    for path, content in list(initramfs.files.items()):
        if isinstance(content, Path) and content.stat().st_size > LARGE:
            initramfs.write(path, stripped(content), 0o755)
    initramfs.write("/init", (HERE / "guest.py").read_bytes(), 0o755)
    return initramfs


def built() -> tuple[Path, Path]:
    places = ["--manifest-path", KERNEL / "Cargo.toml", "--target-dir", ROOT / "target" / "kernel"]
    command = ["cargo", "test", "--no-run", "--quiet", "--message-format=json", *places]
    told = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout
    found = {}
    for message in map(json.loads, told.splitlines()):
        if message.get("executable"):
            found[message["target"]["name"], message["profile"]["test"]] = message["executable"]
    return Path(found["suite", True]), Path(found["cwnd-kernel", False])


def run_guest(
    qemu: list[str], kernel: Kernel, initramfs: Initramfs, commands: list[str]
) -> Outcome:
    place = OUT / kernel.release
    place.mkdir(parents=True, exist_ok=True)
    paths = [f"/modules/{name}.ko" for name in kernel.modules]
    for path, content in zip(paths, kernel.modules.values(), strict=True):
        initramfs.write(path, content)
    initramfs.write("/load", "\n".join(paths).encode())
    initramfs.write("/commands", json.dumps(commands).encode())
    image, archive, output = place / "vmlinuz", place / "initramfs", place / "said"
    image.write_bytes(kernel.image)
    archive.write_bytes(initramfs.archive())
    output.write_text("")
    files = ["-kernel", image, "-initrd", archive, "-append", "console=ttyS0 panic=-1"]
    lines = ["-serial", f"file:{place / 'console'}", "-serial", f"file:{output}"]
    begin = time.monotonic()
    try:
        done = subprocess.run(
            [*qemu, *files, *lines], stdin=subprocess.DEVNULL, timeout=LONGEST, check=False
        )
        if done.returncode != 0:
            raise MissingError(f"QEMU ended with {done.returncode}")
    except subprocess.TimeoutExpired:
        pass  # tests without a result count as failed
    archive.unlink()
    took = time.monotonic() - begin
    return Outcome(kernel.release, output.read_text(errors="replace").replace("\r", ""), took)


def show(outcome: Outcome) -> None:
    cells = []
    for module in COLUMNS:
        passed, failed, skipped = (
            sum(name.startswith(f"{module}::") for name in names)
            for names in (outcome.passed, outcome.failed, outcome.skipped)
        )
        cell = "yes" if passed and not failed else "no" if failed else "-"
        counted = f" ({passed}" + (f", {failed} failed" if failed else "")
        counted += f", {skipped} skipped)" if skipped else ")"
        cells.append(cell + (counted if passed or failed else ""))
    line(outcome.release, *cells, f"{outcome.seconds:.0f}")
    if outcome.refused:
        print(f"  {outcome.refused}", flush=True)
    for note in outcome.noted:
        print(f"  noted: {note}", flush=True)
    for name in sorted(outcome.failed):
        print(f"  failed: {name} (target/guests/{outcome.release}/said)", flush=True)


def line(*cells: str) -> None:
    print(f"{cells[0]:<29}" + "".join(f" {cell:<22}" for cell in cells[1:]).rstrip(), flush=True)


if __name__ == "__main__":
    sys.exit(main())

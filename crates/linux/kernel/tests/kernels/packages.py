"""Kernels of Debian and Ubuntu, downloaded from their archives by apt.

Apt works in a directory of its own: nothing is installed, and the machine's apt is not affected.
"""

from __future__ import annotations

import io
import lzma
import re
import shutil
import subprocess
import tarfile
import time
from dataclasses import dataclass
from pathlib import Path

DEBIAN, UBUNTU = "http://deb.debian.org/debian", "http://archive.ubuntu.com/ubuntu"
#: Backports keep earlier packages: the only source of kernels between releases.
DEBIAN_SUITES = ("bullseye", "bookworm", "bookworm-backports", "trixie", "trixie-backports")
UBUNTU_SUITES = ("jammy-updates", "noble-updates")
DEBIAN_KEYS = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
#: Debian's package of Ubuntu's keys, and the file in it.
UBUNTU_KEYS = ("ubuntu-keyring", "ubuntu-archive-keyring.gpg")
#: Smallest sufficient flavours: Debian's for virtual machines, Ubuntu's only one.
IMAGES = (
    r"linux-image-((\d+)\.(\d+)\.[\d.]+\S*-cloud-amd64)",
    r"linux-image-unsigned-((\d+)\.(\d+)\.[\d.]+-\d+-generic)",
)
DAY_S = 24 * 3600
#: Modules that the tests need, also those of classifiers before 6.6. Their dependencies are read
#: from them.
MODULES = ("tun", "sch_ingress", "cls_bpf")


class MissingError(Exception):
    """A requirement that the machine lacks."""


@dataclass(frozen=True)
class Kernel:
    release: str
    image: bytes
    #: Modules by name, in the order of loading.
    modules: dict[str, bytes]


class Archives:
    def __init__(self, root: Path) -> None:
        for tool in ("apt-get", "apt-cache", "dpkg-deb"):
            if shutil.which(tool) is None:
                raise MissingError(f"{tool} is missing: kernels come from Debian and Ubuntu by apt")
        if not DEBIAN_KEYS.exists():
            raise MissingError("Debian's keys are missing; apt install debian-archive-keyring")
        self.root = root
        self.packages = root / "packages"
        for folder in ("state/lists/partial", "cache/archives/partial", "etc/apt", "packages"):
            (root / folder).mkdir(parents=True, exist_ok=True)
        debian = sources(DEBIAN, DEBIAN_SUITES, DEBIAN_KEYS)
        keys = root / UBUNTU_KEYS[1]
        if not keys.exists():
            self.update(debian)
            keys.write_bytes(contents(self.file(UBUNTU_KEYS[0]), UBUNTU_KEYS[1])[UBUNTU_KEYS[1]])
        self.update(debian + sources(UBUNTU, UBUNTU_SUITES, keys))
        self.names = set(self.apt("apt-cache", "pkgnames", "linux-").split())

    def update(self, lines: str) -> None:
        """Updates the package lists, at most once a day for the same sources."""
        place = self.root / "etc/apt/sources.list"
        asked = self.root / "asked"
        known = asked.exists() and place.exists() and place.read_text() == lines
        if known and time.time() - asked.stat().st_mtime < DAY_S:
            return
        place.write_text(lines)
        self.apt("apt-get", "update")
        asked.touch()

    def apt(self, tool: str, *arguments: str) -> str:
        options = {
            "Dir": self.root,
            "Dir::State": self.root / "state",
            "Dir::State::status": "/dev/null",
            "Dir::Cache": self.root / "cache",
            "Dir::Etc": self.root / "etc/apt",
            "APT::Architecture": "amd64",
            # The directory belongs to this user, so apt need not switch to another.
            "APT::Sandbox::User": "",
            # Metadata for software centres.
            "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled": "false",
            "Acquire::Languages": "none",
        }
        command = [tool, "-qq", *(f"-o{key}={value}" for key, value in options.items()), *arguments]
        done = subprocess.run(
            command, cwd=self.packages, capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            raise MissingError(f"{tool} {' '.join(arguments)}: {done.stderr.strip()}")
        return done.stdout

    def file(self, package: str) -> Path:
        have = list(self.packages.glob(f"{package}_*.deb"))
        if not have:
            self.apt("apt-get", "download", package)
            have = list(self.packages.glob(f"{package}_*.deb"))
        return have[0]

    def releases(self) -> dict[str, str]:
        """Returns the latest release of each version (`6.12`), as in uname; Debian's preferred."""
        latest: dict[str, tuple[list[int], str]] = {}
        for image in IMAGES:
            these: dict[str, tuple[list[int], str]] = {}
            for found in filter(None, (re.fullmatch(image, name) for name in self.names)):
                release, major, minor = found.groups()
                # The archive may have kept only some packages of a release.
                modules_apart = f"linux-binary-{release}" in self.names
                if modules_apart and f"linux-modules-{release}" not in self.names:
                    continue
                order = [int(part) for part in re.findall(r"\d+", release)]
                version = f"{major}.{minor}"
                these[version] = max(these.get(version, ([], "")), (order, release))
            latest = these | latest
        ordered = sorted(latest.items(), key=lambda one: one[1][0])
        return {version: release for version, (_, release) in ordered}

    def kernel(self, release: str, *more: str) -> Kernel:
        """Downloads a kernel with MODULES and these modules."""
        # Debian's images contain their modules up to 7.0; Ubuntu's never do.
        parts = ("image", "image-unsigned", "binary", "modules")
        names = {f"linux-{part}-{release}" for part in parts} & self.names
        if f"linux-image-unsigned-{release}" in names:
            names.discard(f"linux-image-{release}")
        files: dict[str, bytes] = {}
        for name in sorted(names):
            files |= contents(self.file(name), "vmlinuz", ".ko")
        return from_files(release, files, (*MODULES, *more))


def sources(archive: str, suites: tuple[str, ...], keys: Path) -> str:
    return "".join(f"deb [signed-by={keys}] {archive} {suite} main\n" for suite in suites)


def contents(package: Path, *wanted: str) -> dict[str, bytes]:
    """Returns the files of a package whose names contain one of `wanted`."""
    tar = subprocess.run(
        ["dpkg-deb", "--fsys-tarfile", package], capture_output=True, check=True
    ).stdout
    kept = {}
    with tarfile.open(fileobj=io.BytesIO(tar)) as files:
        for member in files:
            name = Path(member.name).name
            file = files.extractfile(member) if any(part in name for part in wanted) else None
            if file is not None and member.isfile():
                kept[name] = file.read()
    return kept


def from_files(release: str, files: dict[str, bytes], wanted: tuple[str, ...]) -> Kernel:
    images = [content for name, content in files.items() if name.startswith("vmlinuz")]
    if not images:
        raise MissingError(f"no kernel in the packages of {release}")
    packed = {file.split(".ko")[0].replace("-", "_"): file for file in files if ".ko" in file}
    modules: dict[str, bytes] = {}

    def add(name: str) -> None:
        if name in modules or name not in packed:
            return  # added already, or built into the kernel
        content = unpacked(packed[name], files[packed[name]])
        needs = re.search(rb"\0depends=([^\0]*)\0", content)
        for other in needs[1].decode().split(",") if needs else ():
            add(other.replace("-", "_"))
        modules[name] = content

    for name in wanted:
        add(name)
    return Kernel(release, images[0], modules)


def unpacked(name: str, content: bytes) -> bytes:
    match name.rsplit(".", 1)[-1]:
        case "xz":
            return lzma.decompress(content)
        case "zst":
            return subprocess.run(
                ["zstd", "-dc"], input=content, capture_output=True, check=True
            ).stdout
        case _:
            return content

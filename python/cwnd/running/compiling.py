"""Controllers in C: their files, and objects compiled from them.

A scenario has the text of a source file with the headers of its folder below it, each under a line
with its name. It is compiled with these and cwnd's own headers alone, as the user who runs it: for
the simulator, or for the kernel.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cwnd import _core
from cwnd.errors import CodeError, MachineError, explain
from cwnd.machine import code_user

if TYPE_CHECKING:
    from collections.abc import Iterable

#: End of the names of source files in C.
_SOURCE = ".c"
#: Line above a header, with its name.
_HEADER = re.compile(r'^// cwnd: file "([^"\n]+)"\n', re.MULTILINE)
#: Header that the compiler does not find, with the place that names it.
_NOT_FOUND = re.compile(
    r"^(\S+:\d+):\d+: fatal error: '?(.+?)'?(?:: No such file or directory| file not found)$",
    re.MULTILINE,
)
#: Folder of cwnd's headers, and of the kernel that it models around a controller.
FOLDER = Path(__file__).parent.parent / "c"
#: Folder of the headers that stand for libbpf's in the simulator.
_HOST = FOLDER / "host"
#: Parts of that kernel.
_KERNEL = ("linux.c", "kernel.c")
#: File that includes the user's, and lists its variables.
_MAIN = "cwnd_main.c"
#: Collects the tables of a file.
_SCRIPT = "tables.ld"
#: Compilers, of which the first that is installed is used.
_COMPILERS = ("cc", "gcc", "clang")
#: The language of the kernel; only the folders below are searched for headers.
OPTIONS = [
    *("-std=gnu11", "-O2", "-fPIC", "-fno-strict-aliasing", "-fwrapv", "-nostdinc", "-I."),
    *("-Wall", "-Wno-unused", "-Wno-unknown-pragmas", "-Werror=implicit-function-declaration"),
    "-fdiagnostics-color=never",
]
#: The same for the kernel; BPF of version 3 is that of the kernel's own tests.
_KERNEL_OPTIONS = [
    *("-target", "bpf", "-mcpu=v3", "-g", "-std=gnu11", "-O2", "-nostdinc", "-I."),
    *("-Wall", "-Wno-unused", "-Wno-unknown-pragmas", "-Werror=implicit-function-declaration"),
    *("-fno-color-diagnostics", "-fdebug-compilation-dir=."),
]
#: Folder of libbpf's headers.
_LIBBPF = Path("/usr/include/bpf")
#: Names of what compiler or linker do not find, as GNU's and LLVM's report it.
_MISSING = re.compile(
    r"(?:undefined reference to|undefined symbol:|implicit declaration of function"
    r"|call to undeclared function) [`'\"]?(\w+)"
)
#: Attributes of a declaration, such as those of `SEC`.
_ATTRIBUTES = re.compile(r"__attribute__\s*\(\((?:[^()]|\([^()]*\))*\)\)")
#: Types of whole numbers.
_WHOLE = (
    r"(?:(?:__)?[us](?:8|16|32|64)|u?int(?:8|16|32|64)_t|bool|_Bool"
    r"|(?:(?:unsigned|signed|char|short|int|long)\b\s*)+)"
)
#: Declaration of constants that their loader may set, after preprocessing: type and names.
_CONSTANT = re.compile(
    rf"^\s*(?:static\s+)?(?:const\s+volatile|volatile\s+const)\s+"
    rf"(struct\s+\w+|{_WHOLE})\s*\b([^;]*);",
    re.MULTILINE,
)
#: One of the names of a declaration, with its value.
_DECLARED = re.compile(r"\s*(\w+)\s*(?:=.*)?", re.DOTALL)
#: Members of a structure that are whole numbers.
_MEMBERS = re.compile(rf"(?:^|[;{{}}])\s*{_WHOLE}\s*\b(\w+(?:\s*,\s*\w+)*)\s*(?=;)")
#: Section, and name, of a program that is no operation of a controller.
_PROGRAM = re.compile(
    r'\bsection\("(?!\.|license"|version"|\??struct_ops)([^"]+)"\), used\)\)([^;={(]*)\('
)
#: Characters of the name of a header, which is below that.
_LONGEST_NAME = 200
#: Lines of a compiler's messages that an error shows.
_SHOWN_LINES = 12
#: Age from which a copy is no longer in use, in seconds.
_LONGEST_COMPILATION_S = 3600
#: Bits of a folder's mode with which others may write into it.
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def files(name: str, text: str) -> dict[str, str]:
    """Splits the text of a source file into the files that it came from, by name.

    Raises:
        CodeError: The text claims to have a header from outside of the file's folder.
    """
    if not name.endswith(_SOURCE):
        return {name: text}
    folder = name[: name.rfind("/") + 1]
    first, *rest = _HEADER.split(text)
    headers = dict(zip(rest[::2], rest[1::2], strict=True))
    if not all(map(_is_inside, headers)):
        raise CodeError(f"{name} has a header from outside of its folder")
    return {name: first} | {folder + header: text for header, text in headers.items()}


def _is_inside(header: str) -> bool:
    """`True` for the name of a header in a file's folder."""
    parts = header.split("/")
    return header.endswith(".h") and len(header) < _LONGEST_NAME and not {"", ".", ".."} & {*parts}


def private_object(name: str, text: str) -> Path:
    """Compiles a source file, unless that was done before; returns a copy for a single use.

    Raises:
        CodeError: It does not compile, or needs what cwnd does not have.
    """
    made = _compiled(name, text)
    return private_copy(made.read_bytes())


def private_copy(content: bytes) -> Path:
    """Writes a compiled object into a file of its own, for a single use."""
    handle, copy = tempfile.mkstemp(suffix=".so", dir=_cache_folder())
    with os.fdopen(handle, "wb") as file:
        file.write(content)
    return Path(copy)


@cache
def kernel_object(name: str, text: str) -> str:
    """Compiles a source file for the kernel; returns the path of the object.

    The path is that of a file in memory, for programs that this process becomes or starts. The
    compiler never has root's rights. It reads copies of the files and writes into a pipe.

    Raises:
        MachineError: The compiler or libbpf's headers are missing.
        CodeError: The code does not compile.
    """
    if sys.platform != "linux":
        raise CodeError(f"{name}: controllers in C run on Linux only")
    clang = shutil.which("clang")
    if clang is None or not (_LIBBPF / "bpf_helpers.h").exists():
        raise MachineError(f"{name} needs clang and libbpf's headers: apt install clang libbpf-dev")
    found = files(name, text)
    with tempfile.TemporaryDirectory(prefix="cwnd-") as directory:
        provided = Path(directory, "provided")
        provided.mkdir()
        for header in (FOLDER / "vmlinux.h", _HOST / "errno.h"):
            shutil.copyfile(header, provided / header.name)
        (provided / "bpf").symlink_to(_LIBBPF)
        written = Path(directory, "source")
        _write(found, name, written)
        for path in (Path(directory), *Path(directory).rglob("*")):
            if not path.is_symlink():
                path.chmod(0o755 if path.is_dir() else 0o644)
        options, main = [clang, *_KERNEL_OPTIONS, f"-I{provided}"], f"./{Path(name).name}"
        for what in (["-M", "-MT", "x", main], ["-c", main, "-o", "-"]):
            done = _run_unprivileged([*options, *what], written)
            messages = done.stderr.decode(errors="replace").replace(f"{provided}/", "")
            if done.returncode:
                _check_found(messages)
                raise CodeError(f"{name} does not compile for the kernel:\n{_shown(messages)}")
            if "-M" in what:
                _check_headers(os.fsdecode(done.stdout), written, (provided, _LIBBPF), name)
    handle = os.memfd_create(Path(name).name)
    os.set_inheritable(handle, True)
    with os.fdopen(handle, "wb", closefd=False) as file:
        file.write(done.stdout)
    return f"/proc/self/fd/{handle}"


def _run_unprivileged(command: list[str], folder: Path) -> subprocess.CompletedProcess[bytes]:
    """Runs a command as the user of code, without capabilities."""
    person = code_user()
    rights: dict[str, Any] = {}
    if person is not None:
        rights = {"user": person.pw_uid, "group": person.pw_gid, "extra_groups": ()}

    def run() -> subprocess.CompletedProcess[bytes]:
        if person is None:
            _core.give_up_capabilities()
        return subprocess.run(  # noqa: S603 - the compiler, with options of ours
            command, cwd=folder, capture_output=True, check=False,
            env={"LC_ALL": "C", "PATH": os.environ.get("PATH", "")}, **rights,
        )  # fmt: skip

    try:
        # Capabilities are a thread's.
        with ThreadPoolExecutor(1) as threads:
            return threads.submit(run).result()
    except OSError as error:
        why = f"{command[0]} does not run as another user than root: {explain(error)}"
        raise MachineError(why) from error


@cache
def _compiled(name: str, text: str) -> Path:
    if sys.platform != "linux":
        raise CodeError(f"{name}: controllers in C run on Linux only")
    compiler = next((path for path in map(shutil.which, _COMPILERS) if path), None)
    if compiler is None:
        raise CodeError(f"{name} needs a C compiler: apt install gcc")
    found = files(name, text)
    version = _run([compiler, "--version"]).stdout
    hashed = hashlib.sha256(repr((version, OPTIONS, name, text)).encode())
    for content in own_files().values():
        hashed.update(content)
    made = _cache_folder() / f"{hashed.hexdigest()}.so"
    if not made.exists():
        _compile(compiler, found, name, made)
    return made


@cache
def own_files() -> dict[Path, bytes]:
    """Returns cwnd's own files for controllers in C, by their names in `FOLDER`.

    A process reads them before it gives up the rights to.
    """
    paths = [path for path in sorted(FOLDER.rglob("*")) if path.is_file()]
    return {path.relative_to(FOLDER): path.read_bytes() for path in paths}


def _compile(compiler: str, found: dict[str, str], name: str, made: Path) -> None:
    with (
        tempfile.TemporaryDirectory(prefix="cwnd-") as directory,
        tempfile.TemporaryDirectory(prefix="cwnd-") as beside,
    ):
        _write(found, name, Path(directory))
        ours = Path(beside)
        for path, content in own_files().items():
            (ours / path).parent.mkdir(parents=True, exist_ok=True)
            (ours / path).write_bytes(content)
        headers = [f"-I{ours}", f"-I{ours / _HOST.name}"]
        main = Path(name).name
        read = ["-E", "-P", "-MD", "-MF", "read", "-MT", "x", f"./{main}"]
        done = _run([compiler, *OPTIONS, *headers, *read], directory)
        _check(done, f"{name} does not compile")
        rule = Path(directory, "read").read_text()
        _check_headers(rule, Path(directory), (ours,), name)
        _check_programs(done.stdout, name)
        Path(directory, _MAIN).write_text(f'#include "{main}"\n{_listed(done.stdout)}')
        objects = []
        for source in (_MAIN, *(str(ours / part) for part in _KERNEL)):
            objects.append(f"{Path(source).name}.o")
            command = [compiler, *OPTIONS, *headers, "-c", source, "-o", objects[-1]]
            done = _run(command, directory)
            _check(done, f"{name} does not compile")
        linked = ["-shared", "-Wl,-z,defs,-z,separate-code", "-Wl,-Bsymbolic"]
        linked += [f"-Wl,-T,{ours / _SCRIPT}", "-o", "made.so"]
        done = _run([compiler, *objects, *linked], directory)
        _check(done, f"{name} can't be linked")
        # Another process may compile the same text at the same time.
        handle, partial = tempfile.mkstemp(suffix=".part", dir=made.parent)
        os.close(handle)
        shutil.copyfile(Path(directory, "made.so"), partial)
        Path(partial).replace(made)


def _write(found: dict[str, str], name: str, directory: Path) -> None:
    """Writes a source file and the headers of its folder into a directory."""
    folder = Path(name).parent
    for file, text in found.items():
        path = Path(directory, *Path(file).relative_to(folder).parts)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def _listed(text: str) -> str:
    """Returns C that lists the variables of a preprocessed file whose values a scenario may set."""
    places: dict[str, str] = {}
    outside = _ATTRIBUTES.sub("", _without_blocks(text))
    for kind, declared in _CONSTANT.findall(outside):
        found = (_DECLARED.fullmatch(each) for each in declared.split(","))
        for name in (each[1] for each in found if each):
            if not kind.startswith("struct"):
                places[name] = name
                continue
            body = re.search(rf"\b{re.escape(kind)}\s*\{{", text)
            members = _MEMBERS.findall(_without_blocks(text[body.end() :])) if body else []
            for member in re.findall(r"\w+", " ".join(members)):
                places[member] = f"{name}.{member}"
    rows = "".join(
        f'\t{{ "{name}", (void *)&{place}, sizeof({place}), (typeof({place}))-1 < 1 }},\n'
        for name, place in places.items()
    )
    return (
        "const struct cwnd_variable { const char *name; void *at; unsigned int size; _Bool is; }\n"
        f"cwnd_variables[] = {{\n{rows}\t{{ 0 }},\n}};\n"
    )


def _without_blocks(text: str) -> str:
    """Returns a text to the end of the block that it begins in, without what is in blocks of it."""
    depth, kept = 0, []
    for part in re.split(r"([{}])", text):
        depth -= part == "}"
        if depth < 0:
            break
        if depth == 0:
            kept.append(part)
        depth += part == "{"
    return "".join(kept)


def _check_programs(text: str, name: str) -> None:
    """Refuses a preprocessed file that has programs besides the operations of controllers."""
    if found := _PROGRAM.search(text):
        section, declared = found.groups()
        raise CodeError(
            f"{name}: `{declared.split()[-1].lstrip('*')}` in section `{section}` is no operation"
            " of a `tcp_congestion_ops`: no packets, headers or sockets reach other programs in the"
            " simulator"
        )


def _check(done: subprocess.CompletedProcess[str], failed: str) -> None:
    """Refuses code that a compiler or linker refuses."""
    if done.returncode == 0:
        return
    _check_found(done.stderr)
    missing = list(dict.fromkeys(_MISSING.findall(done.stderr)))
    if missing:
        names = ", ".join(f"`{symbol}`" for symbol in missing)
        raise CodeError(f"{failed}: cwnd has no {names}")
    raise CodeError(f"{failed}:\n{_shown(done.stderr)}")


def _check_found(messages: str) -> None:
    """Refuses a header that the compiler does not find."""
    if header := _NOT_FOUND.search(messages):
        raise CodeError(f"{header[1].removeprefix('./')}: `{header[2]}` {_NO_HEADER}")


def _check_headers(rule: str, directory: Path, ours: Iterable[Path], name: str) -> None:
    """Refuses a file that reads others than those of its folder and cwnd's own, by a make rule."""
    folders = [folder.resolve() for folder in (directory, *ours)]
    words = rule.partition(":")[2].replace("\\\n", " ")
    for word in re.findall(r"(?:\\ |\S)+", words):
        header = (directory / word.replace("\\ ", " ")).resolve()
        if not any(map(header.is_relative_to, folders)):
            raise CodeError(f"{name}: `{header}` {_NO_HEADER}")


#: End of the error about a header that a file may not include.
_NO_HEADER = (
    "is no header in its folder, and none of cwnd's: vmlinux.h, errno.h, bpf/bpf_helpers.h,"
    " bpf/bpf_tracing.h, bpf/bpf_core_read.h"
)


def _shown(messages: str) -> str:
    lines = messages.strip().splitlines()
    more = ["…"] if len(lines) > _SHOWN_LINES else []
    return "\n".join(lines[:_SHOWN_LINES] + more)


#: Variables with which compilers search other folders.
_SEARCHED = ("CPATH", "C_INCLUDE_PATH", "COMPILER_PATH", "GCC_EXEC_PREFIX", "LIBRARY_PATH")


def _run(command: list[str], directory: str | None = None) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if name not in _SEARCHED}
    return subprocess.run(  # noqa: S603 - the compiler, with options of ours
        command, cwd=directory, capture_output=True, text=True, check=False,
        env=kept | {"LC_ALL": "C"},
    )  # fmt: skip


@cache
def _cache_folder() -> Path:
    """Folder of compiled objects: in the user's folder of caches, or in that of temporary files."""
    import pwd  # not on all systems

    user = os.geteuid()
    folders = [Path(tempfile.gettempdir(), f"cwnd-{user}")]
    with suppress(KeyError):  # a user without a name
        home = pwd.getpwuid(user).pw_dir
        # With sudo, the variables are those of root.
        is_own = os.environ.get("HOME") == home
        own = os.environ.get("XDG_CACHE_HOME") if is_own else None
        folders.insert(0, Path(own or Path(home, ".cache"), "cwnd"))
    for folder in folders:
        with suppress(OSError):
            folder.parent.mkdir(parents=True, exist_ok=True)
            folder.mkdir(mode=0o700, exist_ok=True)
            (folder / "c").mkdir(mode=0o700, exist_ok=True)
            # Whoever can write there can run code as this user.
            if all(_is_private(each, user) for each in (folder, folder / "c")):
                _remove_old_copies(folder / "c")
                return folder / "c"
    raise CodeError(
        f"compiled code needs a folder of one's own: neither {' nor '.join(map(str, folders))} is"
    )


def _is_private(folder: Path, user: int) -> bool:
    about = folder.lstat()
    return (
        stat.S_ISDIR(about.st_mode) and about.st_uid == user and not about.st_mode & _OTHERS_WRITE
    )


def _remove_old_copies(folder: Path) -> None:
    """Removes copies that no run has loaded."""
    for copy in folder.glob("tmp*"):
        with suppress(OSError):
            if copy.stat().st_mtime < time.time() - _LONGEST_COMPILATION_S:
                copy.unlink()

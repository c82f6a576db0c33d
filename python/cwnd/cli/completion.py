"""Command `cwnd completion`: completion of commands and options by the shell."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from cwnd import cli
from cwnd.cli import output
from cwnd.errors import InputError


def completion(
    *,
    shell: Literal["bash", "zsh", "fish", "powershell"] | None = None,
    output_file: Annotated[Path | None, Parameter(name=["--output", "-o"])] = None,
) -> None:
    """Install completion for a shell: bash, zsh, fish or PowerShell.

    The script goes where the shell looks for it, and a line that loads it into the shell's start
    file. With --output it is written there, and nothing else is changed.

    Args:
        shell: The shell; the calling one if not given.
        output_file: File for the script.
    """
    from cyclopts.completion.detect import ShellDetectionError

    try:
        if output_file is not None:
            script = cli.app.generate_completion(shell=shell)
            output_file.write_text(script, encoding="utf-8")
            written = output_file
        else:
            written = cli.app.install_completion(shell=shell, add_to_startup=True)
    except ShellDetectionError as error:
        raise InputError("the shell is not known: say which, with --shell bash") from error
    output.line(str(written))

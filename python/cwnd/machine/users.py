"""User of POSIX on whose behalf this process has root's rights."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from cwnd.errors import InputError, MachineError

if TYPE_CHECKING:
    import pwd

#: Variables in which sudo, pkexec and doas name the calling user.
_CALLERS = ("SUDO_UID", "PKEXEC_UID", "DOAS_USER")
#: User of the code of a scenario that root itself runs.
_NOBODY = "nobody"


def is_root() -> bool:
    """`True` if this process has the user id of root, which Windows does not know."""
    return hasattr(os, "geteuid") and os.geteuid() == 0


def calling_user() -> pwd.struct_passwd | None:
    """Returns the user who called sudo, pkexec or doas; `None` without one other than root.

    Raises:
        InputError: There is no such user.
    """
    for variable in _CALLERS:
        name = os.environ.get(variable)
        if not name:
            continue
        try:
            caller = user_named(name)
        except KeyError:
            raise InputError(f"{variable} is {name}: there is no such user") from None
        if caller.pw_uid != 0:
            return caller
    return None


def user_named(name: str) -> pwd.struct_passwd:
    """Finds a user by name or number.

    Raises:
        KeyError: There is no such user.
    """
    import pwd

    is_number = name.isascii() and name.isdecimal()
    return pwd.getpwuid(int(name)) if is_number else pwd.getpwnam(name)


def code_user() -> pwd.struct_passwd | None:
    """Returns the user whose rights the code of scenarios has; `None` keeps this process's.

    Raises:
        MachineError: This process is root's, and there is no other user.
    """
    if not is_root():
        return None
    try:
        return calling_user() or user_named(_NOBODY)
    except KeyError:
        raise MachineError(
            f"code of a scenario does not run as root, and there is no user `{_NOBODY}`:"
            " run cwnd as another user"
        ) from None

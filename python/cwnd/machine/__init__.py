"""Properties of this machine, missing requirements, and the path of `cwnd-kernel`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cwnd.lazy import lazy_exports

if TYPE_CHECKING:
    from cwnd.machine.doctor import PURPOSES, Check, examine, missing
    from cwnd.machine.facts import (
        KERNEL_HELPER,
        cpu_time_s,
        kernel_helper,
        machine,
        require_linux,
        usable_cores,
    )
    from cwnd.machine.users import calling_user, code_user, is_root, user_named

__all__ = [
    "KERNEL_HELPER",
    "PURPOSES",
    "Check",
    "calling_user",
    "code_user",
    "cpu_time_s",
    "examine",
    "is_root",
    "kernel_helper",
    "machine",
    "missing",
    "require_linux",
    "usable_cores",
    "user_named",
]

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "doctor": "Check PURPOSES examine missing",
        "facts": "machine cpu_time_s require_linux usable_cores KERNEL_HELPER kernel_helper",
        "users": "calling_user code_user is_root user_named",
    },
)

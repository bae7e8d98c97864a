"""Waits for a mapped word to change, and wakes who waits, across processes: Linux's futex(2).

The standard library has no call for it. Elsewhere, and on other processors, nobody can be woken:
there `can_wake()` is false, and who waits has to look.
"""

from __future__ import annotations

import ctypes
import platform
import sys
from functools import cache

_SYSCALLS = {"x86_64": 202, "aarch64": 98}
_WAIT, _WAKE = 0, 1
_EVERYBODY = 2**31 - 1


class _Timespec(ctypes.Structure):
    _fields_ = (("s", ctypes.c_long), ("ns", ctypes.c_long))


@cache
def can_wake() -> bool:
    """Return whether this system has the call."""
    return sys.platform == "linux" and platform.machine() in _SYSCALLS


def wait(address: int, seen: int, timeout_s: float) -> None:
    """Return when woken, when the word is not `seen`, or when the time is over.

    address: of an aligned uint32 in a shared mapping. A change between reading `seen` and this call
    is not missed: the kernel compares the word before it sleeps.
    """
    whole_s = int(timeout_s)
    timeout = _Timespec(whole_s, int((timeout_s - whole_s) * 1e9))
    _call(address, _WAIT, seen, ctypes.byref(timeout))


def wake(address: int) -> None:
    """Wake everybody who waits for the word."""
    _call(address, _WAKE, _EVERYBODY, None)


def _call(address: int, operation: int, value: int, timeout: object) -> None:
    _libc().syscall(
        ctypes.c_long(_SYSCALLS[platform.machine()]),
        ctypes.c_void_p(address),
        ctypes.c_int(operation),
        ctypes.c_uint32(value),
        timeout,
        None,
        ctypes.c_uint32(0),
    )


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None)

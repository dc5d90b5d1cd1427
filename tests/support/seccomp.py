"""A seccomp filter that refuses some system calls, as old kernels and strict containers do.

`seccomp.py EPERM pidfd_open,memfd_create -- command` runs a command under it; what comes from it is under it, too.
"""

import ctypes
import errno
import os
import platform
import struct
import sys

NUMBERS = {
    "x86_64": {
        "pidfd_open": 434,
        "memfd_create": 319,
        "tgkill": 234,
        "perf_event_open": 298,
        "process_vm_readv": 310,
        "prctl": 157,
        "inotify_init1": 294,
        "eventfd2": 290,
    },
    "aarch64": {
        "pidfd_open": 434,
        "memfd_create": 279,
        "tgkill": 131,
        "perf_event_open": 241,
        "process_vm_readv": 270,
        "prctl": 167,
        "inotify_init1": 26,
        "eventfd2": 19,
    },
}
ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
PR_SET_CHILD_SUBREAPER = 36
LOAD, EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, REFUSE = 0x7FFF0000, 0x00050000
NUMBER, ARCHITECTURE, FIRST_ARGUMENT = 0, 4, 16
INSTRUCTION = struct.Struct("HBBI")


class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("code", ctypes.c_char_p)]


def is_known():
    return sys.platform == "linux" and platform.machine() in NUMBERS


def refuse(error, calls):
    """From now on these calls fail with this error in this process and all that comes from it. Of `prctl` only the wish
    to become the parent of orphans is refused."""
    code = program(getattr(errno, error), calls)
    library = ctypes.CDLL(None, use_errno=True)
    filtered = Program(len(code) // INSTRUCTION.size, code)
    if library.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or library.prctl(
        PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(filtered), 0, 0
    ):
        raise OSError(ctypes.get_errno(), "this system takes no seccomp filter")


def program(number, calls):
    """The filter: allow what is of another architecture, refuse the calls, allow the rest."""
    machine = platform.machine()
    code = [
        (LOAD, 0, 0, ARCHITECTURE),
        (EQUAL, 1, 0, ARCHITECTURES[machine]),
        (RETURN, 0, 0, ALLOW),
        (LOAD, 0, 0, NUMBER),
    ]
    for call in calls:
        if call == "prctl":
            code += [
                (EQUAL, 0, 4, NUMBERS[machine][call]),
                (LOAD, 0, 0, FIRST_ARGUMENT),
                (EQUAL, 0, 1, PR_SET_CHILD_SUBREAPER),
                (RETURN, 0, 0, REFUSE | number),
                (LOAD, 0, 0, NUMBER),
            ]
        else:
            code += [(EQUAL, 0, 1, NUMBERS[machine][call]), (RETURN, 0, 0, REFUSE | number)]
    code.append((RETURN, 0, 0, ALLOW))
    return b"".join(INSTRUCTION.pack(*instruction) for instruction in code)


if __name__ == "__main__":
    refuse(sys.argv[1], sys.argv[2].split(","))
    os.execvp(sys.argv[4], sys.argv[4:])

"""Becoming the command: as a shell starts one, and with the same exit codes where that fails."""

import errno
import os
import shutil
from pathlib import Path

NOT_EXECUTABLE, NOT_FOUND = 126, 127
SHELL = "/bin/sh"
BEGINNING = 256
OWN_ENVIRONMENT = Path("/proc/self/environ")


class CannotStart(Exception):
    """The command cannot be executed; the text says why, `exit_code` is a shell's."""

    def __init__(self, name, number):
        self.exit_code = NOT_FOUND if number == errno.ENOENT else NOT_EXECUTABLE
        if number == errno.ENOENT and shutil.which(name) is None:
            sentence = f"there is no command {name!r}; check its name and the PATH"
        elif number == errno.ENOENT:
            sentence = f"{name!r} cannot be executed: the interpreter that its first line names is not there"
        elif os.path.isdir(name):
            sentence = f"{name!r} cannot be executed: it is a folder"
        elif number == errno.EACCES:
            sentence = f"{name!r} may not be executed; `chmod +x` it, or name the program that runs it"
        else:
            sentence = f"{name!r} cannot be executed: {os.strerror(number)}"
        super().__init__(sentence)


def execute(words, variables):
    """Become the command; where that is impossible, an OSError. A script whose first line names no interpreter
    is run by the shell, as a shell does."""
    environment = {**_environment(), **variables}
    try:
        os.execvpe(words[0], words, environment)
    except OSError as error:
        path = words[0] if os.sep in words[0] else shutil.which(words[0])
        if error.errno != errno.ENOEXEC or not _is_text(path):
            raise
        os.execve(SHELL, [SHELL, path, *words[1:]], environment)


def _environment():
    """Ours, without the locale that Python sets for itself and its children where there is none."""
    environment = dict(os.environ)
    try:
        before = OWN_ENVIRONMENT.read_bytes()
    except OSError:
        return environment
    if not any(entry.startswith(b"LC_CTYPE=") for entry in before.split(b"\0")):
        environment.pop("LC_CTYPE", None)
    return environment


def _is_text(path):
    with open(path, "rb") as file:
        return b"\0" not in file.read(BEGINNING).partition(b"\n")[0]

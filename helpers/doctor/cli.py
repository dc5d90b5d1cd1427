"""The doctor on the command line: a log, standard input, or a command that is run and watched."""

import sys

from helpers.units import parse_bytes

EXAMPLES = "`doctor train.log`, `doctor -` or `doctor -- python train.py`"


def add_arguments(parser):
    """The arguments of `python -m helpers doctor`."""
    parser.usage = "python -m helpers doctor [options] (train.log | - | -- COMMAND ...)"
    parser.add_argument("--ram", metavar="SIZE", help='put the command on a RAM budget, such as "2 GB"')
    parser.add_argument(
        "--vram", metavar="SIZE", help="put TensorFlow in the command on a virtual GPU of this size"
    )
    parser.add_argument("--exit-code", type=int, metavar="N", help="the exit code that goes with the log")
    parser.add_argument("--report", default=".", metavar="FOLDER", help="where the report on a command goes")
    parser.add_argument("words", nargs="...", help="a log, - for standard input, or -- and a command")


def command(arguments):
    """Diagnose what the arguments name; returns the exit code, which for a command is its own."""
    words = arguments.words
    if not words:
        raise ValueError(f"name a log or a command: {EXAMPLES}")
    if words[0] == "--":
        return _watch(words[1:], arguments)
    if len(words) > 1:
        raise ValueError(f"options come first, one log at a time, and a command after --: {EXAMPLES}")
    print(_read(words[0], arguments.exit_code))
    return 0


def _read(name, exit_code):
    # here, since the rules take longer to load than a command should wait
    from helpers.doctor.diagnosis import diagnose_file, diagnose_stream

    if name == "-":
        return diagnose_stream(sys.stdin.buffer, exit_code)
    return diagnose_file(name, exit_code)


def _watch(words, arguments):
    """Run a command and pass on its output and exit code; if it dies, write the report and say where."""
    if not words:
        raise ValueError("name the command after --, such as `doctor -- python train.py`")
    try:
        from helpers.doctor.autopsy import Command
        from helpers.doctor.reception import attend
    except ImportError:
        raise OSError(
            "commands are watched on Linux and macOS only; give the doctor the log instead"
        ) from None
    ram, vram = (_budget(arguments, name) for name in ("ram", "vram"))

    def watch(desk):
        command = Command(words, ram, vram, desk=desk)
        watched = command.run()
        if watched and watched.calls_for_a_report:
            _report(watched, arguments.report)
        return command.exit_code

    return attend(watch)


def _budget(arguments, name):
    size = getattr(arguments, name)
    return parse_bytes(size, name=f"--{name}") if size else None


def _report(watched, folder):
    from helpers.doctor import report
    from helpers.doctor.reception import say

    say(report.summary(watched, folder))

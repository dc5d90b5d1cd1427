"""The command line: `python -m helpers COMMAND`."""

import argparse
import importlib
import sys
from typing import NamedTuple


class Command(NamedTuple):
    """A module with `add_arguments(parser)` and `command(arguments)`, which may return an exit code."""

    module: str
    summary: str


COMMANDS = {
    "check": Command("helpers.course.check", "say what this machine has, what is missing and what to do"),
    "data": Command("helpers.course.datasets", "make the data files that the notebooks read"),
    "doctor": Command("helpers.doctor.cli", "say what killed a job: a log, or a command to run and watch"),
    "estimate": Command("helpers.estimator.cli", "predict the peak memory of training a Keras model"),
}


def main(arguments=None):
    """Run one command and return its exit code. Only the module of that command is imported."""
    arguments = sys.argv[1:] if arguments is None else arguments
    chosen = _front_parser().parse_args(arguments[:1])  # the rest is the command's own, a first `--` too
    command = COMMANDS[chosen.command]
    module = importlib.import_module(command.module)
    parser = argparse.ArgumentParser(prog=f"python -m helpers {chosen.command}", description=command.summary)
    module.add_arguments(parser)
    try:
        return module.command(parser.parse_args(arguments[1:])) or 0
    except KeyboardInterrupt:
        print("Stopped.", file=sys.stderr)
        return 130
    except (ImportError, OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1


def _front_parser():
    parser = argparse.ArgumentParser(
        prog="python -m helpers",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="commands:\n"
        + "\n".join(f"  {name:<10} {command.summary}" for name, command in COMMANDS.items()),
    )
    parser.add_argument("command", choices=COMMANDS, metavar="COMMAND", help=f"one of {', '.join(COMMANDS)}")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, metavar="...", help="see COMMAND --help")
    return parser


if __name__ == "__main__":
    sys.exit(main())

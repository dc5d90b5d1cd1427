"""The command `oom-on-purpose`: `python -m helpers`, also where another `helpers` would be found first."""

import sys
from pathlib import Path


def main() -> int:
    """Import the `helpers` beside this file, whatever else is on the path, and run its command line."""
    sys.path.insert(0, str(Path(__file__).resolve().parent))
    from helpers import __main__ as command_line

    # Its rooms are found from now on; what a command imports comes from where it always does.
    sys.path.pop(0)
    return command_line.main()


if __name__ == "__main__":
    sys.exit(main())

"""`python -m benchmarks [NAME ...] [--quick]`: measure, and write the sections of benchmarks/RESULTS.md."""

import argparse
import pkgutil
import platform
import re
import sys
from datetime import date
from pathlib import Path

from benchmarks import in_child, report_of
from helpers import gpu, machine
from helpers.course.datasets.whole import whole_file
from helpers.units import format_bytes

HERE = Path(__file__).parent
RESULTS = HERE / "RESULTS.md"
MARK = "<!-- benchmark: {} -->"
INTRODUCTION = """# Results of the benchmarks

This file is generated: do not edit it, run `make bench` (or `python -m benchmarks`) instead.
Each section is measured in one run and says when, where and with which command. Times differ from
machine to machine; the ratios, taken side by side, differ less.
"""


def main(arguments=None):
    """Measure what was asked for; the exit code is 1 when a benchmark failed (its old section stays)."""
    options = _options(arguments)
    sections, failed = {}, []
    for name in options.names or module_names():
        try:
            section = in_child("spawn", report_of, name, options.quick)
        except RuntimeError as error:
            print(error, file=sys.stderr)
            failed.append(name)
            continue
        if section is not None:
            sections[name] = stamped(section, name, options.quick)
    if options.quick:
        print("\n\n".join(sections.values()))
    elif sections:
        write_results(RESULTS, sections)
        print(f"wrote {RESULTS.relative_to(HERE.parent)}: {', '.join(sections)}", file=sys.stderr)
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return int(bool(failed))


def _options(arguments):
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"one of: {', '.join(module_names())}; or all"
    )
    parser.add_argument(
        "--quick", action="store_true", help="a smoke run: prints the sections, writes nothing"
    )
    options = parser.parse_args(arguments)
    for name in options.names:
        if name not in module_names():
            parser.error(f'no benchmark is called "{name}"; there are {", ".join(module_names())}')
    return options


def module_names():
    """The modules beside this one, `core` first."""
    names = [module.name for module in pkgutil.iter_modules([str(HERE)]) if not module.name.startswith("_")]
    return sorted(names, key=lambda name: (name != "core", name))


def stamped(section, name, quick):
    """A section with the day, the machine and the command beneath its heading."""
    heading, _, text = section.strip().partition("\n")
    command = f"python -m benchmarks {name}" + (" --quick" if quick else "")
    stamp = f"Measured on {date.today()} with `{command}` on {machine_facts()}."
    if quick:
        stamp += " **A smoke run: too short for figures to quote.**"
    return f"{heading}\n\n{stamp}\n\n{text.strip()}".strip()


def machine_facts():
    versions = [f"TensorFlow {machine.version('tensorflow')}", f"Keras {machine.version('keras')}"]
    cards = ", ".join(card.name for card in gpu.gpus()) or "no GPU"
    return (
        f"{machine.cores()} cores, {format_bytes(machine.ram_total())} RAM, {cards}, {platform.system()}, "
        f"Python {platform.python_version()}, {', '.join(versions)}"
    )


def write_results(path, sections):
    """Put the sections into the file in place of those of the same name; the others stay as they are."""
    kept = read_sections(path.read_text(encoding="utf-8")) if path.exists() else {}
    text = assemble({**kept, **sections}).encode()
    with whole_file(path, len(text)) as file:
        file.write(text)


def read_sections(text):
    """{name: section} of a file that `assemble` made."""
    _, *parts = re.split(MARK.format(r"(\w+)"), text)
    return {name: section.strip() for name, section in zip(parts[::2], parts[1::2], strict=True)}


def assemble(sections):
    """The whole file: the introduction with the day and the machine, then the sections, `core` first."""
    written = f"Last written on {date.today()} on {machine_facts()}.\n"
    ordered = sorted(sections.items(), key=lambda item: (item[0] != "core", item[0]))
    parts = [f"{MARK.format(name)}\n{section}\n" for name, section in ordered]
    return "\n".join([INTRODUCTION, written, *parts])


if __name__ == "__main__":
    sys.exit(main())

"""The file of results is put together, and one section replaced, without losing the others."""

import sys
import types

import pytest

import benchmarks
from benchmarks import __main__ as command


@pytest.fixture
def results(tmp_path, monkeypatch):
    """A file of results of its own, and benchmarks that say what they are told to, without a process of their own."""
    monkeypatch.setattr(command, "RESULTS", tmp_path / "benchmarks" / "RESULTS.md")
    monkeypatch.setattr(command, "HERE", tmp_path / "benchmarks")
    monkeypatch.setattr(command, "module_names", lambda: ["core", "doctor", "notes"])
    monkeypatch.setattr(command, "in_child", lambda start, job, *args: job(*args))
    return command.RESULTS


@pytest.fixture
def modules(monkeypatch):
    """Stand-ins for the modules of benchmarks: one that returns its section, one that prints it, one with neither."""
    made = {name: types.ModuleType(f"benchmarks.{name}") for name in ("core", "doctor", "notes")}
    made["core"].report = lambda quick=False: f"## Core\n\nfast{' and quick' if quick else ''}"
    made["doctor"].main = lambda arguments: print("## Doctor\n\nright")
    for module in made.values():
        monkeypatch.setitem(sys.modules, module.__name__, module)
    return made


def test_all_sections_are_written_below_a_head_that_says_the_file_is_generated(results, modules):
    assert command.main([]) == 0
    text = results.read_text()
    head, core, doctor = text.split("<!-- benchmark: ")
    assert "generated: do not edit" in head
    assert "cores" in head
    assert "TensorFlow" in head
    assert core.startswith("core -->\n## Core\n\nMeasured on ")
    assert "`python -m benchmarks core`" in core
    assert core.rstrip().endswith("fast")
    assert doctor.rstrip().endswith("right")
    assert [path.name for path in results.parent.iterdir()] == ["RESULTS.md"]


def test_one_benchmark_replaces_only_its_own_section(results, modules):
    command.main([])
    before = command.read_sections(results.read_text())
    modules["core"].report = lambda: "## Core\n\nfaster"
    assert command.main(["core"]) == 0
    after = command.read_sections(results.read_text())
    assert list(after) == ["core", "doctor"]
    assert after["doctor"] == before["doctor"]
    assert after["core"] == before["core"].replace("fast", "faster")


def test_a_benchmark_that_fails_leaves_its_old_section_and_is_named(results, modules, capsys):
    command.main([])
    before = results.read_text()

    def fail():
        raise RuntimeError("the machine is too small")

    modules["core"].report = fail
    assert command.main([]) == 1
    assert results.read_text() == before
    assert "the machine is too small\n" in capsys.readouterr().err


def test_a_quick_run_prints_and_writes_nothing(results, modules, capsys):
    assert command.main(["core", "--quick"]) == 0
    printed = capsys.readouterr().out
    assert "fast and quick" in printed
    assert "smoke run" in printed
    assert not results.exists()


def test_an_unknown_benchmark_is_named_with_those_that_exist(results, capsys):
    with pytest.raises(SystemExit):
        command.main(["cores"])
    assert 'no benchmark is called "cores"; there are core, doctor' in capsys.readouterr().err


def test_sections_survive_being_assembled_and_read_again():
    sections = {"doctor": "## Doctor\n\n| a | b |", "core": "## Core <!-- a comment -->"}
    assert command.read_sections(command.assemble(sections)) == sections
    assert list(command.read_sections(command.assemble(sections))) == ["core", "doctor"]


def test_core_is_a_benchmark_and_comes_first():
    assert command.module_names()[0] == "core"


def test_a_child_of_the_benchmark_returns_its_result_or_says_that_it_has_none(capfd):
    assert benchmarks.in_child("fork", max, 1, 2) == 2
    with pytest.raises(RuntimeError, match="exit code 3 and no result"):
        benchmarks.in_child("fork", sys.exit, 3)


def test_every_variant_takes_its_turn_at_going_first(capsys):
    order = []
    variants = {name: lambda name=name: order.append(name) for name in "abc"}
    benchmarks.take_turns("letters", variants, rounds=3)
    assert "".join(order) == "abcbcacab"

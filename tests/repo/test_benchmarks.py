"""The file of results is put together, and one section replaced, without losing the others."""

import sys
import types

import pytest

import benchmarks
from benchmarks import __main__ as command
from benchmarks import _streaming_jobs as jobs
from benchmarks import streaming
from helpers import run
from helpers.course.datasets import flights


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


@pytest.fixture(scope="module")
def kinds(tmp_path_factory):
    """A little of each kind of data, with all ways to feed a model from it."""
    effort = streaming.Effort(rows=4_000, images=40, epochs=2, rounds=1)
    return streaming.csv_file(tmp_path_factory.mktemp("rows"), effort), streaming.image_folder(effort)


@pytest.mark.parametrize("number", [0, 1], ids=["csv", "images"])
@pytest.mark.parametrize("place", [0, 1, 2], ids=["RAM", "PyDataset", "tf.data"])
def test_every_way_of_feeding_trains_and_tells_its_speed(kinds, number, place):
    way = list(kinds[number].ways)[place]
    assert kinds[number].run(way, epochs=2, share=2).value > 0


def test_the_batches_of_a_csv_hold_every_row_once(kinds):
    path, types, _ = kinds[0].arguments(1)
    whole, late = jobs.encoded(path, types)
    pieces = [jobs.encoded(jobs.spread_lines(path, number, 3), types) for number in range(3)]
    assert sum(len(labels) for _, labels in pieces) == len(late) > 3_000
    assert sum(features.sum(axis=0) for features, _ in pieces) == pytest.approx(whole.sum(axis=0))


def test_lines_parsed_by_tensorflow_are_the_rows_that_pandas_reads(kinds):
    path, types, _ = kinds[0].arguments(8)

    def difference():
        import tensorflow as tf

        features, late = jobs.line_parser(path, types)(tf.constant(path.read_text().splitlines()[1:]))
        expected, expected_late = jobs.encoded(path, types)
        return abs(features.numpy() - expected).max(), (late.numpy() != expected_late).sum()

    assert run(difference).value == (0, 0)


def test_a_shortened_file_has_the_header_and_the_first_rows(tmp_path):
    short = streaming.first_rows(flights(), 10, tmp_path)
    with flights().open("rb") as file:
        assert short.read_bytes() == b"".join(file.readline() for _ in range(11))


def test_the_tables_have_a_ratio_to_ram_and_a_peak_for_each_share(monkeypatch, capsys):
    def job(speed, size, epochs):
        block = bytearray(b"x") * size
        return speed * len(block) / size * (epochs > 1)

    def feed(share):
        return (60_000_000 // share,)

    ways = {
        "RAM": lambda size, epochs: job(200, size, epochs),
        "slow": lambda size, epochs: job(50, size, epochs),
    }
    kind = streaming.Feeding("blocks", ways, feed)
    effort = streaming.Effort(epochs=2, rounds=2)
    assert list(streaming.speed_rows(kind, effort)) == [
        ("blocks", "RAM", "200", "1"),
        ("blocks", "slow", "50", "0.25"),
    ]
    for _, _, *peaks, growth in streaming.peak_rows(kind):
        assert [float(peak.removesuffix(" MB")) for peak in peaks] == pytest.approx([7.5, 15, 30, 60], abs=4)
        assert float(growth.removesuffix("x")) == pytest.approx(8, abs=2.5)


def test_a_way_that_does_not_finish_stops_the_benchmark():
    kind = streaming.Feeding("blocks", {"RAM": lambda epochs: 1 / 0}, lambda share: ())
    with pytest.raises(RuntimeError, match="blocks, RAM did not finish: Failed: ZeroDivisionError"):
        kind.run("RAM", epochs=1)

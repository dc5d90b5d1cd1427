"""The doctor on hostile input: any bytes, any size, and never a contradiction."""

import io
import string
import tracemalloc
from unittest import mock

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from helpers.doctor import log as doctor_log
from helpers.doctor.catalogue import CANNOT_TELL, CAUSES, KINDS, LOOK_ALIKES, NOTEBOOKS
from helpers.doctor.diagnosis import KIND_RULES, diagnose, diagnose_file, diagnose_stream
from helpers.doctor.numbers import COUNTS, SIZES
from helpers.doctor.rules.causes import CAUSE_RULES

TRACEBACK = "Traceback (most recent call last):\n  File 'train.py', line 3, in <module>\nMemoryError\n"
MOST_LINES = doctor_log.FIRST_LINES + 2 * doctor_log.NOTABLE_LINES + doctor_log.LAST_LINES
UNHURRIED = settings(
    deadline=None, suppress_health_check=[HealthCheck.too_slow]
)  # other work may slow a test down
CONTROLS = {chr(code) for code in (*range(32), 127)} - {"\t"}


class Endless:
    """A stream that repeats a text up to a size, and counts what is taken from it."""

    def __init__(self, text, size, end=b""):
        self.block = (text * (doctor_log.CHUNK_BYTES // len(text) + 1))[: doctor_log.CHUNK_BYTES]
        self.left = size // doctor_log.CHUNK_BYTES
        self.end = end

    def read(self, _):
        if self.left:
            self.left -= 1
            return self.block
        end, self.end = self.end, b""
        return end


class Pieces:
    """A stream that hands out its bytes in pieces of the given sizes, as a pipe does, and the rest as asked."""

    def __init__(self, text, sizes):
        self.stream = io.BytesIO(text)
        self.sizes = iter(sizes)

    def read(self, size):
        return self.stream.read(min(size, next(self.sizes, size)))


def test_nothing_at_all_is_answered():
    for nothing in ("", b"", None, "\n\n", " \r\n"):
        diagnosis = diagnose(nothing)
        assert (diagnosis.kind, diagnosis.cause) == ("unknown", CANNOT_TELL)
        assert "empty" in diagnosis.explanation


def test_a_binary_file_is_answered():
    diagnosis = diagnose(bytes(range(8)) * 1000)
    assert diagnosis.kind == "unknown"
    assert "binary" in diagnosis.explanation


def test_something_that_is_no_text_is_refused_in_a_sentence():
    with pytest.raises(TypeError, match="diagnose_file"):
        diagnose(["MemoryError"])


def test_a_file_that_is_not_there_is_answered(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"there is no log at .*train\.log"):
        diagnose_file(tmp_path / "train.log")


def test_a_folder_is_answered(tmp_path):
    with pytest.raises(IsADirectoryError, match="is a folder"):
        diagnose_file(tmp_path)


@pytest.mark.parametrize(
    "log",
    [
        b"\x1b[31mMemoryError\x1b[0m\n",
        b"1/9 [>...]\r2/9 [>...]\r\x1b[KMemoryError\r\n",
        b"loss: 0.2\x08\x08\x08\x08MemoryError\n",
        b"\xff\xfe caf\xe9 \x80\nMemoryError\n",
        "MemoryError\r\n".encode("utf-16"),
        rb"[\u001b[0;31mMemoryError\u001b[0m: Unable to allocate",
        b"> MemoryError\n",
        b"train_1  | MemoryError\n",
        b"2024-01-01T10:00:00Z stderr F MemoryError\n",
        b"x" * 3_000_000 + b"\nMemoryError\n",
        b"MemoryError\n" + b"Chunk at 0x1 of size 256\n" * 50_000,
    ],
    ids=[
        "colours",
        "progress",
        "backspaces",
        "broken",
        "utf-16",
        "json",
        "quoted",
        "compose",
        "stamped",
        "wide",
        "long",
    ],
)
def test_a_log_is_read_through_its_dress(log, tmp_path):
    path = tmp_path / "train.log"
    path.write_bytes(log)
    assert diagnose_file(path).kind == "host-ram"
    assert diagnose(log).kind == "host-ram"


def test_html_shows_a_log_as_text():
    shown = diagnose("<script>alert(1)</script> MemoryError: Unable to allocate 9.0 GiB <b>")._repr_html_()
    assert "<script>" not in shown
    assert "&lt;script&gt;" in shown


def test_a_huge_log_is_read_in_bounded_memory():
    progress = b"  10/100 [====>....] - ETA: 5s - loss: 0.1234\r"
    tracemalloc.start()
    diagnosis = diagnose_stream(Endless(progress, 300 << 20, end=TRACEBACK.encode()))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert diagnosis.kind == "host-ram"
    assert peak < 80 << 20


def test_the_work_on_a_huge_log_does_not_grow_with_it(monkeypatch):
    searched = []
    places = doctor_log._notable_places
    monkeypatch.setattr(
        doctor_log, "_notable_places", lambda chunk: searched.append(len(chunk)) or places(chunk)
    )
    log = doctor_log.read_stream(Endless(b"Killed: out of memory, OOM when loading\n", 400 << 20))
    assert sum(searched) <= (doctor_log.SEARCHED_FIRST + doctor_log.SEARCHED_LAST) * doctor_log.CHUNK_BYTES
    assert len(log.lines) <= MOST_LINES
    assert max(map(len, log.lines)) <= doctor_log.LONGEST_LINE + 10
    assert log.shortened


def test_the_middle_of_a_long_log_is_searched():
    boring = b"step 17 loss 0.25\n" * 200_000
    assert diagnose_stream(io.BytesIO(boring + b"MemoryError\n" + boring)).kind == "host-ram"


@given(st.binary(max_size=3_000) | st.text(max_size=3_000))
@UNHURRIED
def test_whatever_is_read_becomes_clean_lines(text):
    for line in doctor_log.read_text(text).lines:
        assert line.strip()
        assert not set(line) & CONTROLS
        assert line.encode("utf-8").decode("utf-8") == line


@given(st.lists(st.binary(max_size=20), min_size=1, max_size=5), st.integers(1, 5_000))
@settings(UNHURRIED, max_examples=50)
def test_what_is_kept_is_bounded(parts, times):
    for text in (b"\n".join([*parts, b""]), b"".join(parts)):
        lines = doctor_log.read_text(text * times).lines
        assert len(lines) <= MOST_LINES
        assert max(map(len, lines), default=0) <= doctor_log.LONGEST_LINE + 10


@given(st.lists(st.text(string.ascii_letters, min_size=1, max_size=40), max_size=60), st.data())
@UNHURRIED
def test_no_line_is_cut_where_a_chunk_ends(lines, data):
    text = "\n".join(lines).encode()
    sizes = data.draw(st.lists(st.integers(1, 100), max_size=60))
    with mock.patch.object(doctor_log, "CHUNK_BYTES", 64):
        assert doctor_log.read_stream(Pieces(text, sizes)).lines == tuple(lines)


@given(st.binary(min_size=200, max_size=1_000), st.lists(st.integers(1, 100), min_size=3))
@UNHURRIED
def test_a_log_in_pieces_is_read_as_the_whole(text, sizes):
    with mock.patch.object(doctor_log, "CHUNK_BYTES", 64):
        assert doctor_log.read_stream(Pieces(text, sizes)) == doctor_log.read_text(text)


PATTERNS = [
    *(rule.pattern for rule in KIND_RULES + CAUSE_RULES if rule.pattern),
    *(pattern for _, pattern in SIZES + COUNTS),
]


@given(st.binary(max_size=300), st.none() | st.integers())
@UNHURRIED
def test_any_bytes_and_any_exit_code_are_answered(text, exit_code):
    check(diagnose(text, exit_code))


@example(["rss 99999999999999999999 GB"] * 10, None)
@given(
    st.lists(st.sampled_from(PATTERNS).flatmap(st.from_regex) | st.text(), max_size=12),
    st.none() | st.sampled_from([0, 1, -9, 137, 139, 143]),
)
@settings(UNHURRIED, max_examples=300)
def test_the_answers_never_contradict_themselves(lines, exit_code):
    """Logs glued together from evidence of any rules, numbers and noise, in any order."""
    check(diagnose("\n".join(lines), exit_code))


def check(diagnosis):
    kind = KINDS[diagnosis.kind]
    assert diagnosis.confidence in ("high", "medium", "low")
    assert diagnosis.notebook in NOTEBOOKS.values()
    assert diagnosis.advice
    assert diagnosis.is_not
    assert str(diagnosis)
    assert diagnosis._repr_html_().startswith("<div>")
    assert diagnosis.out_of_memory == kind.out_of_memory
    assert not any(other.meaning in diagnosis.explanation for other in KINDS.values() if other is not kind)
    if diagnosis.cause != CANNOT_TELL:
        assert diagnosis.cause in CAUSES
        assert not (kind.out_of_memory and diagnosis.cause in LOOK_ALIKES)
        assert kind.out_of_memory or diagnosis.kind == "gpu-config" or diagnosis.cause in LOOK_ALIKES
    if diagnosis.kind == "unknown":
        assert diagnosis.cause == CANNOT_TELL
        assert diagnosis.confidence != "high"

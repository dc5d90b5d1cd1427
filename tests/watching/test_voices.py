"""What a process says arrives in order, however it is cut into pieces, and whoever else writes into its pipe."""

import itertools
import os
import sysconfig

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.watching.voices import Growing, StackReader, Talk, Told, Voices

LIBRARY = sysconfig.get_path("purelib")
OWN = ("/project/train.py", 12)
STACK = f"""Stack (most recent call first):
  File "{LIBRARY}/numpy/numeric.py", line 232 in ones
  File "/project/train.py", line 12 in load
  File "/project/train.py", line 40 in main
""".encode()
WORDS = b"\x1e12.5 1000 24 100 2000 77 4 900 70\n7 12 /project/train.py\n8 3 /pr\\xfcfung/a.py\n9 \n\x1f"
TOLD = Told(12.5, 1000, 24, 100, 2000, 77, 4, 900, 70, {7: OWN, 8: ("/prüfung/a.py", 3)})


def fed(reader, text, size):
    return [word for start in range(0, len(text), size) for word in reader.feed(text[start : start + size])]


@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_stacks_and_words_are_told_apart_in_order(size):
    assert fed(Talk([LIBRARY]), STACK + WORDS + STACK + STACK + WORDS, size) == [
        Growing(OWN),
        TOLD,
        Growing(OWN),
        Growing(OWN),
        TOLD,
    ]
    assert TOLD.held == 1024


def test_a_stack_tells_its_innermost_own_line_once():
    assert fed(StackReader([LIBRARY]), STACK * 2, 7) == [OWN, OWN]


def test_what_started_a_job_is_not_the_jobs():
    stack = b"""Stack (most recent call first):
  File "/lib/threading.py", line 3 in wait
  File "/somewhere/helpers/jobs/child.py", line 100 in _perform
  File "<string>", line 1 in <module>
"""
    assert StackReader(["/lib"]).feed(stack) == []


@pytest.mark.parametrize("file", ["<stdin>", "<string>", "<python-input-3>"])
def test_code_that_was_typed_is_the_programs_own(file):
    stack = f'Stack (most recent call first):\n  File "{file}", line 3 in <module>\n'
    assert StackReader([]).feed(stack.encode()) == [(file, 3)]


@pytest.mark.parametrize(
    "file", ["<frozen importlib._bootstrap>", "<attrs generated init>", "/a/__autograph_generated_file1.py"]
)
def test_code_that_other_code_made_is_not(file):
    assert StackReader([]).feed(f'Stack:\n  File "{file}", line 3 in f\n'.encode()) == []


def test_a_path_that_is_not_ascii_is_read_right():
    assert StackReader([]).feed(b'Stack\n  File "/pr\\xfcfung/a.py", line 3 in f\n') == [("/prüfung/a.py", 3)]


@given(st.binary(max_size=400), st.lists(st.integers(0, 400), max_size=5))
def test_whatever_is_written_into_the_pipe_is_read_without_an_error(garbage, cuts):
    places = sorted({0, len(garbage), *(cut for cut in cuts if cut < len(garbage))})
    talk = Talk([LIBRARY])
    for start, end in itertools.pairwise(places):
        talk.feed(garbage[start:end])
    assert TOLD in talk.feed(b"\n\x1f" + WORDS + WORDS)


def test_processes_introduce_themselves_and_may_die_at_once():
    voices = Voices()
    for pid in (11, 12):
        for kind in ("told", "stuck", "touched"):
            os.mkfifo(os.path.join(voices.folder, f"{pid}.{kind}"))
    with open(os.path.join(voices.folder, "hello"), "wb", buffering=0) as hello:
        hello.write(b"process 11 1 0\nlibrary /a\nprocess 12 0 500\nlibrary /b\n")
        hello.write(b"process 13 1 0\nlibrary /c\nnonsense\nprocess x\n")  # 13 has removed its pipes
    found = voices.new()
    assert [(voice.pid, voice.grows, inherited) for voice, inherited in found] == [
        (11, True, 0),
        (12, False, 500),
    ]
    assert [voice.hear() for voice, _ in found] == [[[], [], []], [[], [], []]]
    for voice, _ in found:
        voice.close()
    voices.close()
    assert not os.path.exists(voices.folder)

"""What a process says arrives in order, however it is cut into pieces, and whoever else writes into its pipe."""

import itertools
import os
import sysconfig
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.watching import answering
from helpers.watching.voices import Ended, Growing, StackReader, Started, Talk, Told, Voices

LIBRARY = sysconfig.get_path("purelib")
OWN = ("/project/train.py", 12)
STACK = f"""Stack (most recent call first):
  File "{LIBRARY}/numpy/numeric.py", line 232 in ones
  File "/project/train.py", line 12 in load
  File "/project/train.py", line 40 in main
""".encode()
WORDS = b"\x1e12.5 1000 24 100 2000 77 900 70\n7 12 /project/train.py\n8 3 /pr\\xfcfung/a.py\n9 \n\x1f"
TOLD = Told(12.5, 1000, 24, 100, 2000, 77, 900, 70, {7: OWN, 8: ("/prüfung/a.py", 3)})


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


def take(voices, pid):
    """As a process does; returns the name and the paths of its pipes."""
    return answering._take_pipes(voices.folder, pid)


def introduce(voices, text):
    with open(os.path.join(voices.folder, "hello"), "wb", buffering=0) as hello:
        hello.write(text.encode())


@pytest.fixture
def voices():
    voices = Voices()
    yield voices
    voices.close()
    assert not os.path.exists(voices.folder)


def test_what_a_process_said_is_heard_though_it_died_before_anybody_looked(voices):
    name, paths = take(voices, 11)
    with open(paths[0], "r+b", buffering=0) as told:
        told.write(STACK + WORDS)
    introduce(voices, f"process 11 1 0 7 {name}\nlibrary {LIBRARY}\n")
    [(voice, inherited)] = voices.new()
    assert (voice.pid, voice.grows, inherited, voice.first_faults) == (11, True, 0, 7)
    assert voice.hear() == ([Growing(OWN), TOLD], [], [])
    voice.close()


def test_more_processes_than_were_expected_make_their_own_pipes(voices):
    names = [take(voices, pid)[0] for pid in range(11, 17)]
    assert len(set(names)) == 5  # four were there, and the others' are in a folder of their own each
    introduce(voices, "".join(f"process {11 + place} 0 500 9 {name}\n" for place, name in enumerate(names)))
    found = voices.new()
    assert [(voice.pid, voice.grows, inherited) for voice, inherited in found] == [
        (pid, False, 500) for pid in range(11, 17)
    ]
    assert take(voices, 17)[0] not in names  # there are new ones
    for voice, _ in found:
        voice.close()


def test_who_takes_pipes_the_moment_that_they_are_there_finds_them_open():
    """As a storm of forked children does."""
    voices, taken, is_over = Voices(), [], threading.Event()

    def take_all():
        while not is_over.is_set():
            name, paths = take(voices, next(numbers))
            taken.append(all(os.path.exists(path) for path in paths) and name != answering.OWN)
            introduce(voices, f"process {next(numbers)} 0 0 0 {name}\n")

    numbers = itertools.count(100)
    thread = threading.Thread(target=take_all)
    thread.start()
    try:
        for _ in range(2000):
            for voice, _ in voices.new():
                voice.close()
    finally:
        is_over.set()
        thread.join()
        voices.close()
    assert True in taken


def test_nonsense_introduces_nobody(voices):
    os.mkfifo(os.path.join(voices.folder, "13.elsewhere"))
    introduce(voices, "process 13 1 0 elsewhere\nnonsense\nprocess x\nprocess 13 1 0 own\nprocess 14 1\n")
    assert voices.new() == []


def test_a_thread_that_begins_or_ends_says_so_in_the_midst_of_a_stack():
    text = (
        STACK[:20] + b"\x1ebegins 77 59\x1f" + STACK[20:] + b"\x1eends 77 5\x1f\x1eends 77\x1f\x1ebegins\x1f"
    )
    assert Talk([LIBRARY], 58).feed(text) == [Started(77, 59), Growing(OWN, 58), Ended(77, 5)]

"""A dump of faulthandler gives the innermost line of the job's own code."""

import itertools
import sysconfig

from hypothesis import given
from hypothesis import strategies as st

from helpers.watching.lines import DumpReader, is_own_code


def pieces(reader, text, size=7):
    found = []
    for start in range(0, len(text), size):
        found += reader.feed(text[start : start + size])
    return found


LIBRARY = sysconfig.get_path("purelib")
STACK = f'''  File "{LIBRARY}/numpy/numeric.py", line 232 in ones
  File "/project/train.py", line 12 in load
  File "/project/train.py", line 40 in main
'''


def test_a_thread_in_c_code_tells_its_innermost_own_line_once():
    reader = DumpReader()
    dump = f"Stack (most recent call first):\n{STACK}".encode()
    for _ in range(2):
        assert pieces(reader, dump) == [{"stuck": ("/project/train.py", 12)}]


def test_an_answer_has_the_line_of_every_thread_of_the_job():
    dump = (
        'Thread 0x00007f01 (most recent call first):\n  File "/project/load.py", line 7 in fill\n\n'
        f"Current thread 0x00007f00 (most recent call first):\n{STACK}"
        "end held=4096 faults=9 7f00=100 7f01=101 7f02=102\n"
    ).encode()
    assert pieces(DumpReader(), dump) == [
        {"held": (4096, 9), 100: ("/project/train.py", 12), 101: ("/project/load.py", 7)}
    ]


def test_a_path_that_is_not_ascii_is_read_right():
    dump = b'Stack (most recent call first):\n  File "/pr\\xfcfung/a.py", line 3 in f\n'
    assert DumpReader().feed(dump) == [{"stuck": ("/prüfung/a.py", 3)}]


def test_code_of_libraries_of_python_and_of_the_helpers_is_not_the_jobs_own():
    import json

    import numpy

    from helpers.watching import lines

    assert not any(map(is_own_code, (json.__file__, numpy.__file__, lines.__file__, "<frozen importlib>")))
    assert is_own_code(__file__)
    assert is_own_code("/somewhere/ipykernel_12/345.py")


@given(st.binary(max_size=400), st.lists(st.integers(0, 400), max_size=5))
def test_whatever_is_written_into_the_pipe_is_read_without_an_error(garbage, cuts):
    places = sorted({0, len(garbage), *(cut for cut in cuts if cut < len(garbage))})
    reader = DumpReader()
    for start, end in itertools.pairwise(places):
        reader.feed(garbage[start:end])
    reader.feed(b"\n")
    dump = f"Stack (most recent call first):\n{STACK}".encode()
    assert {"stuck": ("/project/train.py", 12)} in reader.feed(dump)


WORDS = st.sampled_from(
    [b"end", b"held=", b"faults=", b"12", b"=", b" ", b"Thread 0x1", b"  File ", b'"a", line 3 in f']
)


@given(st.lists(WORDS, max_size=30))
def test_half_an_answer_is_no_answer(words):
    for answer in DumpReader().feed(b"".join(words) + b"\n"):
        assert answer.keys() <= {"held", "stuck", 12}

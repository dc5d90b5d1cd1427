"""Readings add up to bytes per line, and a dump of faulthandler gives the innermost line of the job's own code."""

import sysconfig

from helpers.lines import UNKNOWN, Attribution, DumpReader, is_own_code

FIRST, SECOND, THIRD = (("train.py", number) for number in (1, 2, 3))


def test_growth_goes_to_the_line_that_ran():
    attribution = Attribution(100)
    for level in (110, 150, 200):
        attribution.add(level, FIRST)
    assert attribution.finish(200) == [(FIRST, 100)]


def test_two_lines_share_the_growth_between_their_readings():
    attribution = Attribution()
    attribution.add(100, FIRST)
    attribution.add(120, SECOND)
    attribution.add(300, SECOND)
    assert attribution.finish(300) == [(SECOND, 190), (FIRST, 110)]


def test_what_is_given_back_was_taken_last():
    attribution = Attribution()
    attribution.add(100, FIRST)
    attribution.add(100, SECOND)
    attribution.add(180, SECOND)
    attribution.add(100, THIRD)
    attribution.add(100, THIRD)
    attribution.add(150, THIRD)
    assert attribution.finish(180) == [(FIRST, 100), (SECOND, 80)]


def test_the_answer_is_for_the_peak_and_not_for_the_end():
    attribution = Attribution()
    attribution.add(500, FIRST)
    attribution.add(0, SECOND)
    attribution.add(50, SECOND)
    assert attribution.finish(500) == [(FIRST, 500)]


def test_growth_that_no_reading_saw_belongs_to_the_last_line_before_the_peak():
    attribution = Attribution()
    attribution.add(100, FIRST)
    assert attribution.finish(400) == [(FIRST, 400)]
    assert Attribution().finish(70) == [(UNKNOWN, 70)]


def test_lines_below_one_per_cent_are_left_out():
    attribution = Attribution()
    attribution.add(1000, FIRST)
    attribution.add(1000, SECOND)
    attribution.add(1005, SECOND)
    assert attribution.finish(1005) == [(FIRST, 1000)]


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
        "end held=4096 7f00=100 7f01=101 7f02=102\n"
    ).encode()
    assert pieces(DumpReader(), dump) == [
        {"held": 4096, 100: ("/project/train.py", 12), 101: ("/project/load.py", 7)}
    ]


def test_a_path_that_is_not_ascii_is_read_right():
    dump = b'Stack (most recent call first):\n  File "/pr\\xfcfung/a.py", line 3 in f\n'
    assert DumpReader().feed(dump) == [{"stuck": ("/prüfung/a.py", 3)}]


def test_code_of_libraries_of_python_and_of_the_helpers_is_not_the_jobs_own():
    import json

    import numpy

    from helpers import lines

    assert not any(map(is_own_code, (json.__file__, numpy.__file__, lines.__file__, "<frozen importlib>")))
    assert is_own_code(__file__)
    assert is_own_code("/somewhere/ipykernel_12/345.py")

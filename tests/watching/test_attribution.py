"""Readings add up to bytes per line."""

from hypothesis import given
from hypothesis import strategies as st

from helpers.watching.attribution import UNKNOWN, Attribution

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


def test_what_comes_after_a_line_has_told_what_it_held_is_the_next_lines():
    attribution = Attribution()
    attribution.add(60, FIRST)
    attribution.add(100, FIRST, told_itself=True)
    attribution.add(120, SECOND)
    attribution.add(300, SECOND, told_itself=True)
    assert attribution.finish(300) == [(SECOND, 200), (FIRST, 100)]


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


def test_memory_that_was_freed_and_taken_again_between_two_readings_is_the_new_lines():
    """800 fall to 130 while 65 pages are touched: the low point was 0, as the size of a page shows right after."""
    attribution = Attribution()
    attribution.add(800, FIRST, faults=400)
    attribution.add(130, None, faults=465)
    attribution.add(170, SECOND, faults=485)
    attribution.add(400, SECOND, faults=600)
    attribution.add(900, THIRD, faults=850)
    assert dict(attribution.finish(900)) == {SECOND: 650, THIRD: 250}


def test_memory_that_was_given_back_in_part_stays_with_its_line():
    attribution = Attribution()
    attribution.add(800, FIRST, faults=400)
    attribution.add(300, None, faults=401)
    attribution.add(900, SECOND, faults=701)
    assert dict(attribution.finish(900)) == {FIRST: 298, SECOND: 602}


LINES = st.sampled_from([FIRST, SECOND, THIRD, None])
READINGS = st.lists(st.tuples(st.integers(0, 10**12), LINES, st.integers(0, 10**6) | st.none()), max_size=40)


@given(READINGS, st.integers(0, 10**9), st.integers(0, 10**12))
def test_the_lines_add_up_to_the_peak_whatever_was_read(readings, baseline, peak):
    """But for the lines below one per cent, which are left out."""
    attribution = Attribution(baseline)
    for level, line, faults in readings:
        attribution.add(level, line, faults)
    highest = max([baseline, *(level for level, _, _ in readings)])
    found = attribution.finish(peak)
    total = sum(size for _, size in found)
    assert all(size > 0 for _, size in found)
    assert 0.9 * (max(highest, peak) - baseline) <= total <= max(highest, peak)

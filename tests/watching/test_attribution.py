"""Readings and words add up to bytes per line."""

from hypothesis import given
from hypothesis import strategies as st

from helpers.watching.attribution import UNKNOWN, Attribution
from helpers.watching.labels import Label, both

MB = 2**20
FIRST, SECOND, THIRD = (("train.py", number) for number in (1, 2, 3))


def grown(attribution, line, level, **known):
    """The whole of a call that grows: it says so when it begins, and what is held when it is over."""
    attribution.grows(line)
    attribution.told(line, level * MB, **known)


def in_megabytes(found):
    return {place: size / MB for place, size in found}


def test_growth_goes_to_the_line_that_began_to_grow():
    """An operator is over before the next call tells: what it took is not that call's."""
    attribution = Attribution(100 * MB)
    grown(attribution, FIRST, 300)
    attribution.grows(SECOND)
    attribution.read(400 * MB)
    attribution.told(THIRD, 700 * MB)
    assert in_megabytes(attribution.finish(700 * MB)) == {SECOND: 400, FIRST: 200}


def test_a_call_that_is_killed_in_the_middle_has_all_that_was_seen_and_the_rest():
    attribution = Attribution()
    grown(attribution, FIRST, 300)
    attribution.grows(SECOND)
    attribution.read(500 * MB)
    assert in_megabytes(attribution.finish(800 * MB)) == {SECOND: 500, FIRST: 300}


def test_who_is_asked_shares_what_grew_before_the_question_with_the_line_before():
    attribution = Attribution()
    grown(attribution, FIRST, 300)
    attribution.read(320 * MB)
    attribution.ask()
    attribution.read(600 * MB)
    attribution.told(SECOND, 700 * MB)
    assert in_megabytes(attribution.finish(700 * MB)) == {SECOND: 380, FIRST: 300, (FIRST, SECOND): 20}


def test_a_line_that_is_asked_twice_shares_with_nobody():
    attribution = Attribution()
    for level in (100, 200, 300):
        attribution.read(level * MB)
        attribution.ask()
        attribution.told(FIRST, level * MB)
    assert in_megabytes(attribution.finish(300 * MB)) == {FIRST: 300}


def test_what_has_grown_since_it_was_between_two_instructions_is_the_present_calls():
    attribution = Attribution()
    grown(attribution, FIRST, 100)
    attribution.read(250 * MB)
    attribution.ask()
    attribution.told(SECOND, 400 * MB, since=110 * MB)
    assert in_megabytes(attribution.finish(400 * MB)) == {SECOND: 290, FIRST: 100, (FIRST, SECOND): 10}


def test_a_line_that_was_found_in_the_midst_of_c_code_keeps_what_it_takes():
    attribution = Attribution()
    grown(attribution, FIRST, 100)
    attribution.read(150 * MB)
    attribution.ask()
    attribution.read(200 * MB)
    attribution.found(SECOND)
    attribution.read(500 * MB)
    attribution.told(THIRD, 600 * MB)
    assert in_megabytes(attribution.finish(600 * MB)) == {SECOND: 450, FIRST: 100, (FIRST, SECOND): 50}


def test_what_nobody_said_is_unknown():
    attribution = Attribution()
    attribution.read(100 * MB)
    assert in_megabytes(attribution.finish(150 * MB)) == {UNKNOWN: 150}
    assert attribution.owed == 100 * MB


def test_what_is_given_back_was_taken_last():
    attribution = Attribution()
    grown(attribution, FIRST, 100)
    grown(attribution, SECOND, 180)
    attribution.told(THIRD, 130 * MB)
    grown(attribution, THIRD, 230)
    assert in_megabytes(attribution.finish(230 * MB)) == {FIRST: 100, SECOND: 30, THIRD: 100}


def test_a_block_that_is_given_back_whole_is_known_by_its_size():
    """first, second, del first, third."""
    attribution = Attribution()
    grown(attribution, FIRST, 300)
    grown(attribution, SECOND, 900)
    attribution.read(700 * MB)  # in two pieces
    attribution.told(THIRD, 600 * MB)
    grown(attribution, THIRD, 1100)
    assert in_megabytes(attribution.finish(1100 * MB)) == {SECOND: 600, THIRD: 500}


def test_what_was_given_back_and_taken_again_unseen_is_known_by_what_was_held_in_between():
    """800, del, 400 on top of 15: a reading fell by 401 and the next one rose by 1, so that neither showed it."""
    attribution = Attribution(15 * MB)
    grown(attribution, FIRST, 815)
    attribution.grows(SECOND)
    attribution.read(413 * MB)
    attribution.told(SECOND, 415 * MB, since=15 * MB)
    grown(attribution, THIRD, 915, since=415 * MB)
    assert in_megabytes(attribution.finish(915 * MB)) == {THIRD: 500, SECOND: 400}


def test_what_other_threads_took_meanwhile_was_not_there_before():
    attribution = Attribution()
    grown(attribution, FIRST, 100, since=0)
    attribution.divide([])
    attribution.read(300 * MB)
    attribution.divide([(Label(THIRD), 0.5)])
    attribution.told(SECOND, 300 * MB, since=100 * MB)
    assert in_megabytes(attribution.finish(300 * MB)) == {FIRST: 100, SECOND: 100, THIRD: 100}


def test_whose_it_was_may_become_known_after_the_peak():
    """A thread has ended, and memory falls a little before it is known how much of it was the thread's."""
    attribution = Attribution()
    grown(attribution, FIRST, 100)
    attribution.divide([])
    attribution.read(300 * MB)
    attribution.read(298 * MB)
    attribution.read(299 * MB)
    attribution.read(290 * MB)
    attribution.divide([(Label(THIRD), 1.0)])
    attribution.told(SECOND, 290 * MB)
    assert in_megabytes(attribution.finish(300 * MB)) == {THIRD: 200, FIRST: 100}


def test_the_answer_is_for_the_peak_and_not_for_the_end():
    attribution = Attribution()
    grown(attribution, FIRST, 500)
    attribution.told(SECOND, 0)
    grown(attribution, SECOND, 50)
    assert in_megabytes(attribution.finish(500 * MB)) == {FIRST: 500}


def test_a_reading_that_may_be_wrong_by_so_much_is_no_change():
    attribution = Attribution()
    grown(attribution, FIRST, 500)
    attribution.read(500 * MB - 1000, least=2000)
    attribution.read(500 * MB + 1000, least=2000)
    assert (attribution.level, attribution.owed) == (500 * MB, 0)


def test_memory_that_was_freed_and_taken_again_between_two_readings_is_the_new_lines():
    """800 fall to 130 while 65 pages are touched: the low point was 0, as the size of a page shows right after."""
    attribution = Attribution()
    grown(attribution, FIRST, 800, faults=400)
    attribution.grows(SECOND)
    attribution.read(130 * MB, faults=465)
    attribution.read(170 * MB, faults=485)
    attribution.told(SECOND, 400 * MB, faults=600)
    grown(attribution, THIRD, 900, faults=850)
    assert in_megabytes(attribution.finish(900 * MB)) == {SECOND: 400, THIRD: 500}


def test_pages_touched_while_memory_fell_are_no_huge_ones_if_the_rest_of_a_block_says_so():
    """first, second, del first, third: 140 were seen to fall while 150 pages, small ones, were touched."""
    attribution = Attribution()
    grown(attribution, FIRST, 150, faults=75)
    grown(attribution, SECOND, 450, faults=225)
    attribution.grows(THIRD)
    attribution.read(310 * MB, faults=375)
    attribution.told(THIRD, 550 * MB, faults=495)
    assert in_megabytes(attribution.finish(550 * MB)) == {SECOND: 300, THIRD: 250}


def test_a_spike_that_no_reading_saw_is_the_calls_that_has_just_ended():
    attribution = Attribution()
    grown(attribution, FIRST, 300)
    grown(attribution, SECOND, 350, highest=700 * MB)
    assert in_megabytes(attribution.finish(700 * MB)) == {SECOND: 400, FIRST: 300}


def test_a_spike_on_top_of_a_peak_that_was_seen_keeps_what_was_held_there():
    attribution = Attribution()
    attribution.grows(FIRST)
    attribution.read(500 * MB)
    attribution.read(400 * MB)
    attribution.told(FIRST, 400 * MB, highest=510 * MB)
    assert in_megabytes(attribution.finish(510 * MB)) == {FIRST: 510}


def test_other_threads_get_their_share_of_what_has_grown_since_the_last_division():
    attribution = Attribution()
    grown(attribution, FIRST, 100)
    attribution.divide([])
    attribution.grows(FIRST)
    attribution.read(300 * MB)
    label = Label()
    attribution.divide([(label, 0.75)])
    label.line = SECOND
    assert in_megabytes(attribution.finish(300 * MB)) == {FIRST: 150, SECOND: 150}


def test_a_label_may_become_known_later_or_never():
    main, either = Label(), Label(SECOND)
    assert Label(otherwise=main).line is None
    main.line = FIRST
    assert Label(otherwise=main).line == FIRST
    assert Label(either=(main, either)).line == (FIRST, SECOND)
    assert both((FIRST, SECOND), THIRD) is None
    assert both(SECOND, None, FIRST) == both(FIRST, (FIRST, SECOND)) == (FIRST, SECOND)
    assert both(None, THIRD) == both(THIRD, THIRD) == THIRD


def test_lines_below_one_per_cent_are_left_out():
    attribution = Attribution()
    grown(attribution, FIRST, 1000)
    grown(attribution, SECOND, 1005)
    assert in_megabytes(attribution.finish(1005 * MB)) == {FIRST: 1000}


def test_thousands_of_turns_of_a_loop_are_kept_in_little_room():
    attribution = Attribution()
    for turn in range(5000):
        grown(attribution, (FIRST, SECOND)[turn % 2], turn)
        grown(attribution, FIRST, turn + 1)
    assert len(attribution._blocks) < 10_000
    found = in_megabytes(attribution.finish(5000 * MB))
    assert sum(found.values()) == 5000


LINES = st.sampled_from([FIRST, SECOND, THIRD, None])
LEVELS, FAULTS = st.integers(0, 10**12), st.integers(0, 10**6) | st.none()
WORDS = st.one_of(
    st.tuples(st.just("read"), LEVELS, FAULTS),
    st.tuples(st.just("told"), LINES, LEVELS, FAULTS, LEVELS, LEVELS | st.none()),
    st.tuples(st.just("grows"), LINES.filter(bool)),
    st.tuples(st.just("found"), LINES.filter(bool)),
    st.tuples(st.just("ask")),
    st.tuples(st.just("divide"), st.floats(0, 1).map(lambda share: [(Label(THIRD), share)])),
)


@given(st.lists(WORDS, max_size=40), st.integers(0, 10**9), LEVELS)
def test_the_lines_add_up_to_the_peak_whatever_was_read(words, baseline, peak):
    """But for the lines below one per cent, which are left out."""
    attribution = Attribution(baseline)
    highest = baseline
    for name, *arguments in words:
        getattr(attribution, name)(*arguments)
        highest = max(highest, attribution.level, attribution._peak)
    found = attribution.finish(peak)
    total = sum(size for _, size in found)
    assert all(size > 0 for _, size in found)
    assert 0.9 * (max(highest, peak) - baseline) <= total <= max(highest, peak)

"""What threads say in one pipe becomes lines with their parts of what they took."""

from helpers.watching.labels import Label
from helpers.watching.slots import Slot

FIRST, SECOND = (("train.py", number) for number in (1, 2))
MAIN = Label(("train.py", 9))


def slot_after(faults, *heard):
    slot = Slot()
    slot.started.add(77)
    slot.count({77: faults})
    for line in heard:
        slot.hear(line)
    return slot


def lines_of(labels):
    return {label.line: part for label, part in labels}


def test_the_number_of_words_tells_the_parts_of_the_lines():
    slot = slot_after(40, FIRST, SECOND, FIRST, FIRST)
    assert slot.new == 40
    assert lines_of(slot.labels(MAIN, most=99)) == {FIRST: 0.75, SECOND: 0.25}


def test_where_it_does_not_the_two_lines_share_all():
    slot = slot_after(40, FIRST, SECOND, FIRST)
    assert lines_of(slot.labels(MAIN, most=99, is_mixed=True)) == {(FIRST, SECOND): 1.0}
    assert lines_of(slot.labels(MAIN, most=39)) == {(FIRST, SECOND): 1.0}
    assert lines_of(slot_after(40, FIRST).labels(MAIN, most=99, is_mixed=True)) == {FIRST: 1.0}


def test_or_the_line_and_the_next_one():
    slot = slot_after(40, FIRST)
    [(label, _)] = slot.labels(MAIN, most=39)
    assert label.line == FIRST
    slot.hear(SECOND)
    assert label.line == (FIRST, SECOND)


def test_who_says_nothing_may_do_so_later_and_else_belongs_to_the_main_thread():
    slot = slot_after(40)
    [(label, _)] = slot.labels(MAIN, most=99)
    assert label.line == MAIN.line
    slot.hear(FIRST)
    assert label.line == FIRST


def test_what_comes_between_two_lines_is_shared_by_them():
    slot = slot_after(40, FIRST)
    slot.labels(MAIN, most=99)
    slot.begin_anew()
    slot.count({77: 50})
    [(label, _)] = slot.labels(MAIN, most=99)
    assert label.line == FIRST
    slot.hear(SECOND)
    assert label.line == (FIRST, SECOND)


def test_page_faults_count_once_though_a_thread_ends_and_another_comes():
    slot = slot_after(40, FIRST)
    slot.begin_anew()
    slot.started, slot.ended = {78}, 45
    slot.count({78: 3})
    assert slot.new == 8
    slot.begin_anew(part=0.5)
    assert (slot.new, slot.faults) == (4, 48)
    slot.count({})  # it has just ended, and has not said so yet
    assert slot.new == 4


def test_who_may_have_spoken_is_asked_again():
    slot = slot_after(40)
    slot.is_asked(8)
    assert not slot.may_have_spoken(8)
    assert slot.may_have_spoken(1)
    slot.count({77: 48})  # in the code of a library perhaps, and nothing was heard
    assert slot.may_have_spoken(8)


def test_what_was_said_while_nothing_grew_is_the_line_before():
    slot = slot_after(40, FIRST, FIRST)
    assert slot.rest()
    slot.hear(SECOND)
    assert lines_of(slot.labels(MAIN, most=99)) == {SECOND: 1.0}
    slot.rest()
    slot.rest()
    [(label, _)] = slot.labels(MAIN, most=99)
    assert label.line == SECOND

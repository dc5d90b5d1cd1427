"""Whose page faults were whose: counts that are never of the same moment as the bytes, and threads come and go."""

import pytest

from helpers.watching import thread_state
from helpers.watching.labels import Label
from helpers.watching.page_faults import PAGE
from helpers.watching.threads import LARGEST_PAGE, OtherThreads
from helpers.watching.voices import Ended, Growing, Started, Told

PID, THREAD, SLOT = 10, 11, 50
LINE, MAIN = ("train.py", 7), Label(("train.py", 1))


class Kernel:
    """What the kernel counts: {thread: page faults} of those that live, and those of threads that have ended."""

    def __init__(self):
        self.faults, self.ended = {PID: 1000}, 0

    def of_threads(self, pid, threads=None):
        return {thread: self.faults[thread] for thread in threads or self.faults if thread in self.faults}

    def of_all(self, pid):
        return sum(self.faults.values()) + self.ended

    def end(self, thread):
        self.ended += self.faults.pop(thread)


@pytest.fixture
def kernel(monkeypatch):
    kernel = Kernel()
    monkeypatch.setattr(thread_state, "page_faults", kernel.of_threads)
    monkeypatch.setattr(thread_state, "all_page_faults", kernel.of_all)
    return kernel


@pytest.fixture
def threads(kernel):
    """Those of a process whose main thread has touched 1000 pages before."""
    return OtherThreads(PID, grows=True, first_faults=1000)


def begin(kernel, threads, faults):
    kernel.faults[THREAD] = faults
    threads.hear([Started(THREAD, SLOT), Growing(LINE, SLOT)])


def share(threads):
    """The part of the latest growth that is the thread's line's alone."""
    return sum(part for label, part in threads.shares if label.line == LINE)


def test_what_a_thread_took_before_anybody_followed_the_process_is_its_own(kernel):
    kernel.faults[THREAD] = 20
    threads = OtherThreads(PID, grows=True, first_faults=1000)
    threads.hear([Started(THREAD, SLOT), Growing(LINE, SLOT)])
    told = Told(1.0, 0, 0, 0, 0, faults=1020, since=0, own_faults=1000, lines={})
    assert [label.line for label, part in threads.told(MAIN, 20 * LARGEST_PAGE, False, told)] == [LINE]
    assert share(threads) == 1


def test_pages_that_came_after_the_bytes_were_counted_wait_for_those_that_they_bring(kernel, threads):
    begin(kernel, threads, faults=40)
    assert threads.look(MAIN, 10 * LARGEST_PAGE, False, must=False, faults=1010)
    assert share(threads) == 1
    kernel.faults[PID] += 30
    assert threads.look(MAIN, 60 * LARGEST_PAGE, False, must=False, faults=1070)
    assert share(threads) == pytest.approx(0.5)  # thirty each, and not ten in all of the thread's


def test_a_main_thread_that_would_have_told_of_more_has_touched_small_pages(kernel, threads):
    begin(kernel, threads, faults=20)
    kernel.faults[PID] += 200
    grown = 20 * LARGEST_PAGE + 200 * PAGE
    assert threads.look(MAIN, grown, False, must=False, faults=1220, main_tells=True)
    assert share(threads) == pytest.approx(20 * LARGEST_PAGE / grown)


def test_a_main_thread_that_need_not_have_told_may_have_taken_them(kernel, threads):
    begin(kernel, threads, faults=20)
    kernel.faults[PID] += 200
    assert threads.look(MAIN, 20 * LARGEST_PAGE + 200 * PAGE, False, must=False, faults=1220)
    assert {label.line for label, part in threads.shares if part > 0.5} == {(MAIN.line, LINE)}


def test_a_thread_that_has_just_begun_is_waited_for_until_it_has_said_so(kernel, threads):
    kernel.faults[THREAD] = 20
    assert not threads.look(MAIN, 20 * LARGEST_PAGE, False, must=False, faults=1020)
    threads.hear([Started(THREAD, SLOT), Growing(LINE, SLOT)])
    assert threads.look(MAIN, 20 * LARGEST_PAGE, False, must=False, faults=1020)
    assert share(threads) == 1


def test_a_thread_that_never_says_so_is_waited_for_once(kernel, threads):
    kernel.faults[THREAD] = 20
    assert not threads.look(MAIN, 20 * LARGEST_PAGE, False, must=False, faults=1020)
    assert threads.look(MAIN, 20 * LARGEST_PAGE, False, must=False, faults=1020)
    assert threads.shares == []


def test_a_thread_that_has_just_ended_is_waited_for_until_it_has_said_so(kernel, threads):
    begin(kernel, threads, faults=20)
    assert threads.look(MAIN, 20 * LARGEST_PAGE, False, must=False, faults=1020)
    kernel.faults[THREAD] += 500
    kernel.end(THREAD)
    assert not threads.look(MAIN, 500 * PAGE, False, must=False, faults=1520)
    threads.hear([Growing(LINE, SLOT), Ended(THREAD, 520)])
    assert threads.look(MAIN, 500 * PAGE, False, must=False, faults=1520)
    assert share(threads) == 1


def test_some_more_bytes_than_the_pages_could_bring_are_of_those_that_were_counted_before(kernel, threads):
    begin(kernel, threads, faults=20)
    assert threads.look(MAIN, 24 * LARGEST_PAGE, main_grows=False)
    assert share(threads) == 1


def test_many_more_bytes_were_there_for_a_moment_and_belong_to_who_grew_last(kernel, threads):
    begin(kernel, threads, faults=20)
    assert threads.look(MAIN, 100 * LARGEST_PAGE, main_grows=False)
    assert threads.shares == []

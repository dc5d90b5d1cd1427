"""Threads of Python's say what they do, each in a pipe of its own, and lose nothing by what others say."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from helpers.watching import own_threads

pytestmark = pytest.mark.skipif(not own_threads.SLOTS, reason="no real-time signals on this system")
HERE = Path(__file__).parents[2]
FIRST = own_threads.SLOTS[0] if own_threads.SLOTS else None


@pytest.fixture
def stacks(tmp_path):
    """Where threads write their stacks when they get the first signal."""
    path = tmp_path / "stacks"
    with path.open("w") as file:
        own_threads.do_nothing_at(FIRST)
        own_threads.write_stack_at(FIRST, file)
        yield path
        own_threads.be_deaf_to(FIRST)
        signal.signal(FIRST, signal.SIG_DFL)


def test_a_signal_that_is_on_its_way_to_one_thread_survives_the_stack_of_another(stacks):
    waits, goes_on = threading.Event(), threading.Event()

    def wait_for_it():
        signal.pthread_sigmask(signal.SIG_BLOCK, [FIRST])
        signal.pthread_kill(threading.get_ident(), FIRST)
        waits.set()
        goes_on.wait()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [FIRST])

    thread = threading.Thread(target=wait_for_it)
    thread.start()
    waits.wait()
    signal.pthread_kill(threading.get_ident(), FIRST)
    goes_on.set()
    thread.join()
    assert stacks.read_text().count("Stack (most recent call first)") == 2


PROGRAM = """
import threading
from helpers.watching import answering, own_threads
from helpers.watching.voices import Ended, Growing, Started, Voices

voices = Voices()
answering.listen(voices.folder, ())
[(voice, _)] = voices.new()
barrier = threading.Barrier(20)


def work():
    barrier.wait()
    kept = [b"x" * (100_000 + number) for number in range(40)]
    barrier.wait()


threads = [threading.Thread(target=work) for _ in range(20)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
said = voice.hear()[2]
slots = [word.slot for word in said if isinstance(word, Started)]
print(sorted(slots) == sorted([*own_threads.SLOTS, *own_threads.SLOTS[:4]]))
print({word.slot for word in said if isinstance(word, Growing)} == set(own_threads.SLOTS))
print(min(word.faults for word in said if isinstance(word, Ended)) > 100)
threading.Thread(target=int).start()
print([word.slot for word in voice.hear()[2] if isinstance(word, Started)] == [own_threads.SLOTS[0]])
voice.close()
voices.close()
"""


def test_each_thread_has_a_pipe_of_its_own_as_long_as_there_are_enough():
    """What twenty write at once into one pipe could hardly be read."""
    environment = {**os.environ, "PYTHONPATH": str(HERE)}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("True\nTrue\nTrue\nTrue\n", "")

"""Threads of Python's have a stack for signals, say so, and find all as it was after one; other threads have none."""

import _thread
import errno
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from helpers.watching import answering, own_threads, signal_stack

pytestmark = pytest.mark.skipif(answering.ASK is None, reason="no real-time signals on this system")
HERE = Path(__file__).parents[2]
TOUCHED = own_threads.SLOTS[0] if own_threads.SLOTS else None
PROGRAM = """
import _thread, os, signal, threading
from helpers.watching import answering, signal_stack
from helpers.watching.voices import Growing, Voices

voices = Voices()
answering.listen(voices.folder, ())
[(voice, _)] = voices.new()
library, Stack = signal_stack._library()


def size():
    stack = Stack()
    library.sigaltstack(None, stack)
    return 0 if stack.flags & signal_stack.DISABLED else stack.size


found = {}


def look(name):
    found[name] = threading.get_native_id(), size()


thread = threading.Thread(target=look, args=("python",))
thread.start()
thread.join()
done = _thread.allocate_lock()
done.acquire()
_thread.start_new_thread(lambda: (look("other"), done.release()), ())
done.acquire()
if os.fork() == 0:
    os._exit(size() != signal_stack.SIZE)
assert os.wait()[1] == 0, "a forked child has no stack for signals"
print(size() == signal_stack.SIZE, found["python"][1] == signal_stack.SIZE, found["other"][1])
said = [word for word in voice.hear()[2] if not isinstance(word, Growing)]
print([type(word).__name__ for word in said], {word.thread for word in said} == {found["python"][0]})
voices.close()
"""


def test_only_threads_of_pythons_have_one_and_introduce_themselves():
    environment = {**os.environ, "PYTHONPATH": str(HERE)}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("True True 0\n['Started', 'Ended'] True\n", "")


@pytest.fixture
def answers(tmp_path):
    """Who listens to a thread that touches pages, without the rest of the conversation."""
    import faulthandler

    with (tmp_path / "stacks").open("w") as file:
        own_threads.do_nothing_at(TOUCHED)
        own_threads.write_stack_at(TOUCHED, file)
        yield
        faulthandler.unregister(TOUCHED)
        signal.signal(TOUCHED, signal.SIG_DFL)


def test_a_thread_that_says_its_line_finds_errno_as_it_was(answers):
    """A call that fails, and a signal before its caller has read why."""
    reading, writing = os.pipe2(os.O_NONBLOCK)
    found, done = [], threading.Event()

    def read():
        while not done.is_set():
            try:
                os.read(reading, 1)
            except OSError as error:
                found.append(error.errno)

    with signal_stack.of_this_thread():
        thread = threading.Thread(target=read)
        thread.start()
        for _ in range(5_000):
            signal.pthread_kill(thread.ident, TOUCHED)
            time.sleep(0.0001)  # else they would be handled one within the other
        done.set()
        thread.join()
    for end in (reading, writing):
        os.close(end)
    assert set(found) == {errno.EAGAIN}


def test_a_stack_goes_with_the_block_that_it_was_made_for():
    library, stack_type = signal_stack._library()
    found, done = [], _thread.allocate_lock()
    done.acquire()

    def look():
        for _ in range(2):
            with signal_stack.of_this_thread() as works:
                stack = stack_type()
                library.sigaltstack(None, stack)
                found.append((works, stack.size))
            library.sigaltstack(None, stack)
            found.append(stack.flags)
        done.release()

    _thread.start_new_thread(look, ())
    done.acquire()
    assert found == [(True, signal_stack.SIZE), signal_stack.DISABLED] * 2

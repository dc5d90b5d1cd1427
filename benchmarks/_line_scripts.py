"""Small programs that die, with the bytes of each of their lines at the peak: what a report on lines has to find."""

from dataclasses import dataclass

MB = 10**6
MIB = 2**20


@dataclass(frozen=True)
class Script:
    """A program as text; `truth` has the bytes at the peak of the lines that are marked `# NAME`."""

    name: str
    text: str
    truth: dict

    def lines(self):
        """{number: the mark of that line}"""
        found = {}
        for number, line in enumerate(self.text.splitlines(), 1):
            mark = line.rpartition("# ")[2]
            if mark in self.truth:
                found[number] = mark
        return found


def script(name, text, **truth):
    return Script(name, text.strip() + "\nraise MemoryError\n", truth)


SCRIPTS = [
    script(
        "one line",
        """
import numpy as np
a = np.ones(400_000_000, np.uint8)  # a
""",
        a=400 * MB,
    ),
    script(
        "two lines",
        """
import numpy as np
a = np.ones(300_000_000, np.uint8)  # a
b = np.ones(600_000_000, np.uint8)  # b
""",
        a=300 * MB,
        b=600 * MB,
    ),
    script(
        "freed and grown again",
        """
import numpy as np
a = np.ones(800_000_000, np.uint8)
del a
b = np.ones(400_000_000, np.uint8)  # b
c = np.ones(500_000_000, np.uint8)  # c
""",
        b=400 * MB,
        c=500 * MB,
    ),
    script(
        "allocation, then sleep",
        """
import time
import numpy as np
a = np.ones(200_000_000, np.uint8)  # a
b = a + 1  # b
time.sleep(0.5)
""",
        a=200 * MB,
        b=200 * MB,
    ),
    script(
        "a thread",
        """
import threading, time
import numpy as np
def work():
    global a, b
    a = np.ones(300_000_000, np.uint8)  # a
    time.sleep(0.2)
    b = np.ones(200_000_000, np.uint8)  # b
thread = threading.Thread(target=work)
thread.start()
thread.join()
""",
        a=300 * MB,
        b=200 * MB,
    ),
    script(
        "a forked child",
        """
import os, time
import numpy as np
a = np.ones(100_000_000, np.uint8)  # a
if os.fork() == 0:
    b = np.ones(300_000_000, np.uint8)  # b
    time.sleep(0.5)
    os._exit(0)
os.wait()
""",
        a=100 * MB,
        b=300 * MB,
    ),
    # What these three do is what fil's own tests of the same names do.
    script(
        "as fil's oom",
        """
import numpy
x = numpy.ones(200 * 1024 * 1024, dtype=numpy.int8)  # x
del x
x = numpy.ones(100 * 1024 * 1024, dtype=numpy.int8)
""",
        x=200 * MIB,
    ),
    script(
        "as fil's threaded",
        """
import threading, time
import numpy
def h(i):
    return numpy.ones((1024, 1024, i), dtype=numpy.uint8)  # h
def work():
    data = h(20)
    time.sleep(0.1)
    more = h(30)
    time.sleep(0.1)
threading.Thread(target=work).start()
data = h(50)
time.sleep(0.5)
""",
        h=100 * MIB,
    ),
    script(
        "as fil's threaded_aftermain",
        """
import threading, time
import numpy
def work():
    time.sleep(0.5)
    data = numpy.ones((1024, 1024, 70), dtype=numpy.uint8)  # data
    time.sleep(0.5)
threading.Thread(target=work).start()
time.sleep(0.1)
""",
        data=70 * MIB,
    ),
]

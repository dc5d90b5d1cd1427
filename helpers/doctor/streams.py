"""The command's output: each stream goes through a relay to where ours goes, and a copy of it to whoever watches."""

import fcntl
import os
import pty
import selectors
import termios
from contextlib import suppress

from helpers.doctor.relay import PIECE, become_relay

STANDARD = (0, 1, 2)


class Outputs:
    """Standard output and standard error of the command, through one relay where both of ours lead to the same place:
    two would lose the order of what is printed."""

    def __init__(self):
        self._closed = _fill_closed()
        self._streams = [Stream(targets) for targets in _same_places(self._closed)]
        for stream in self._streams:
            stream.start()

    def connect(self):
        """In the process that becomes the command: take the place of our own streams."""
        for stream in self._streams:
            for target in stream.targets:
                os.dup2(stream.inside, target)
        for descriptor in self._closed:
            os.close(descriptor)

    def hand_over(self):
        """In the process that does not watch: keep only what is needed to read the copies, should the other one die."""
        for stream in self._streams:
            for end in stream.given_away():
                os.close(end)

    def command_has_them(self):
        """The command holds its ends now. That of a terminal stays open, so that its size can be changed."""
        for stream in self._streams:
            if not stream.is_terminal:
                os.close(stream.inside)

    def register(self, selector, take):
        """Let `selector` call `take` with each piece of the output; a stream that ends takes itself out."""

        def read(stream):
            piece = os.read(stream.copy, PIECE)
            if piece:
                take(piece)
            else:
                selector.unregister(stream.copy)

        for stream in self._streams:
            selector.register(stream.copy, selectors.EVENT_READ, lambda stream=stream: read(stream))

    def are_open(self, selector):
        """Whether there may be more to read."""
        return any(stream.copy in selector.get_map() for stream in self._streams)

    def command_has_ended(self):
        """What it wrote so far is passed on now, and then the copies end. A background process may go on writing."""
        for stream in self._streams:
            os.close(stream.ended)
            if stream.is_terminal:
                os.close(stream.inside)

    def copy_sizes(self):
        """The window of a terminal has a new size."""
        for stream in self._streams:
            stream.copy_size()


class Stream:
    """One of the streams: a terminal if ours is one, so that progress bars stay, else a pipe."""

    def __init__(self, targets):
        self.targets, self.target = targets, targets[0]
        self.is_terminal = os.isatty(self.target)
        self._outside, self.inside = pty.openpty() if self.is_terminal else os.pipe()
        self.copy, self._copied = os.pipe()
        self._end, self.ended = os.pipe()
        if self.is_terminal:
            attributes = termios.tcgetattr(self.inside)
            attributes[1] &= ~termios.OPOST  # our own terminal does what is to be done to line ends
            termios.tcsetattr(self.inside, termios.TCSANOW, attributes)
            self.copy_size()

    def start(self):
        """Start the relay; only it has its ends from then on."""
        if os.fork() == 0:
            become_relay(self._outside, self.target, self._copied, self._end)
        for end in (self._outside, self._copied, self._end):
            os.close(end)

    def given_away(self):
        """The ends that belong to the watching process and to the command."""
        return self.inside, self.ended

    def copy_size(self):
        if self.is_terminal:
            with suppress(OSError):  # the terminal is gone
                size = fcntl.ioctl(self.target, termios.TIOCGWINSZ, bytes(8))
                fcntl.ioctl(self.inside, termios.TIOCSWINSZ, size)


def _fill_closed():
    """Standard descriptors that are closed, as they shall be for the command; nothing else gets their number."""
    closed = []
    while (descriptor := os.open(os.devnull, os.O_RDWR)) in STANDARD:
        closed.append(descriptor)
    os.close(descriptor)
    return closed


def _same_places(closed):
    """The numbers of our output streams, those together that lead to the same file, pipe or terminal."""
    places = {}
    for target in STANDARD[1:]:
        if target not in closed:
            status = os.fstat(target)
            places.setdefault((status.st_dev, status.st_ino, status.st_rdev), []).append(target)
    return list(places.values())

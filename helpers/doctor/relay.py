"""A process that copies a stream of the command to where it belongs, and does not end before the last writer did.

It stands apart, since it may wait: for a slow reader, which slows the command down as if nobody were between the two,
and keeps no watchdog from its work; and for a background process of the command, which may print for days.
"""

import errno
import os
import select
from contextlib import suppress

PIECE = 65_536
READER_IS_GONE = (errno.EPIPE, errno.EIO, errno.ECONNRESET)
NOT_WRITTEN = "the output of the command could not be written"
MOST_LEFT = 2**20
"""More than this is not waiting in a pipe or a terminal when the command ends: what is read after it came later."""


def become_relay(source, target, copy, ended):
    """In a process of its own: copy `source` to `target`, and to `copy` until the other end of `ended` is closed and
    all that was written by then has been passed on. Nothing here returns."""
    try:
        os.setsid()  # no Ctrl-C, no hang-up
        os.chdir("/")
        _Relay(source, _alone_with(source, target, copy, ended), copy, ended).run()
    finally:
        os._exit(0)


def _alone_with(source, target, copy, ended):
    """Close whatever else this process inherited: pipes whose readers and locks whose owners would wait for it. Returns
    the new number of `target`."""
    target = os.dup(target)
    nothing = os.open(os.devnull, os.O_RDWR)
    for standard in range(3):
        os.dup2(nothing, standard)
    kept = sorted({source, target, copy, ended})
    for low, high in zip([2, *kept], [*kept, os.sysconf("SC_OPEN_MAX")], strict=True):
        os.closerange(low + 1, high)
    return target


class _Relay:
    def __init__(self, source, target, copy, ended):
        self.source, self.target, self.copy, self.ended = source, target, copy, ended
        self.left = None  # bytes that may still be the command's own, once it has ended
        self.poller = select.poll()
        self.poller.register(source, select.POLLIN)
        for end in (target, ended):
            self.poller.register(end, 0)  # only whether the other side is gone

    def run(self):
        while True:
            ready = dict(self.poller.poll(None if self.left is None else 0))
            if self.target in ready and not self._may_stay(ready[self.target]):
                return  # whoever read is gone, and the command shall notice as it would without us
            if self.ended in ready:
                self.poller.unregister(self.ended)
                self.left = MOST_LEFT
                continue  # what was written before the end is seen by a look after it
            if self.source in ready and not self._pass():
                return
            if self.left is not None and (self.left <= 0 or self.source not in ready):
                self._tell_that_all_is_passed_on()

    def _may_stay(self, event):
        """A target of a kind that cannot be asked, as a terminal on macOS, is not asked again."""
        if event & select.POLLNVAL:
            self.poller.unregister(self.target)
        return bool(event & select.POLLNVAL)

    def _pass(self):
        """Copy one piece; False at the end, of whichever side."""
        try:
            piece = os.read(self.source, PIECE)
        except OSError:  # the end of a terminal
            return False
        if self.left is not None:
            self.left -= len(piece)
        self._tell(piece)
        try:
            _write(self.target, piece)
        except OSError as error:
            if error.errno not in READER_IS_GONE:
                self._tell(f"\n{NOT_WRITTEN}: {error.strerror}\n".encode())
            return False
        return bool(piece)

    def _tell(self, piece):
        if self.copy is not None:
            with suppress(OSError):  # nobody watches any more; the output is passed on all the same
                _write(self.copy, piece)

    def _tell_that_all_is_passed_on(self):
        os.close(self.copy)
        self.copy = self.left = None


def _write(descriptor, piece):
    while piece:
        piece = piece[os.write(descriptor, piece) :]

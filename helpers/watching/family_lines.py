"""The lines of a whole tree of processes: each Python process in it says its own, and its forked children theirs."""

import select
import time

from helpers.watching.attribution import largest_places
from helpers.watching.lines import ELSEWHERE, LineFollower
from helpers.watching.page_faults import Allowance
from helpers.watching.processes import Meter
from helpers.watching.voices import Voices

WORTH_A_WORD = 0.02
"""The share of the peak from which on bytes of nobody's line are shown as other processes'."""


class News:
    """A descriptor that can be read once a thread beside a main one says that it begins, or grows: whoever watches had
    better look soon, since it says its line only so often. Then it rests until the next look, and does so for longer
    where that comes all the time."""

    HURRIES = 200, 10

    def __init__(self):
        self._poll = select.epoll() if hasattr(select, "epoll") else None
        self._come, self._hurries = [], Allowance(*self.HURRIES)

    def fileno(self):
        return self._poll.fileno()

    def register(self, selector, data):
        if self._poll:
            selector.register(self, select.EPOLLIN, data)

    def follow(self, voice):
        if self._poll:
            voice.tell_of_pipe = self._follow_pipe
            for pipe in voice.pipes_of_threads:
                self._follow_pipe(pipe)

    def _follow_pipe(self, pipe):
        self._poll.register(pipe, select.EPOLLIN | select.EPOLLONESHOT)

    def are_urgent(self):
        """Take note of them."""
        come = self._poll.poll(0)
        self._come += [pipe for pipe, _ in come]
        return bool(come) and self._hurries.take(time.monotonic())

    def looked(self):
        """Whoever watches has heard everybody by now."""
        for pipe in self._come:
            self._poll.modify(pipe, select.EPOLLIN | select.EPOLLONESHOT)
        self._come = []

    def leave(self, voice):
        """Its descriptors are closed next."""
        if self._poll:
            for pipe in voice.pipes_of_threads:
                self._poll.unregister(pipe)
            self._come = [pipe for pipe in self._come if pipe not in voice.pipes_of_threads]

    def close(self):
        if self._poll:
            self._poll.close()


class Member:
    """One process of the tree: its memory, what it had when it introduced itself, its lines."""

    def __init__(self, voice, baseline, on_device=False, began=0.0):
        self.pid, self.voice, self._meter = voice.pid, voice, Meter(voice.pid)
        self.baseline = 0 if on_device else baseline
        self.follower = LineFollower(voice, self.baseline, on_device, began)
        self.peak = self.baseline

    def look(self):
        """Read its memory and hear it."""
        level = self._read()
        self.follower.look(level, self._meter.faults())
        self.notice(level)

    def notice(self, level):
        self.peak = max(self.peak, level, self.follower.attribution.level)

    @property
    def added(self):
        return self.follower.attribution.level - self.baseline

    def close(self):
        self._meter.close()
        self.follower.close()

    def _read(self):
        memory = self._meter.read()
        return memory.anonymous + memory.shared_memory


class FamilyLines:
    """Call `welcome` and `look` with every reading; `lines` says in the end what the tree's peak consisted of."""

    def __init__(self):
        self.voices, self.news = Voices(), News()
        self.members = {}
        self._most, self._at_most = 0, {}

    @property
    def folder(self):
        """Where processes introduce themselves; see `answering.listen`."""
        return self.voices.folder

    def welcome(self, **options):
        """Take in processes that have introduced themselves since; what they have of their parent is not counted."""
        for voice, inherited in self.voices.new():
            if voice.pid in self.members:  # it has become another program
                self.news.leave(self.members[voice.pid].voice)
                self.members[voice.pid].close()
            self.news.follow(voice)
            self.members[voice.pid] = Member(voice, **{"baseline": inherited, **options})

    def look(self, but=None):
        """Read all processes but one, which the caller reads, and ask where they grow."""
        for member in self.members.values():
            if member is not but:
                member.look()
                member.follower.ask()
        self.news.looked()
        if len(self.members) > 1:
            self._remember()

    def _remember(self):
        """What each holds at the highest point of all of them together."""
        added = sum(member.added for member in self.members.values())
        if added > self._most:
            self._most = added
            self._at_most = {pid: member.follower.attribution.held() for pid, member in self.members.items()}

    def lines(self, member, peak, elsewhere):
        """[(place, bytes)] at the peak of `peak` bytes held by this member, and `elsewhere` bytes held by others."""
        if not elsewhere:
            return member.follower.lines(peak)
        found = {}
        for places in self._at_most.values():
            for place, size in places.items():
                found[place] = found.get(place, 0) + size
        total = peak - member.baseline + elsewhere
        rest = total - sum(found.values())
        if rest > WORTH_A_WORD * total:
            found[ELSEWHERE] = found.get(ELSEWHERE, 0) + rest
        return largest_places(found)

    def largest(self, peak=0):
        """[(place, bytes)] at the peak of the tree as far as it is these processes'; if there is only one, somebody
        may have seen a higher `peak` of it."""
        largest = max(self.members.values(), key=lambda member: member.peak, default=None)
        if largest is None:
            return []
        highest = max(largest.peak, peak if len(self.members) == 1 else 0)
        alone = largest.peak - largest.baseline
        if self._most < (1 + WORTH_A_WORD) * alone or len(self.members) == 1:
            return largest.follower.lines(highest)
        return self.lines(largest, largest.peak, self._most - alone)

    def close(self):
        for member in self.members.values():
            member.close()
        self.news.close()
        self.voices.close()

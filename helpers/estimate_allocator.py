"""TensorFlow's best-fit allocator, replayed on numbers: which chunk each request gets and how high it goes."""

from bisect import bisect_left, insort

ALIGNMENT = 256
"""Every request is rounded up to a multiple of this."""
LARGEST_WASTE = 128 * 2**20
"""A chunk is split only if more than this, or more than half of it, would be left over."""
REGIONS = (2**20, 2**46)
"""The first small allocation opens a region of 1 MiB; then the card is reserved in one piece, which never runs out."""


class Chunk:
    """A stretch of the card, in use or free."""

    __slots__ = ("start", "size", "owner", "requested", "before", "after")

    def __init__(self, start, size):
        self.start = start
        self.size = size
        self.owner = None
        self.requested = 0
        self.before = None
        self.after = None

    def __lt__(self, other):
        return (self.size, self.start) < (other.size, other.start)


class Allocator:
    """Best fit with coalescing, as TensorFlow does it on a GPU (`bfc_allocator.cc`).

    >>> allocator = Allocator()
    >>> chunk = allocator.allocate(1000, owner="a tensor")
    >>> allocator.in_use, allocator.peak
    (1024, 1024)
    >>> allocator.free(chunk)
    >>> allocator.in_use, allocator.peak
    (0, 1024)
    """

    def __init__(self):
        self.in_use = 0
        self.peak = 0
        self.used = {}
        self.at_peak = ()
        self._free = [Chunk(2 * sum(REGIONS[:index]), size) for index, size in enumerate(REGIONS)]

    def allocate(self, requested, owner):
        """Hand out a chunk for that many bytes; `owner` is anything that later tells whose it was."""
        size = max(ALIGNMENT, -(-requested // ALIGNMENT) * ALIGNMENT)
        chunk = self._best_fit(size)
        chunk.owner, chunk.requested = owner, requested
        self.used[id(chunk)] = chunk
        self.in_use += chunk.size
        if self.in_use > self.peak:
            self.peak = self.in_use
            self.at_peak = None
        return chunk

    def free(self, chunk):
        """Take a chunk back and join it with its free neighbours."""
        self._remember_peak()
        del self.used[id(chunk)]
        self.in_use -= chunk.size
        chunk.owner = None
        for neighbour in (chunk.before, chunk.after):
            if neighbour is not None and id(neighbour) not in self.used:
                self._take_from_free(neighbour)
                chunk = self._join(chunk, neighbour)
        insort(self._free, chunk)

    def holders(self):
        """What was in use at the peak, as (owner, requested bytes, chunk bytes)."""
        self._remember_peak()
        return self.at_peak

    def _remember_peak(self):
        if self.at_peak is None:
            self.at_peak = [(chunk.owner, chunk.requested, chunk.size) for chunk in self.used.values()]

    def _best_fit(self, size):
        probe = Chunk(-1, size)
        position = bisect_left(self._free, probe)
        chunk = self._free.pop(position)
        if chunk.size >= 2 * size or chunk.size - size >= LARGEST_WASTE:
            rest = Chunk(chunk.start + size, chunk.size - size)
            rest.before, rest.after = chunk, chunk.after
            if rest.after is not None:
                rest.after.before = rest
            chunk.size, chunk.after = size, rest
            insort(self._free, rest)
        return chunk

    def _take_from_free(self, chunk):
        del self._free[bisect_left(self._free, chunk)]

    @staticmethod
    def _join(chunk, neighbour):
        first, second = sorted((chunk, neighbour), key=lambda part: part.start)
        first.size += second.size
        first.after = second.after
        if first.after is not None:
            first.after.before = first
        return first

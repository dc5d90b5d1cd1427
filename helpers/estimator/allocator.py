"""TensorFlow's best-fit allocator, replayed on numbers: which chunk each request gets and how high it goes."""

from bisect import bisect_left, insort

ALIGNMENT = 256
"""Every request is rounded up to a multiple of this."""
LARGEST_WASTE = 128 * 2**20
"""A chunk is split only if more than this, or more than half of it, would be left over."""
REGIONS = (2**46, 2**21)
"""The card, reserved in one piece, which never runs out here; and the 2 MiB that the first small allocation opened."""


class Chunk:
    """A stretch of the card, in use or free."""

    __slots__ = ("start", "size", "number", "owner", "requested", "before", "after")

    def __init__(self, start, size):
        self.start = start
        self.size = size
        self.number = None
        """Which of the requests it was handed out for; None while it is free."""
        self.owner = None
        self.requested = 0
        self.before = None
        self.after = None


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
        self._log = []
        """(number of the request, owner, requested bytes, chunk bytes); the owner is None when it is given back."""
        self._until_peak = 0
        self._requests = 0
        self._free = []
        """(size, start, chunk) of the free chunks, smallest first."""
        for index, size in enumerate(REGIONS):
            self._put(Chunk(2 * sum(REGIONS[:index]), size))

    def allocate(self, requested, owner):
        """Hand out a chunk for that many bytes; `owner` is anything that later tells whose it was."""
        return self._hand_out(max(ALIGNMENT, -(-requested // ALIGNMENT) * ALIGNMENT), requested, owner)

    def allocate_like(self, chunk):
        """Hand out another chunk of the size of one in use, to the same owner."""
        return self._hand_out(chunk.size, chunk.requested, chunk.owner)

    def _hand_out(self, size, requested, owner):
        chunk = self._best_fit(size)
        self._requests += 1
        chunk.number, chunk.requested = self._requests, requested
        self.own(chunk, owner)
        self.in_use += chunk.size
        if self.in_use > self.peak:
            self.peak = self.in_use
            self._until_peak = len(self._log)
        return chunk

    def own(self, chunk, owner):
        """Say whose a chunk in use is from now on."""
        chunk.owner = owner
        self._log.append((chunk.number, owner, chunk.requested, chunk.size))

    def free(self, chunk):
        """Take a chunk back and join it with its free neighbours."""
        self._log.append((chunk.number, None, 0, 0))
        self.in_use -= chunk.size
        chunk.number = chunk.owner = None
        before, after = chunk.before, chunk.after
        if before is not None and before.number is None:
            self._take(before)
            chunk = self._join(before, chunk)
        if after is not None and after.number is None:
            self._take(after)
            chunk = self._join(chunk, after)
        self._put(chunk)

    def holders(self):
        """What was in use at the peak, as (owner, requested bytes, chunk bytes)."""
        held = {}
        for number, *holder in self._log[: self._until_peak]:
            held[number] = holder
        return [holder for holder in held.values() if holder[0] is not None]

    def _best_fit(self, size):
        _, _, chunk = self._free.pop(bisect_left(self._free, (size,)))
        if chunk.size >= 2 * size or chunk.size - size >= LARGEST_WASTE:
            rest = Chunk(chunk.start + size, chunk.size - size)
            rest.before, rest.after = chunk, chunk.after
            if rest.after is not None:
                rest.after.before = rest
            chunk.size, chunk.after = size, rest
            self._put(rest)
        return chunk

    def _put(self, chunk):
        insort(self._free, (chunk.size, chunk.start, chunk))

    def _take(self, chunk):
        del self._free[bisect_left(self._free, (chunk.size, chunk.start))]

    @staticmethod
    def _join(first, second):
        first.size += second.size
        first.after = second.after
        if first.after is not None:
            first.after.before = first
        return first

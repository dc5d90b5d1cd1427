"""The map of a memory pool, as TensorFlow's allocator writes it into the log when an allocation fails.

It stands in the log of any job whose `TF_CPP_MIN_LOG_LEVEL` is 0, which is TensorFlow's own default.
"""

import re
from dataclasses import dataclass

from helpers.units import parse_bytes

FAILURE = re.compile(r"ran out of memory trying to allocate \S+ \(rounded to (\d+)\)")
PIECE = re.compile(r"\] (?:(Next region of size) (\d+)|(InUse|Free ) at \w+ of size (\d+))")
LIMIT = re.compile(r"memory_limit_: ([\d.]+[KMG]?i?B)")


@dataclass(frozen=True)
class Piece:
    """A stretch of a pool that is one tensor's, or free; in bytes."""

    size: int
    used: bool


@dataclass(frozen=True)
class PoolMap:
    """A pool at the moment in which it had no place for `request` bytes; `regions` are tuples of pieces."""

    request: int
    limit: int
    regions: tuple

    @property
    def reserved(self):
        return sum(piece.size for region in self.regions for piece in region)

    @property
    def used(self):
        return sum(piece.size for region in self.regions for piece in region if piece.used)

    @property
    def free(self):
        """Bytes in the pool that no tensor has, in however many pieces."""
        return self.reserved - self.used

    @property
    def largest_free(self):
        """The largest piece of them: a tensor needs one piece."""
        return max((piece.size for region in self.regions for piece in region if not piece.used), default=0)

    @property
    def not_reserved(self):
        """Bytes that the pool may still take from the card."""
        return self.limit - self.reserved


def read_pool_map(log):
    """The last map in a log; a ValueError says what to do if there is none."""
    failures = list(FAILURE.finditer(log))
    if not failures:
        raise ValueError("the log has no failed allocation of TensorFlow's allocator")
    text = log[failures[-1].end() :]
    limit = LIMIT.search(text)
    regions = _regions(text)
    if not limit or not regions:
        raise ValueError(
            "the log has the failed allocation but no map of the pool; "
            "set TF_CPP_MIN_LOG_LEVEL=0 before TensorFlow is imported"
        )
    return PoolMap(int(failures[-1][1]), parse_bytes(limit[1], name="memory_limit"), regions)


def _regions(text):
    regions = []
    for region, _, kind, size in PIECE.findall(text):
        if region:
            regions.append([])
        elif regions:
            regions[-1].append(Piece(int(size), kind == "InUse"))
    return tuple(map(tuple, regions))

"""What a rule is: the evidence it needs, what excludes it, and which kind and cause of death it speaks for."""

import re
from dataclasses import dataclass, field
from enum import IntEnum

HOST = ("host-ram", "container-limit")
DEVICE = ("vram",)


class Rank(IntEnum):
    """How far a rule is believed: of several the highest is, and of equals the one whose line comes last.

    Ranks down to PLAIN_ERROR are for kinds; from SURE on kinds and causes share them, and the comments name both.
    Of two rules that find the same line, the one that asks for more words deserves the higher rank.
    """

    SETTLED = 97  # nothing else counts: the doctor saw the budget exceeded, or the job ended well
    LIMIT_NAMED = 94  # the keeper of a limit says it was hit: a control group, Slurm, the virtual GPU, gRPC
    MEMORY_NAMED = 91  # names the memory that ran out, and can mean no other
    LOOK_ALIKE_NAMED = 89  # names something else that ran out or broke: open files, a quota, an address
    PART_NAMED = 87  # the part that refused or failed speaks for itself: the kernel, the card, /dev/shm
    SPECIAL_CASE = 85  # a general error that its words make special: a full disk, pinned memory
    DETAILED_ERROR = 81  # an error that tells the size or the thing it failed on
    PLAIN_ERROR = 78  # MemoryError, bad_alloc, ENOMEM, and no more
    SURE = 74  # general words of one meaning | caught in the act, such as a shuffle buffer that was filling
    LIKELY = 63  # a sentence that mostly means this | a line or a shape that one cause alone explains well
    FITTING = 57  # a death seen from the parent, a server or the keyboard | a line or a shape that fits
    SUSPECTED = 52  # an error or exit code of a whole family | a call that does this when it is overdone
    POSSIBLE = 48  # killed by nobody knows whom, memory in passing | what many jobs do that do not die of it
    OTHER_ERROR = 40  # some error or crash that does not speak of memory
    LAST_RESORT = 33  # a signal or a missing library alone | said where nothing says more: there was a limit
    FAINT = 22  # a warning that jobs outlive | less than that: who killed it is known, not why


HIGH = Rank.SURE  # from this rank on a rule is sure of itself
MEDIUM = Rank.OTHER_ERROR
NEAR_DEATH = 12  # a cause right before the death rises by so much: above the next rank or two

SOURCE_CODE = (  # a line of a program speaks of an error, it does not report one
    r"^\s*(?:except|raise|#|//|\*|def |class |assert )",
    r"(?:assertRaises|pytest\.raises|isinstance)\(",
    r"\bexcept\b.*:\s*$",
)
HARMLESS = (
    r"not a failure, but may mean",
    r"exceeds \d+% of (?:free )?system memory",
)  # warnings, whatever else they say
ADVICE = (  # a line that speaks of what may be, not of what is
    r"(?i:\b(?:hint|typically|usually|might|possibl[ey]|avoid|prevent|in case|if)\b)",
    r"(?i:\b(?:could|may|can) (?:be|cause)|\b(?:not|no|never) out[ -]of[ -]memory)",
)
UNUSED_CODE = (r"^[\s>0-9-]*(?:import |from [\w.]+ import |#)",)  # it was there, but it did nothing


@dataclass(frozen=True)
class Rule:
    """One pattern: a line that shows one of `evidence` and none of `excludes`.

    `check` asks the numbers of the log as well, or alone when there is no evidence to look for. `needs` names
    rules of which one must be found too, `unless` rules of which none may be; `at_end` looks at the last lines only.
    A rule speaks for a kind, a cause, or both, or serves others. The highest rank is believed. A cause is heard
    when the kind is the rule's own or one of `kinds`.
    """

    name: str
    evidence: tuple = ()
    excludes: tuple = ()
    check: object = None
    needs: tuple = ()
    unless: tuple = ()
    at_end: bool = False
    kind: str = ""
    rank: int = 0
    cause: str = ""
    cause_rank: int = 0
    kinds: tuple = ()
    pattern: object = field(init=False, compare=False, repr=False)
    exclusion: object = field(init=False, compare=False, repr=False)

    def __post_init__(self):
        object.__setattr__(self, "pattern", _any_of(self.evidence))
        object.__setattr__(self, "exclusion", _any_of(self.excludes))

    def found_in(self, line):
        """Whether the line is evidence for this rule."""
        return bool(self.pattern.search(line)) and not (self.exclusion and self.exclusion.search(line))


def _any_of(patterns):
    return re.compile("|".join(patterns)) if patterns else None


def kind(name, says, rank, *evidence, excludes=(), **more):
    """A rule that speaks for a kind, and with `cause=` for a cause, of the same rank unless given."""
    if "cause" in more:
        more.setdefault("cause_rank", rank)
    if more.get("cause") != "warning-only":
        excludes = (*excludes, *HARMLESS)
    return Rule(name, evidence, excludes, kind=says, rank=rank, **more)


def cause(name, says, rank, *evidence, kinds=HOST + DEVICE, excludes=(), **more):
    """A rule that speaks for a cause only: what the program was doing."""
    excludes = (*excludes, *UNUSED_CODE)
    return Rule(name, evidence, excludes, cause=says, cause_rank=rank, kinds=kinds, **more)


def sign(name, *evidence, **more):
    """A rule that speaks for nothing itself; others need it or give way to it."""
    return Rule(name, evidence, **more)

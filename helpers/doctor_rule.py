"""What a rule is: the evidence it needs, what excludes it, and which kind and cause of death it speaks for."""

import re
from dataclasses import dataclass, field

HOST = ("host-ram", "container-limit")
DEVICE = ("vram",)

HIGH = 70  # from this weight on a rule is sure of itself
MEDIUM = 40

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
    A rule speaks for a kind, a cause, or both, or serves others. The heaviest is believed. A cause is heard when
    the kind is the rule's own or one of `kinds`.
    """

    name: str
    evidence: tuple = ()
    excludes: tuple = ()
    check: object = None
    needs: tuple = ()
    unless: tuple = ()
    at_end: bool = False
    kind: str = ""
    weight: int = 0
    cause: str = ""
    cause_weight: int = 0
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


def kind(name, says, weight, *evidence, excludes=(), **more):
    """A rule that speaks for a kind, and with `cause=` for a cause, of the same weight unless given."""
    if "cause" in more:
        more.setdefault("cause_weight", weight)
    if more.get("cause") != "warning-only":
        excludes = (*excludes, *HARMLESS)
    return Rule(name, evidence, excludes, kind=says, weight=weight, **more)


def cause(name, says, weight, *evidence, kinds=HOST + DEVICE, excludes=(), **more):
    """A rule that speaks for a cause only: what the program was doing."""
    excludes = (*excludes, *UNUSED_CODE)
    return Rule(name, evidence, excludes, cause=says, cause_weight=weight, kinds=kinds, **more)


def sign(name, *evidence, **more):
    """A rule that speaks for nothing itself; others need it or give way to it."""
    return Rule(name, evidence, **more)

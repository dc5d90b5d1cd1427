"""What killed a job: a log, an exit code or both -> kind, cause, what it is not, what to try, which notebook."""

import html
from dataclasses import dataclass

from helpers.doctor import checks
from helpers.doctor.catalogue import CANNOT_TELL, CAUSES, KINDS, NOTEBOOKS
from helpers.doctor.log import read_file, read_stream, read_text, thin
from helpers.doctor.numbers import read_numbers
from helpers.doctor.rule import HIGH, MEDIUM, NEAR_DEATH
from helpers.doctor.rules.causes import CAUSE_RULES
from helpers.doctor.rules.killed import KILL_RULES
from helpers.doctor.rules.look_alikes import LOOK_ALIKE_RULES
from helpers.doctor.rules.refused import REFUSAL_RULES
from helpers.text import signal_name

KIND_RULES = KILL_RULES + REFUSAL_RULES + LOOK_ALIKE_RULES
MOST_EVIDENCE = 6
LONGEST_EVIDENCE = 300
NEAR_DEATH_LINES = 6
LAST_LINES = 2  # a rule that speaks of the end looks at so many lines
OVERRULED = {  # what a log also says, and what it is worth once something else decided
    "warning-only": "Not the allocator's warnings: by themselves they stop nothing.",
    "cuda-setup": "Not the messages about CUDA libraries or drivers: the job went on after them.",
    "no-memory-growth": "Not a broken cuDNN or cuBLAS: they only found no memory left.",
}
UNPROVEN_RULES = (
    "killed",
    "exit-137",
    "docker-137",
    "sigkill-under-pressure",
)  # SIGKILL by nobody knows whom
UNPROVEN = "Not proven: a plain `kill -9` leaves the same trace; the kernel's log (`sudo dmesg -T`) decides."
WINDOWS_CODES = {
    0xC0000005: "access violation, 0xC0000005",
    0xC0000017: "STATUS_NO_MEMORY, 0xC0000017",
    0xC000001D: "illegal instruction, 0xC000001D",
    0xC00000FD: "stack overflow, 0xC00000FD",
    0xC000012D: "COMMITMENT_LIMIT, 0xC000012D",
    0xC000013A: "SIGINT, 0xC000013A",
    0xC0000409: "fail fast, 0xC0000409",
}


@dataclass(frozen=True)
class Diagnosis:
    """What stopped a job and why, with the evidence; `print` it, or let a notebook show it."""

    kind: str
    cause: str
    confidence: str
    explanation: str
    evidence: tuple = ()
    is_not: tuple = ()
    advice: tuple = ()
    notebook: str = NOTEBOOKS["01"]

    @property
    def out_of_memory(self):
        """Whether memory of some sort ran out."""
        return KINDS[self.kind].out_of_memory

    def __str__(self):
        parts = [f"{self.kind}: {self.cause} ({self.confidence} confidence)", self.explanation]
        for title, lines in self._sections():
            parts += ["", title, *(f"  {line}" for line in lines)]
        return "\n".join([*parts, "", f"Notebook: {self.notebook}"])

    def _repr_html_(self):
        parts = [
            f"<b>{html.escape(self.kind)}: {html.escape(self.cause)}</b> ({html.escape(self.confidence)} confidence)"
        ]
        parts.append(f"<p>{html.escape(self.explanation)}</p>")
        for title, lines in self._sections():
            items = "".join(f"<li>{html.escape(line)}</li>" for line in lines)
            parts.append(f"<b>{html.escape(title)}</b><ul>{items}</ul>")
        return "<div>" + "".join(parts) + f"<p>Notebook: {html.escape(self.notebook)}</p></div>"

    def _sections(self):
        numbered = tuple(f"{number}. {step}" for number, step in enumerate(self.advice, 1))
        advice = "What to collect next" if self.cause == CANNOT_TELL else "What to try, in order"
        sections = (("It rests on", self.evidence), ("It is not", self.is_not), (advice, numbered))
        return [section for section in sections if section[1]]


def diagnose(text="", exit_code=None):
    """Say what stopped a job from its log (text or bytes), its exit code, or both.

    >>> diagnosis = diagnose("MemoryError: Unable to allocate 7.45 GiB for an array with shape (100000, 10000)")
    >>> diagnosis.kind, diagnosis.cause
    ('host-ram', 'whole-dataset-in-ram')
    """
    return _diagnose(read_text(text), exit_code)


def diagnose_file(path, exit_code=None):
    """Say what stopped a job from its log file, of any size; OSError says why the file cannot be read."""
    return _diagnose(read_file(path), exit_code)


def diagnose_stream(stream, exit_code=None):
    """Say what stopped a job from a binary stream, such as `sys.stdin.buffer`."""
    return _diagnose(read_stream(stream), exit_code)


def _diagnose(log, exit_code):
    code = exit_line(exit_code)
    if log.binary:
        return _unreadable("This is not a log: most of it is binary.", code)
    everything = [*log.lines, code] if code else list(log.lines)
    lines = thin(everything)
    if not lines:
        return _unreadable("The log is empty, and there is no exit code.", code)
    numbers = read_numbers(everything)
    found = _found(lines, numbers)
    kind, kind_rule = _kind(found)
    cause, cause_rule = _cause(found, kind, kind_rule)
    return _tell(kind, kind_rule, cause, cause_rule, found, lines, numbers)


def _unreadable(explanation, code):
    kind = KINDS["unknown"]
    evidence = (code,) if code else ()
    return Diagnosis("unknown", CANNOT_TELL, "low", explanation, evidence, kind.is_not, kind.collect)


def exit_line(exit_code):
    """The exit code as a line of the log: -9 and 137 are both SIGKILL.

    >>> exit_line(137)
    "the job's exit code: 137 (SIGKILL)"
    """
    if exit_code is None:
        return ""
    code = int(exit_code)
    name = WINDOWS_CODES.get(code % 2**32) or signal_name(code)
    return f"the job's exit code: {code}" + (f" ({name})" if name else "")


def _found(lines, numbers):
    """The rules whose evidence is there: name -> (rule, number of the last line that shows it, or -1)."""
    candidates = {}
    for rule in KIND_RULES + CAUSE_RULES:
        if rule.check and not rule.check(numbers):
            continue
        last = _last_line(rule, lines)
        if last is not None:
            candidates[rule.name] = (rule, last)
    return {
        name: (rule, last)
        for name, (rule, last) in candidates.items()
        if (not rule.needs or any(need in candidates for need in rule.needs))
        and not any(other in candidates for other in rule.unless)
    }


def _last_line(rule, lines):
    if rule.pattern is None:
        return -1
    first = max(0, len(lines) - LAST_LINES) if rule.at_end else 0
    for number in range(len(lines) - 1, first - 1, -1):
        if rule.found_in(lines[number]):
            return number
    return None


def _kind(found):
    speaking = [(rule.rank, last, rule.name) for rule, last in found.values() if rule.kind]
    if not speaking:
        return "unknown", None
    rule = found[max(speaking)[2]][0]
    return rule.kind, rule


def _cause(found, kind, kind_rule):
    """The highest cause among the rules that speak of this kind; what stands right before the death rises."""
    death = found[kind_rule.name][1] if kind_rule else -1
    near = range(max(0, death - NEAR_DEATH_LINES), death)
    speaking = [
        (rule.cause_rank + NEAR_DEATH * (last in near), last, rule.name)
        for rule, last in found.values()
        if rule.cause and (rule.kind == kind or kind in rule.kinds)
    ]
    if not speaking:
        return CANNOT_TELL, None
    rule = found[max(speaking)[2]][0]
    return rule.cause, rule


def _tell(kind, kind_rule, cause, cause_rule, found, lines, numbers):
    rank = min(kind_rule.rank if kind_rule else 0, _trust(cause_rule))
    confidence = "high" if rank >= HIGH else "medium" if rank >= MEDIUM else "low"
    sentences = [KINDS[kind].meaning]
    if cause in CAUSES:
        sentences.append(CAUSES[cause].meaning)
    if KINDS[kind].out_of_memory:
        sentences += checks.explain(numbers)
    overruled = {rule.cause for rule, _ in found.values() if rule.kind and rule.kind != kind}
    is_not = [*KINDS[kind].is_not, *(text for name, text in OVERRULED.items() if name in overruled)]
    if kind_rule and kind_rule.name in UNPROVEN_RULES:
        is_not.append(UNPROVEN)
    return Diagnosis(
        kind=kind,
        cause=cause,
        confidence=confidence,
        explanation=" ".join(sentences),
        evidence=_evidence(kind, kind_rule, cause_rule, found, lines),
        is_not=tuple(is_not),
        advice=CAUSES[cause].advice if cause in CAUSES else KINDS[kind].collect,
        notebook=NOTEBOOKS[CAUSES[cause].notebook if cause in CAUSES else "01"],
    )


def _trust(cause_rule):
    """How far a cause is to be trusted; one that comes with its kind is as sure as that."""
    if cause_rule is None:
        return HIGH
    return cause_rule.rank if cause_rule.kind else cause_rule.cause_rank


def _evidence(kind, kind_rule, cause_rule, found, lines):
    """The lines it rests on in their order: those of the two rules that decided, then those that agree."""
    deciding = [found[rule.name] for rule in (kind_rule, cause_rule) if rule]
    agreeing = sorted(
        ((rule, last) for rule, last in found.values() if rule.kind == kind), key=lambda item: -item[0].rank
    )
    numbers = []
    for _, last in [*deciding, *agreeing]:
        if last >= 0 and last not in numbers:
            numbers.append(last)
    return tuple(lines[number].strip()[:LONGEST_EVIDENCE] for number in sorted(numbers[:MOST_EVIDENCE]))

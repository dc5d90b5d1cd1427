"""The doctor's tables: every entry refers to something that exists, and no pattern can run away."""

import re

import pytest

from helpers.doctor.catalogue import CANNOT_TELL, CAUSES, KINDS, LOOK_ALIKES, MEMORY_CAUSES, NOTEBOOKS
from helpers.doctor.diagnosis import KIND_RULES
from helpers.doctor.rule import Rank
from helpers.doctor.rules.causes import CAUSE_RULES

try:
    from re import _constants as kinds_of_node
    from re import _parser as parser
except ImportError:  # Python 3.10
    import sre_constants as kinds_of_node
    import sre_parse as parser

RULES = KIND_RULES + CAUSE_RULES
NAMES = [rule.name for rule in RULES]
REPEATS = (kinds_of_node.MAX_REPEAT, kinds_of_node.MIN_REPEAT)


def test_every_rule_has_a_name_of_its_own():
    assert len(set(NAMES)) == len(NAMES)


@pytest.mark.parametrize("rule", RULES, ids=NAMES)
def test_a_rule_refers_to_what_exists(rule):
    assert not set(rule.needs + rule.unless) - set(NAMES)
    assert rule.kind in (*KINDS, "")
    assert rule.cause in (*CAUSES, "")
    assert set(rule.kinds) <= set(KINDS)
    assert rule.evidence or rule.check


@pytest.mark.parametrize("rule", RULES, ids=NAMES)
def test_what_a_rule_speaks_for_has_a_named_rank(rule):
    assert isinstance(rule.rank, Rank) == bool(rule.kind)
    assert isinstance(rule.cause_rank, Rank) == bool(rule.cause)


@pytest.mark.parametrize("rule", RULES, ids=NAMES)
def test_a_rule_speaks_for_a_kind_and_a_cause_that_go_together(rule):
    spoken_for = {rule.kind, *rule.kinds} - {""}
    if rule.cause:
        out_of_memory = {KINDS[kind].out_of_memory for kind in spoken_for}
        about_settings = spoken_for == {"gpu-config"} and rule.cause.startswith("growth")
        assert about_settings or out_of_memory == {rule.cause in MEMORY_CAUSES}


def test_every_published_cause_is_told_by_some_rule():
    assert set(CAUSES) == {rule.cause for rule in RULES} - {""}


@pytest.mark.parametrize("name", CAUSES)
def test_a_cause_has_a_sentence_advice_and_a_notebook(name):
    cause = CAUSES[name]
    assert cause.meaning.endswith(".")
    assert cause.advice
    assert cause.notebook in NOTEBOOKS
    assert name != CANNOT_TELL


def test_a_cause_is_either_memory_or_a_look_alike():
    assert not set(MEMORY_CAUSES) & set(LOOK_ALIKES)


@pytest.mark.parametrize("name", KINDS)
def test_a_kind_says_what_it_is_not_and_what_to_collect(name):
    assert KINDS[name].meaning.endswith(".")
    assert KINDS[name].is_not
    assert KINDS[name].collect
    assert not any(line.startswith(f"Not {name}") for line in KINDS[name].is_not)


@pytest.mark.parametrize("rule", [rule for rule in RULES if rule.pattern], ids=lambda rule: rule.name)
def test_no_pattern_repeats_an_endless_repeat(rule):
    """`(a+)+` takes exponential time on some lines; without it a line of bounded length costs a bounded time."""
    for pattern in rule.evidence + rule.excludes:
        assert not any(_has_endless(inner) for inner in _endless_repeats(parser.parse(pattern)))


def test_the_check_of_patterns_finds_one_that_runs_away():
    assert any(_has_endless(inner) for inner in _endless_repeats(parser.parse(r"(?:x|(a+)b)*c")))
    re.compile(r"(?:x|(a+)b)*c")


def _endless_repeats(nodes):
    """The insides of every repeat without an upper bound."""
    for operation, argument in _walk(nodes):
        if operation in REPEATS and argument[1] == kinds_of_node.MAXREPEAT:
            yield argument[2]


def _has_endless(nodes):
    return any(True for _ in _endless_repeats(nodes))


def _walk(nodes):
    """Every node of a parsed pattern, with its argument."""
    for node in nodes:
        if not (isinstance(node, tuple) and len(node) == 2):
            continue
        operation, argument = node
        yield operation, argument
        for part in _parts(argument):
            yield from _walk(part)


def _parts(argument):
    if isinstance(argument, parser.SubPattern):
        yield argument
    elif isinstance(argument, (tuple, list)):
        for inner in argument:
            yield from _parts(inner)

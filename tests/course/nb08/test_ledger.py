"""A card that processes share: what one has reserved the next cannot have, until the process ends and no sooner."""

import json
import subprocess
import sys

import psutil
import pytest

from helpers.course.nb08 import ledger as cards
from helpers.course.nb08.ledger import Card, CardIsFull, GraphicsCard, size_of_card

MB = 10**6
SIZE = 512 * MB
REST = 51_200_000
"""What the first process leaves: a tenth of the card."""

ANOTHER = """
import sys
from helpers.course.nb08.ledger import Card, CardIsFull
card = Card(int(sys.argv[1]), sys.argv[2])
for line in sys.stdin:
    try:
        print(eval(line), flush=True)
    except CardIsFull as error:
        print("full:", error, flush=True)
"""


class Neighbour:
    """Another process on the same card; `ask` lets it evaluate a line and returns what it says."""

    def __init__(self, folder):
        command = [sys.executable, "-c", ANOTHER, str(SIZE), str(folder)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def end(self):
        self.process.kill()
        self.process.wait()


@pytest.fixture
def card(tmp_path):
    return Card(SIZE, tmp_path)


@pytest.fixture
def neighbour(tmp_path):
    found = Neighbour(tmp_path)
    yield found
    found.end()


def test_the_first_takes_all_but_a_tenth_and_the_second_gets_that_tenth(card, neighbour):
    assert card.book("first") == SIZE - REST
    assert neighbour.ask('card.book("second")') == str(REST)
    assert card.free() == 0
    assert [(holder.name, holder.reserved) for holder in card.holders()] == [
        ("first", SIZE - REST),
        ("second", REST),
    ]


def test_what_a_process_holds_comes_back_when_it_ends_and_no_sooner(card, neighbour):
    neighbour.ask('card.book("neighbour")')
    neighbour.ask("card.follow(reserved=0, used=0)")
    assert card.free() == REST
    neighbour.end()
    assert card.free() == SIZE
    assert card.holders() == []


def test_a_process_that_nobody_has_reaped_yet_holds_nothing(card, neighbour):
    neighbour.ask('card.book("neighbour")')
    neighbour.process.kill()
    while psutil.Process(neighbour.process.pid).status() != psutil.STATUS_ZOMBIE:
        pass
    assert card.free() == SIZE


def test_another_process_with_the_number_of_a_dead_one_does_not_inherit_its_share(card):
    card.book("first")
    file = next(card._file.parent.glob("*.json"))
    entries = json.loads(file.read_text())
    entries[0]["born"] -= 3600
    file.write_text(json.dumps(entries))
    assert card.holders() == []


def test_a_full_card_refuses_the_next_process_and_names_the_holders(card, neighbour):
    card.book("first", memory_limit=SIZE)
    answer = neighbour.ask('card.book("second")')
    assert answer.startswith("full: a device needs 32 MiB, and the card has 0 B of 512 MB left")
    assert answer.endswith("held by first 512 MB")


def test_a_memory_limit_takes_that_much_or_what_is_left(card, neighbour):
    assert neighbour.ask('card.book("a", memory_limit="300 MB")') == str(300 * MB)
    assert card.book("b", memory_limit="300 MB") == 212 * MB


def test_growth_books_what_the_pool_reserves_and_never_gives_back(card, neighbour):
    assert card.book("grows", growth=True) == SIZE - REST
    assert card.free() == SIZE
    card.follow(reserved=100 * MB, used=80 * MB)
    assert card.free() == 412 * MB
    assert neighbour.ask('card.book("late", growth=True)') == str(412 * MB - REST)
    card.follow(reserved=100 * MB, used=0)
    assert (card.free(), card.holders()[0].used) == (412 * MB, 0)


def test_a_process_cannot_grow_into_what_another_holds(card, neighbour):
    card.book("first", growth=True)
    card.follow(reserved=300 * MB, used=300 * MB)
    neighbour.ask('card.book("second", growth=True)')
    assert neighbour.ask("card.follow(reserved=200_000_000, used=0)") == "None"
    with pytest.raises(CardIsFull, match="first grows to 320 MB, and the card has 12 MB of 512 MB left"):
        card.follow(reserved=320 * MB, used=300 * MB)
    assert card.free() == 12 * MB


def test_many_processes_that_write_at_once_lose_nothing(card, tmp_path):
    neighbours = [Neighbour(tmp_path) for _ in range(4)]
    for number, other in enumerate(neighbours):
        other.ask(f'card.book("{number}", growth=True)')
    for other in neighbours:
        other.process.stdin.write("[card.follow(step * 100_000, step) for step in range(301)][-1]\n")
        other.process.stdin.flush()
    answers = [other.process.stdout.readline().strip() for other in neighbours]
    assert answers == ["None"] * 4
    assert sorted((holder.name, holder.reserved) for holder in card.holders()) == [
        (str(number), 30 * MB) for number in range(4)
    ]
    for other in neighbours:
        other.end()


def test_the_last_of_many_finds_the_card_full(card, tmp_path):
    neighbours = [Neighbour(tmp_path) for _ in range(6)]
    answers = sorted(other.ask('card.book("x", memory_limit="100 MB")') for other in neighbours)
    assert answers[:5] == ["100000000"] * 5
    assert answers[5].startswith("full: ")
    for other in neighbours:
        other.end()


@pytest.mark.parametrize(
    ("size", "words"),
    [
        ("512", "has no unit"),
        ("8 MB", "has no room for a device"),
        (0, "not a positive"),
        ("much", "is not a size"),
    ],
)
def test_a_card_of_no_size_is_refused(size, words):
    with pytest.raises(ValueError, match=words):
        size_of_card(size)


def test_a_limit_without_a_unit_and_a_limit_with_growth_are_refused(card):
    with pytest.raises(ValueError, match='memory_limit="200" has no unit'):
        card.book("first", memory_limit="200")
    with pytest.raises(ValueError, match="a limit switches growth off"):
        card.book("first", memory_limit="200 MB", growth=True)
    with pytest.raises(LookupError, match="book it first"):
        card.follow(reserved=0, used=0)


def test_on_a_real_card_the_driver_says_who_holds_what(tmp_path, monkeypatch):
    card = cards.gpu.Gpu("A card", 8 * 2**30, 8 * 2**30)
    monkeypatch.setattr(cards.gpu, "gpus", lambda: [card])
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    found = cards.open_card("512 MB", tmp_path)
    assert isinstance(found, GraphicsCard)
    assert (found.size, found.book("first"), found.book("first", memory_limit=200 * MB)) == (
        card.total,
        None,
        200 * MB,
    )
    found.follow(reserved=None, used=7)
    own = found.holders()[0].pid
    monkeypatch.setattr(cards.gpu, "processes_on_the_gpu", lambda: {own: 300 * MB, 4711: 5})
    assert [(holder.reserved, holder.used) for holder in found.holders()] == [(300 * MB, 7)]

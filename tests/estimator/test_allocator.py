"""The allocator: whatever is asked of it, in whatever order, its chunks never overlap and its books are right."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.estimator.allocator import ALIGNMENT, LARGEST_WASTE, REGIONS, Allocator

MB = 2**20
SIZES = st.one_of(st.integers(0, 5000), st.integers(0, 600 * MB))
ACTIONS = st.lists(
    st.one_of(st.tuples(st.just("allocate"), SIZES), st.tuples(st.just("free"), st.integers(0)))
)
many = settings(max_examples=200, deadline=None, database=None)


def perform(actions):
    """Do it all, and yield the allocator with the chunks in use after each action."""
    allocator, live = Allocator(), []
    for number, (action, argument) in enumerate(actions):
        if action == "allocate":
            live.append(allocator.allocate(argument, owner=number))
        elif live:
            allocator.free(live.pop(argument % len(live)))
        yield allocator, live


def rounded(size):
    return max(1, -(-size // ALIGNMENT)) * ALIGNMENT


@many
@given(ACTIONS)
def test_chunks_in_use_never_overlap(actions):
    for _, live in perform(actions):
        stretches = sorted((chunk.start, chunk.start + chunk.size) for chunk in live)
        assert all(end <= start for (_, end), (start, _) in pairwise(stretches))


@many
@given(ACTIONS)
def test_a_chunk_holds_its_wantedand_wastes_no_more_than_tensorflow_does(actions):
    for _, live in perform(actions):
        for chunk in live:
            needed = rounded(chunk.requested)
            assert needed <= chunk.size < 2 * needed
            assert chunk.size - needed < LARGEST_WASTE
            assert chunk.size % ALIGNMENT == 0


@many
@given(ACTIONS)
def test_in_use_is_the_sum_of_the_chunks_and_the_peak_the_highest_sum_so_far(actions):
    highest = 0
    for allocator, live in perform(actions):
        highest = max(highest, sum(chunk.size for chunk in live))
        assert allocator.in_use == sum(chunk.size for chunk in live)
        assert allocator.peak == highest


@many
@given(ACTIONS)
def test_the_holders_are_those_that_were_in_use_at_the_peak(actions):
    at_peak, highest = [], 0
    for allocator, live in perform(actions):
        if allocator.in_use > highest:
            highest = allocator.in_use
            at_peak = [[chunk.owner, chunk.requested, chunk.size] for chunk in live]
        assert sorted(allocator.holders()) == sorted(at_peak)


@many
@given(ACTIONS)
def test_when_all_is_given_back_the_regions_are_whole_again(actions):
    allocator, live = Allocator(), []
    for allocator, live in perform(actions):  # noqa: B007 the last ones are used
        pass
    for chunk in live:
        allocator.free(chunk)
    assert allocator.in_use == 0
    whole = [allocator.allocate(size, owner="all of it") for size in REGIONS]
    assert [chunk.size for chunk in whole] == list(REGIONS)


def gaps(allocator, *sizes):
    """Leave free places of those sizes, with a chunk in use after each; returns where they start."""
    places = []
    for size in sizes:
        places.append(allocator.allocate(size, "gap"))
        allocator.allocate(4 * MB, "wall")
    for place in places:
        allocator.free(place)
    return [place.start for place in places]


def test_a_wantedgets_the_smallest_place_in_which_it_fits():
    allocator = Allocator()
    large, small, too_small = gaps(allocator, 64 * MB, 48 * MB, 32 * MB)
    assert allocator.allocate(40 * MB, "tensor").start == small
    assert allocator.allocate(40 * MB, "tensor").start == large
    assert allocator.allocate(20 * MB, "tensor").start == too_small


@pytest.mark.parametrize(
    ("place", "wanted", "handed_out"),
    [
        (64 * MB, 33 * MB, 64 * MB),
        (64 * MB, 32 * MB, 32 * MB),
        (400 * MB, 273 * MB, 400 * MB),
        (400 * MB, 272 * MB, 272 * MB),
    ],
)
def test_a_place_is_cut_only_if_half_of_it_or_128_mib_would_be_left(place, wanted, handed_out):
    allocator = Allocator()
    (start,) = gaps(allocator, place)
    chunk = allocator.allocate(wanted, "tensor")
    assert (chunk.start, chunk.size) == (start, handed_out)


def test_a_twin_has_the_size_and_the_owner_of_the_other():
    allocator = Allocator()
    chunk = allocator.allocate(5 * MB, "tensor")
    twin = allocator.allocate_like(chunk)
    assert (twin.size, twin.requested, twin.owner) == (chunk.size, chunk.requested, "tensor")
    assert twin.start != chunk.start


def test_who_takes_a_chunk_over_holds_it_at_the_next_peak():
    allocator = Allocator()
    chunk = allocator.allocate(1000, "gradient")
    allocator.own(chunk, "weights")
    allocator.allocate(1000, "batch")
    assert [owner for owner, _, _ in allocator.holders()] == ["weights", "batch"]

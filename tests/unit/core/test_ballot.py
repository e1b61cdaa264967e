"""Ballots: packed, they compare as they do unpacked; the token is that comparison as one integer."""

from hypothesis import given
from hypothesis import strategies as st

from mesh.core.ballot import BALLOT_BYTES, N_MAX, NO_BALLOT, Ballot, first_ballot
from mesh.core.ids import NodeId

numbers = st.one_of(st.integers(0, 3), st.integers(0, 2**32 - 1))
ballots = st.builds(
    Ballot,
    numbers,
    numbers,
    st.one_of(st.integers(0, 3), st.integers(0, N_MAX), st.sampled_from([2**32 - 1, 2**32, N_MAX])),
    st.one_of(st.integers(0, 3), st.integers(0, 2**64 - 1)).map(NodeId),
)


@given(ballots, ballots)
def test_packed_ballots_and_tokens_compare_as_ballots_do(one: Ballot, other: Ballot) -> None:
    assert (one < other) == (one.pack() < other.pack()) == (one.token < other.token)
    assert (one == other) == (one.pack() == other.pack()) == (one.token == other.token)


@given(ballots)
def test_a_ballot_survives_packing(ballot: Ballot) -> None:
    assert len(ballot.pack()) == BALLOT_BYTES
    assert Ballot.unpack(ballot.pack()) == ballot


@given(ballots)
def test_no_ballot_is_below_every_other(ballot: Ballot) -> None:
    assert ballot == NO_BALLOT or ballot > NO_BALLOT


def test_a_newer_domain_outweighs_epoch_number_and_node() -> None:
    assert Ballot(1, 9, N_MAX, NodeId(9)) < Ballot(2, 1, 0, NodeId(1))
    assert Ballot(1, 1, N_MAX, NodeId(9)) < Ballot(1, 2, 0, NodeId(1))
    assert Ballot(1, 1, 1, NodeId(9)) < Ballot(1, 1, 2, NodeId(1))


@given(numbers, numbers, numbers)
def test_first_ballots_of_many_registers_are_one_object(domain: int, epoch: int, node: int) -> None:
    first = first_ballot(domain, epoch, NodeId(node))
    assert first == Ballot(domain, epoch, 0, NodeId(node))
    assert Ballot.unpack(first.pack()) is first

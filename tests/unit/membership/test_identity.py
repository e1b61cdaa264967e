"""Who this node is: its incarnations, its sessions, its name."""

from dataclasses import replace

import pytest

from mesh.core.address import Address
from mesh.core.ids import NO_MESH
from mesh.errors import ConfigError
from mesh.membership.identity import INCARNATION_MAX, Identity
from mesh.wire.records import CARD_BYTES_MAX, Availability, Metadata, decode_card, encode_card
from tests.unit.membership.pump import card


def test_refutation_is_above_both_what_was_said_and_what_was_known() -> None:
    identity = Identity(card(1, incarnation=5), NO_MESH)
    assert identity.refute(2)
    assert identity.card.incarnation == 6
    assert identity.refute(9)
    assert identity.card.incarnation == 10
    assert decode_card(identity.card_bytes) == identity.card


def test_incarnation_at_its_maximum_is_no_crash() -> None:
    identity = Identity(card(1), NO_MESH)
    assert identity.refute(INCARNATION_MAX - 1)
    assert identity.card.incarnation == INCARNATION_MAX
    assert not identity.refute(INCARNATION_MAX)
    assert not identity.refute(0)
    assert identity.card.incarnation == INCARNATION_MAX


def test_raised_boot_starts_a_new_count_of_incarnations() -> None:
    identity = Identity(card(1, boot=3, incarnation=4), NO_MESH)
    assert identity.raise_boot(7)
    assert (identity.card.boot, identity.card.incarnation) == (8, 0)


def test_boot_at_its_maximum_is_no_crash() -> None:
    identity = Identity(card(1, boot=3), NO_MESH)
    assert not identity.raise_boot(2**48 - 1)
    assert identity.card.boot == 3


def test_another_name_is_told_under_a_higher_incarnation() -> None:
    identity = Identity(card(1), NO_MESH)
    identity.rename()
    assert (identity.card.name, identity.card.incarnation) == ("host-1-00d3", 1)


def test_card_that_could_outgrow_the_limit_later_is_refused_at_start() -> None:
    size = next(
        n for n in range(2000) if len(encode_card(card(1, meta=meta_of(n)))) == CARD_BYTES_MAX
    )
    with pytest.raises(ConfigError):
        Identity(card(1, meta=meta_of(size)), NO_MESH)
    grown = Identity(card(1, meta=meta_of(size - 20)), NO_MESH)
    grown.raise_boot(2**48 - 2)
    assert grown.refute(INCARNATION_MAX - 1)


def test_where_a_card_has_no_room_for_the_reason_it_takes_no_work_that_is_left_out() -> None:
    size = next(n for n in range(2000) if len(encode_card(card(1, meta=meta_of(n)))) > 950)
    identity = Identity(card(1, meta=meta_of(size)), NO_MESH)
    declared = replace(identity.card.meta, availability=Availability.UNFIT, why="y" * 100)
    assert identity.declare(declared)
    assert identity.card.meta == replace(declared, why="")
    identity.raise_boot(2**48 - 2)
    assert identity.refute(INCARNATION_MAX - 1)
    assert identity.declare(replace(declared, why="short")) is False, "no incarnation is left"


def meta_of(size: int) -> Metadata:
    """Metadata of about `size` bytes."""
    labels = [(f"{n:02}", "v" * min(62, size - n * 66)) for n in range(32) if size > n * 66]
    return Metadata(labels=tuple(labels))


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("2001:DB8:0:0::1", "2001:db8::1"),
        ("fe80::1%eth0", "fe80::1"),
    ],
)
def test_the_own_address_is_spelled_as_others_read_it(host: str, expected: str) -> None:
    identity = Identity(card(1, address=Address(host, 7)), NO_MESH)
    assert identity.address == Address(expected, 7)
    assert decode_card(identity.card_bytes) == identity.card

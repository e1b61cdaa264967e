"""The key ring: registers that merge to the same ring in any order."""

from __future__ import annotations

import itertools

import pytest

from mesh.errors import ConfigError, DecodeError
from mesh.seal.key import Key, read_key
from mesh.seal.ring import KEYS_MAX, KeyRing, decode_ring, read_ring, ring_of

OLD, NEW, THIRD = (Key(bytes([i]) * 32) for i in (1, 2, 3))


def _copy(ring: KeyRing) -> KeyRing:
    return decode_ring(ring.to_bytes())


def test_id_and_derived_keys_tell_nothing_apart_but_purpose_and_context() -> None:
    derived = {
        OLD.derive(b"a"),
        OLD.derive(b"a", b"x"),
        OLD.derive(b"ax"),
        OLD.derive(b"b"),
        NEW.derive(b"a"),
        OLD.secret,
    }
    assert len(derived) == 6
    assert OLD.secret.hex() not in repr(OLD)


def test_key_survives_text_and_errors_do_not_repeat_it() -> None:
    assert read_key(OLD.to_text()) == OLD
    for text in (OLD.to_text()[:-5], "AAAA", "no key", "ключ"):
        with pytest.raises(ConfigError) as caught:
            read_key(text)
        assert text not in str(caught.value)


def test_first_key_of_a_file_seals_and_the_others_open() -> None:
    ring = read_ring(f"# a comment\n\n{OLD.to_text()}\n{NEW.to_text()}\n")
    assert list(ring) == [OLD, NEW]
    assert ring.primary == OLD


def test_added_key_opens_but_does_not_seal() -> None:
    empty = KeyRing()
    empty.add(OLD)
    for ring in (ring_of([OLD]), empty):
        assert ring.add(NEW)
        assert not ring.add(NEW)
        assert ring.primary == OLD
        assert ring.find(NEW.key_id) == NEW


def test_rotation_ends_with_the_new_key_alone_and_survives_text_and_bytes() -> None:
    ring = ring_of([OLD])
    ring.add(NEW)
    ring.use(NEW.key_id)
    assert ring.primary == NEW
    ring.remove(OLD.key_id)
    for copy in (read_ring(ring.to_text()), _copy(ring)):
        assert list(copy) == [NEW]
        assert copy.digest == ring.digest
    assert OLD.to_text() not in ring.to_text()
    assert OLD.secret not in ring.to_bytes()


def test_sealing_key_cannot_be_removed_nor_a_strange_one_used() -> None:
    ring = ring_of([OLD])
    with pytest.raises(ConfigError, match="use another before"):
        ring.remove(OLD.key_id)
    with pytest.raises(ConfigError, match="a key of the ring"):
        ring.use(NEW.key_id)
    with pytest.raises(ConfigError, match="a key of the ring"):
        ring.remove(NEW.key_id)


def test_removed_key_does_not_come_back_with_an_old_file() -> None:
    ring = ring_of([OLD])
    ring.add(NEW)
    ring.use(NEW.key_id)
    ring.remove(OLD.key_id)
    ring.merge(read_ring(OLD.to_text()))
    assert list(ring) == [NEW]


def test_member_that_slept_through_a_rotation_takes_it_over_at_once() -> None:
    sleeper, ring = ring_of([OLD]), ring_of([OLD])
    ring.add(NEW)
    ring.use(NEW.key_id)
    ring.remove(OLD.key_id)
    assert sleeper.merge(ring)
    assert sleeper.digest == ring.digest
    assert not sleeper.merge(ring)


def test_changes_at_three_nodes_at_once_merge_to_one_ring_in_any_order() -> None:
    base = ring_of([OLD])
    base.add(NEW)
    a, b, c = _copy(base), _copy(base), _copy(base)
    a.use(NEW.key_id)
    b.add(THIRD)
    c.remove(NEW.key_id)
    digests = set()
    for order in itertools.permutations((a, b, c)):
        merged = _copy(order[0])
        for other in order[1:]:
            merged.merge(_copy(other))
            merged.merge(_copy(other))
        digests.add(merged.digest)
        assert merged.primary in list(merged)
    assert len(digests) == 1


def test_sides_that_removed_each_others_keys_do_not_leave_a_third_without_any() -> None:
    third = ring_of([OLD, NEW])
    a, b = _copy(third), _copy(third)
    a.use(NEW.key_id)
    a.remove(OLD.key_id)
    b.use(OLD.key_id)
    b.remove(NEW.key_id)
    assert third.merge(a)
    kept = third.digest
    assert not third.merge(b)
    assert list(third) == [NEW]
    assert third.digest == kept == _copy(third).digest


def test_ring_takes_no_more_keys_than_its_bound() -> None:
    ring = ring_of([Key(bytes([i]) * 32) for i in range(KEYS_MAX)])
    with pytest.raises(ConfigError, match="at once: remove one"):
        ring.add(Key(b"x" * 32))


def test_key_is_named_by_the_beginning_of_its_id() -> None:
    ring = ring_of([OLD, NEW])
    assert ring.named(NEW.name[:6].upper()) == NEW
    for text in ("", "zz", "0" * 9):
        with pytest.raises(ConfigError, match="the id of one key of the ring"):
            ring.named(text)


def test_key_given_in_place_of_its_id_is_not_repeated() -> None:
    with pytest.raises(ConfigError, match="found 44 characters") as caught:
        ring_of([OLD]).named(NEW.to_text())
    assert NEW.to_text()[:8] not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    ["", "# nothing\n", "key x AAAA\n", "use 1\n", "use -1 00000000\n", "gone 1 zz\n", "a b c d\n"],
)
def test_file_that_is_no_ring_is_refused_in_plain_words(text: str) -> None:
    with pytest.raises(ConfigError, match="expected"):
        read_ring(text)


@pytest.mark.parametrize(
    "data",
    [b"", b"\xc0", b"\x92\x90\x92\x00\xc4\x00", b"x" * 9000, b"\x92\x91\x93\x01\x02\x03\x90"],
)
def test_bytes_that_are_no_ring_are_refused(data: bytes) -> None:
    with pytest.raises(DecodeError):
        decode_ring(data)

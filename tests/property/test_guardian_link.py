"""Whatever bytes a node sends its guardian, they are an order or a ValueError."""

from __future__ import annotations

from contextlib import suppress
from unittest.mock import Mock

from hypothesis import given
from hypothesis import strategies as st

from mesh.guardian import link

kinds = st.integers(0, 255).map(lambda kind: bytes((kind,)))


@given(st.binary(max_size=64) | st.tuples(kinds, st.binary(max_size=1600)).map(b"".join))
def test_any_bytes_are_an_order_or_garbage(packet: bytes) -> None:
    orders = Mock()
    try:
        link.deliver(packet, orders)
    except ValueError:
        assert orders.mock_calls == []
    else:
        assert len(orders.mock_calls) == 1


@given(st.binary(max_size=64))
def test_any_bytes_are_an_answer_or_garbage(packet: bytes) -> None:
    with suppress(ValueError):
        kind, number, left = link.decode_answer(packet)
        is_cleared = kind == link.CLEARED
        again = (
            link.encode_cleared(number, left) if is_cleared else link.encode_run_id(kind, number)
        )
        assert packet == again

from mesh.membership.member import Member
from mesh.membership.names import Names
from mesh.wire.records import Cause, State
from tests.unit.membership.pump import card, card_bytes, node_id


def member(number: int, name: str, state: State = State.ALIVE) -> Member:
    return Member(
        card(number, name=name), card_bytes(number, name=name), 1, 0, state, Cause.NONE, 0.0
    )


def test_second_living_holder_is_news_once() -> None:
    names = Names()
    assert names.file(member(1, "ada")) is None
    assert names.file(member(2, "ada")) == node_id(1)
    assert names.file(member(2, "ada")) is None
    assert names.is_shared("ada")


def test_dead_hold_no_name() -> None:
    names = Names()
    names.file(member(1, "ada"))
    names.file(member(1, "ada", State.DEAD))
    assert names.holder("ada", but=node_id(9)) is None
    assert names.file(member(2, "ada")) is None


def test_member_may_change_its_name() -> None:
    names = Names()
    names.file(member(1, "ada"))
    names.file(member(1, "bob"))
    assert names.holder("ada", but=node_id(9)) is None
    assert names.holder("bob", but=node_id(9)) == node_id(1)


def test_holder_is_another_member_than_the_one_who_asks() -> None:
    names = Names()
    names.file(member(1, "ada"))
    assert names.holder("ada", but=node_id(1)) is None

"""Two living members with one name are news, once."""

from mesh.core.ids import NodeId
from mesh.membership.names import Names
from tests.unit.membership.pump import card, node_id


def file(names: Names, number: int, name: str, *, is_living: bool = True) -> NodeId | None:
    return names.file(card(number, name=name), is_living=is_living)


def test_second_living_holder_is_news_once() -> None:
    names = Names()
    assert file(names, 1, "ada") is None
    assert file(names, 2, "ada") == node_id(1)
    assert file(names, 2, "ada") is None
    assert names.is_shared("ada")


def test_dead_hold_no_name() -> None:
    names = Names()
    file(names, 1, "ada")
    file(names, 1, "ada", is_living=False)
    assert names.holder("ada", but=node_id(9)) is None
    assert file(names, 2, "ada") is None


def test_member_may_change_its_name() -> None:
    names = Names()
    file(names, 1, "ada")
    file(names, 1, "bob")
    assert names.holder("ada", but=node_id(9)) is None
    assert names.holder("bob", but=node_id(9)) == node_id(1)


def test_holder_is_another_member_than_the_one_who_asks() -> None:
    names = Names()
    file(names, 1, "ada")
    assert names.holder("ada", but=node_id(1)) is None


def test_of_several_holders_the_one_that_stays_is_the_only_one() -> None:
    names = Names()
    file(names, 1, "ada")
    assert file(names, 2, "ada") == node_id(1)
    assert file(names, 3, "ada") == node_id(1)
    file(names, 1, "ada", is_living=False)
    assert names.holder("ada", but=node_id(9)) == node_id(2), "the others in the order they came"
    assert names.is_shared("ada")
    file(names, 2, "ada", is_living=False)
    assert not names.is_shared("ada")
    assert names.holder("ada", but=node_id(9)) == node_id(3)
    assert file(names, 1, "ada") == node_id(3)

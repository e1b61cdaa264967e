"""Who asks to be let in: newcomers, the known, impostors."""

from mesh.wire.records import Cause, State
from mesh.wire.swim_messages import Join, Refused, Welcome
from tests.unit.membership.pump import Host, Pump, address, are_equal, card_bytes, node_id


def ask(pump: Pump, host: Host, card: bytes, replaces: int = 0) -> object:
    reply, outputs = host.swim.handle_request(pump.now, node_id(9), Join(card, 0, replaces, ()))
    pump._carry_out(host, outputs)
    return reply


def code_of(reply: object) -> str:
    assert isinstance(reply, Refused)
    return reply.code


def test_newcomer_is_let_in_and_gets_all_members() -> None:
    pump = Pump()
    first = pump.mesh(3)[0]
    reply = ask(pump, first, card_bytes(9))
    assert isinstance(reply, Welcome)
    assert reply.known_boot == 0
    assert len(reply.members) == 4


def test_asking_twice_is_being_let_in_twice() -> None:
    pump = Pump()
    first = pump.mesh(2)[0]
    for _ in range(2):
        assert isinstance(ask(pump, first, card_bytes(9)), Welcome)
    assert len(first.swim.table) == 3


def test_known_later_boot_is_told_and_nothing_changes() -> None:
    pump = Pump()
    first, second = pump.mesh(2)
    first.swim.table.apply_card(pump.now, card_bytes(2, boot=7))
    reply = ask(pump, first, card_bytes(2, boot=3))
    assert reply == Welcome(7, ())
    assert first.knows(second).boot == 7


def test_a_number_whose_session_is_over_is_not_taken_again() -> None:
    pump = Pump()
    first, second = pump.mesh(2)
    boot = second.swim.identity.card.boot
    first.swim.table.apply_verdict(pump.now, node_id(2), (boot, 0, State.DEAD, Cause.SILENT))
    first.swim.rumours.suspicions.close(node_id(2))
    assert ask(pump, first, card_bytes(2, boot=boot)) == Welcome(boot + 1, ())


def test_a_node_whose_disk_and_clock_were_set_back_takes_a_number_of_its_own() -> None:
    pump = Pump()
    hosts = pump.mesh(3)
    old = hosts[2].swim.identity
    pump.kill(hosts[2])
    pump.run(5.0)
    back = pump.add(3, 1, boot=old.card.boot, mesh_id=old.mesh_id)
    pump.run(2.0)
    assert back.swim.identity.card.boot > old.card.boot
    assert back.persisted[-1] == {"boot": back.swim.identity.card.boot}
    assert are_equal([*hosts[:2], back])


def test_name_of_a_living_member_is_refused_with_the_holders_card() -> None:
    pump = Pump()
    first, second = pump.mesh(2)
    reply = ask(pump, first, card_bytes(9, name="host-2"))
    assert code_of(reply) == "name_taken"
    assert isinstance(reply, Refused)
    assert reply.about == second.swim.identity.card_bytes
    assert first.swim.table.get(node_id(9)) is None


def test_name_of_the_gate_itself_is_refused() -> None:
    pump = Pump()
    first = pump.add(1)
    assert code_of(ask(pump, first, card_bytes(9, name="host-1"))) == "name_taken"


def test_name_of_a_dead_member_is_free() -> None:
    pump = Pump()
    first, second = pump.mesh(2)
    pump.kill(second)
    pump.run(5.0)
    assert isinstance(ask(pump, first, card_bytes(9, name="host-2")), Welcome)


def test_member_may_come_back_under_its_own_name_and_address() -> None:
    pump = Pump()
    first, _ = pump.mesh(2)
    assert isinstance(ask(pump, first, card_bytes(2, boot=2)), Welcome)


def test_living_id_at_another_address_is_refused_unless_it_was_found_silent() -> None:
    pump = Pump()
    first, _ = pump.mesh(2)
    moved = card_bytes(2, boot=2, address=address(40))
    assert code_of(ask(pump, first, moved)) == "same_id"
    assert code_of(ask(pump, first, moved, replaces=9)) == "same_id"
    assert isinstance(ask(pump, first, moved, replaces=1), Welcome)


def test_dead_id_may_come_back_at_another_address() -> None:
    pump = Pump()
    first, second = pump.mesh(2)
    first.swim.table.apply_verdict(pump.now, second.node_id, (1, 0, State.DEAD, Cause.SILENT))
    moved = card_bytes(2, boot=2, address=address(40))
    reply, _ = first.swim.handle_request(pump.now, second.node_id, Join(moved, 0, 0, ()))
    assert isinstance(reply, Welcome)


def test_own_id_is_this_node_itself_or_another_process() -> None:
    pump = Pump()
    first = pump.add(1)
    assert code_of(ask(pump, first, card_bytes(1))) == "self"
    assert code_of(ask(pump, first, card_bytes(1, boot=9, address=address(40)))) == "same_id"
    assert code_of(ask(pump, first, card_bytes(1, address=address(40)))) == "same_id"


def test_two_who_want_one_name_at_two_gates_at_once_are_reported() -> None:
    pump = Pump()
    first, second, third = pump.mesh(3)
    assert isinstance(ask(pump, first, card_bytes(8, name="ada")), Welcome)
    assert isinstance(ask(pump, second, card_bytes(9, name="ada")), Welcome)
    pump.run(1.0)
    for host in (first, second, third):
        assert "conflict" in host.kinds()
        assert host.swim.rumours.names.is_shared("ada")

"""The world carries out effects as the real driver does."""

from __future__ import annotations

import pytest

from mesh.core.address import Address
from mesh.core.effects import (
    Answer,
    Emit,
    Persist,
    Resolve,
    SendDatagram,
    StartExchange,
    Stop,
    TaskChanged,
)
from mesh.core.events import Event, EventKind
from mesh.errors import LocalProtocolError, TransportError
from mesh.node.commands import Leave
from mesh.sim.host import INBOX_DATAGRAMS_MAX, Clock
from mesh.sim.loop import Loop
from mesh.sim.network import Conditions
from mesh.sim.world import host_address
from tests.sim.scripted_node import Stage

THERE = host_address(1)


def test_the_loop_keeps_the_order_of_time_and_then_of_scheduling() -> None:
    loop, done = Loop(), list[str]()
    for at_s, name in ((2.0, "c"), (1.0, "a"), (1.0, "b"), (9.0, "never")):
        loop.schedule(at_s, done.append, name)
    loop.run_until(5.0)
    assert (done, loop.now_s, loop.steps) == (["a", "b", "c"], 5.0, 3)


def test_what_is_scheduled_in_the_past_happens_now() -> None:
    loop, seen = Loop(), list[float]()
    loop.run_until(3.0)
    loop.schedule(1.0, lambda _: seen.append(loop.now_s), None)
    loop.run_until(4.0)
    assert seen == [3.0]


def test_a_clock_runs_at_its_own_rate_and_never_back() -> None:
    clock = Clock(100.0, 2.0)
    assert clock.read(5.0) == 110.0
    assert clock.true_time(110.0) == 5.0
    clock.set_rate(5.0, 0.5)
    assert clock.read(5.0) == 110.0
    assert clock.read(7.0) == 111.0


def test_a_datagram_arrives_after_the_links_delay_with_its_senders_address() -> None:
    stage = Stage(2)
    stage.act(0, SendDatagram(THERE, b"hello"))
    stage.world.run_for(1.0)
    assert stage.nodes[1].of_kind("datagram") == [(0.01, (host_address(0), b"hello"))]


def test_a_datagram_to_nobody_is_gone() -> None:
    stage = Stage(1)
    stage.act(0, SendDatagram(Address("192.0.2.1", 1), b"hello"))
    stage.world.run_for(1.0)
    assert stage.world.hosts[0].traffic.datagrams_sent == 1


def test_timers_fire_by_the_hosts_own_clock() -> None:
    stage = Stage(1)
    host, node = stage.world.hosts[0], stage.nodes[0]
    host.clock.set_rate(0.0, 2.0)
    node.deadline = 10.0
    stage.world.poke(host)
    stage.world.run_for(4.9)
    assert len(node.of_kind("timeout")) == 1  # the poke
    stage.world.run_for(0.2)
    assert node.of_kind("timeout")[-1] == (10.0, None)


def test_a_deadline_that_moved_earlier_is_kept() -> None:
    stage = Stage(1)
    host, node = stage.world.hosts[0], stage.nodes[0]
    for deadline in (5.0, 2.0):
        node.deadline = deadline
        stage.act(0)
        node.deadline = deadline
    stage.world.run_for(3.0)
    assert node.of_kind("timeout")[-1][0] == pytest.approx(2.0)
    assert host.wake_s is None


def test_a_node_that_sets_its_timers_in_the_past_for_ever_is_found_out() -> None:
    stage = Stage(1)
    node = stage.nodes[0]

    def again(now: float, _value: object) -> list[object]:
        node.deadline = now
        return []

    node.answers["timeout"] = again  # type: ignore[assignment]  # no effects at all
    stage.world.poke(stage.world.hosts[0])
    with pytest.raises(LocalProtocolError, match="for ever"):
        stage.world.run_for(1.0)


def test_an_exchange_brings_back_the_reply_once() -> None:
    stage = Stage(2)
    stage.act(0, StartExchange(7, THERE, b"ask", 1.0))
    stage.world.run_for(5.0)
    ((asked_at, request),) = stage.nodes[1].of_kind("request")
    ((replied_at, outcome),) = stage.nodes[0].of_kind("exchange")
    assert (request, outcome) == ((host_address(0), b"ask"), (7, b"reply"))
    assert [asked_at, replied_at] == pytest.approx([0.03, 0.04])


def the_failure(stage: Stage) -> tuple[float, TransportError]:
    ((now, outcome),) = stage.nodes[0].of_kind("exchange")
    assert isinstance(outcome, tuple)
    assert isinstance(outcome[1], TransportError)
    return now, outcome[1]


def test_a_host_without_the_process_refuses_at_once() -> None:
    stage = Stage(2)
    stage.world.crash(stage.world.hosts[1])
    stage.act(0, StartExchange(7, THERE, b"ask", 1.0))
    stage.world.run_for(5.0)
    now, error = the_failure(stage)
    assert (now, str(error)) == (0.02, "refused the connection")


@pytest.mark.parametrize("fault", ["power", "cut", "one way back", "pause", "nobody"])
def test_an_exchange_with_the_unreachable_times_out(fault: str) -> None:
    stage = Stage(2)
    host, to = stage.world.hosts[1], THERE
    match fault:
        case "power":
            stage.world.crash(host, power=False)
        case "cut":
            stage.network.cut([0], [1])
        case "one way back":
            stage.network.cut([1], [0])
        case "pause":
            stage.world.pause(host)
        case _:
            to = Address("192.0.2.1", 1)
    stage.act(0, StartExchange(7, to, b"ask", 1.0))
    stage.world.run_for(5.0)
    assert the_failure(stage)[0] == 1.0
    stage.world.resume(host)
    stage.world.run_for(5.0)
    assert len(stage.nodes[0].of_kind("exchange")) == 1


def test_an_exchange_survives_a_cut_that_is_mended_before_its_timeout() -> None:
    stage = Stage(2)
    cut = stage.network.cut([0], [1])
    stage.act(0, StartExchange(7, THERE, b"ask", 5.0))
    stage.world.run_for(1.0)
    stage.network.mend(cut)
    stage.world.run_for(4.0)
    assert stage.nodes[0].of_kind("exchange")[0][1] == (7, b"reply")


def test_a_request_that_waits_at_a_paused_node_is_reset_when_that_dies() -> None:
    stage = Stage(2)
    stage.world.pause(stage.world.hosts[1])
    stage.act(0, StartExchange(7, THERE, b"ask", 5.0))
    stage.world.run_for(1.0)
    stage.world.crash(stage.world.hosts[1])
    stage.world.run_for(1.0)
    assert str(the_failure(stage)[1]) == "reset the connection"


@pytest.mark.parametrize("dies", [0, 1])
def test_no_request_outlives_the_process_at_either_end(dies: int) -> None:
    stage = Stage(2)
    stage.act(0, StartExchange(7, THERE, b"ask", 5.0))
    stage.world.run_for(0.025)
    stage.world.crash(stage.world.hosts[dies])
    stage.world.boot(stage.world.hosts[dies])
    stage.world.run_for(1.0)
    assert [node.of_kind("request") for node in stage.nodes] == [[], [], []]
    if dies == 1:
        assert str(the_failure(stage)[1]) == "reset the connection"


def test_datagrams_under_way_when_the_network_heals_are_lost() -> None:
    stage = Stage(2)
    stage.act(0, SendDatagram(THERE, b"late"))
    stage.network.heal(stage.network.conditions)
    stage.act(0, SendDatagram(THERE, b"fresh"))
    stage.world.run_for(1.0)
    assert [value for _, value in stage.nodes[1].of_kind("datagram")] == [
        (host_address(0), b"fresh")
    ]


def test_an_empty_reply_closes_the_connection() -> None:
    stage = Stage(2)
    stage.nodes[1].reply = b""
    stage.act(0, StartExchange(7, THERE, b"ask", 5.0))
    stage.world.run_for(1.0)
    assert "closed" in str(the_failure(stage)[1])


def test_a_restarted_asker_hears_nothing_of_its_last_sessions_exchanges() -> None:
    stage = Stage(2)
    stage.act(0, StartExchange(7, THERE, b"ask", 1.0))
    stage.world.crash(stage.world.hosts[0])
    stage.world.boot(stage.world.hosts[0])
    stage.world.run_for(5.0)
    assert [node.of_kind("exchange") for node in stage.nodes] == [[], [], []]


def test_a_paused_node_gets_what_its_socket_holds_when_it_goes_on() -> None:
    stage = Stage(2)
    host = stage.world.hosts[1]
    stage.world.pause(host)
    for _ in range(INBOX_DATAGRAMS_MAX + 10):
        stage.act(0, SendDatagram(THERE, b"x"))
    stage.world.run_for(3.0)
    assert stage.nodes[1].of_kind("datagram") == []
    stage.world.resume(host)
    assert len(stage.nodes[1].of_kind("datagram")) == INBOX_DATAGRAMS_MAX
    assert host.traffic.datagrams_lost_in_inbox == 10
    assert {now for now, _ in stage.nodes[1].of_kind("datagram")} == {3.0}


@pytest.mark.parametrize("timers_first", [False, True])
def test_late_timers_fire_when_a_paused_node_goes_on(timers_first: bool) -> None:
    stage = Stage(2)
    host, node = stage.world.hosts[1], stage.nodes[1]
    node.deadline = 1.0
    stage.world.poke(host)
    node.deadline = 1.0
    stage.act(0, SendDatagram(THERE, b"x"))
    stage.world.pause(host)
    stage.world.run_for(3.0)
    stage.world.resume(host, timers_first=timers_first)
    stage.world.run_for(0.1)
    kinds = [kind for kind, _, _ in node.inputs[2:]]
    assert kinds == (["timeout", "datagram"] if timers_first else ["datagram", "timeout"])


def test_a_restart_keeps_the_disk_and_raises_the_boot() -> None:
    stage = Stage(1)
    host = stage.world.hosts[0]
    stage.act(0, Persist({"mesh_id": 77}))
    stage.world.crash(host)
    stage.world.boot(host)
    first, second = (node.config for node in stage.nodes)
    assert second.node_id == first.node_id
    assert second.boot > first.boot
    assert second.mesh_id == 77
    assert stage.nodes[0].seed != stage.nodes[1].seed


def test_a_higher_boot_that_a_node_chose_counts_at_the_next_start() -> None:
    stage = Stage(1)
    host = stage.world.hosts[0]
    stage.act(0, Persist({"boot": 5_000_000_000}))
    stage.world.crash(host)
    stage.world.boot(host)
    assert stage.nodes[1].config.boot == 5_000_000_001


def test_who_loses_the_disk_is_a_new_node() -> None:
    stage = Stage(1)
    host = stage.world.hosts[0]
    stage.world.crash(host)
    host.lose_disk()
    stage.world.boot(host)
    assert stage.nodes[0].config.node_id != stage.nodes[1].config.node_id


def test_nothing_is_carried_out_after_a_stop() -> None:
    stage = Stage(2)
    stage.act(0, Stop(3, "enough"), SendDatagram(THERE, b"late"))
    stage.world.run_for(1.0)
    assert stage.nodes[1].of_kind("datagram") == []
    assert stage.world.hosts[0].node is None
    assert [(host.index, stop.exit_code) for _, host, stop in stage.world.stops] == [(0, 3)]


def test_seeds_are_resolved_by_number_and_by_name() -> None:
    stage = Stage(1)
    stage.world.names["there.mesh"] = (THERE,)
    for seed in ("10.0.0.2:7946", "there.mesh:7946", "nowhere.mesh:7946"):
        stage.act(0, Resolve(seed))
    stage.world.run_for(1.0)
    assert [value for _, value in stage.nodes[0].of_kind("resolved")] == [
        ("10.0.0.2:7946", (THERE,)),
        ("there.mesh:7946", (THERE,)),
        ("nowhere.mesh:7946", ()),
    ]


def test_events_and_answers_are_kept_with_the_true_time() -> None:
    stage = Stage(1)
    stage.world.run_for(2.0)
    event = Event(kind=EventKind.WARN, detail="x")
    stage.act(0, Emit(event), Answer(4, {"id": "t"}), TaskChanged("t"))
    assert [(seen.at_s, seen.event) for seen in stage.world.events] == [(2.0, event)]
    assert [(at_s, answer.command_id) for at_s, _, answer in stage.world.answers] == [(2.0, 4)]


def test_a_command_reaches_a_running_node_only() -> None:
    stage = Stage(1)
    host = stage.world.hosts[0]
    stage.world.command(host, Leave("x"))
    assert stage.nodes[0].of_kind("command") == [(0.0, Leave("x"))]
    stage.world.crash(host)
    with pytest.raises(LocalProtocolError):
        stage.world.command(host, Leave("x"))


def test_invariants_are_checked_after_every_input_if_asked() -> None:
    stage = Stage(2, check=True)
    stage.act(0, SendDatagram(THERE, b"x"))
    stage.world.run_for(1.0)
    assert [node.checks for node in stage.nodes] == [2, 2]
    assert Stage(1).nodes[0].checks == 0


def test_lost_datagrams_are_counted() -> None:
    stage = Stage(2, conditions=Conditions(loss_ratio=1.0))
    stage.act(0, SendDatagram(THERE, b"x"))
    stage.world.run_for(1.0)
    assert stage.network.lost == 1
    assert stage.nodes[1].inputs[1:] == []

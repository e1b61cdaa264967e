"""Following tasks' output through whole nodes: all of it, once and in order, however it comes about."""

from __future__ import annotations

import pytest

from mesh.core.effects import Answer, TaskChanged
from mesh.core.ids import NodeId
from mesh.core.process import ProcessOutput
from mesh.tasks.commands import Abandon, CancelTask
from mesh.tasks.following import WINDOWS_TOTAL
from mesh.tasks.window import SIZE_MAX
from mesh.wire import task_messages as wire
from tests.unit.tasks.crew import CONFIG, A, B, C, Crew
from tests.unit.tasks.followed import (
    KIB,
    Client,
    Command,
    chatter,
    running,
    started,
    write,
    wrote,
)

P, Q = NodeId(8), NodeId(9)


def test_output_comes_as_it_is_written_and_the_json_with_the_last_of_it() -> None:
    crew, own, run_id = running({P: 1})
    client = Client(crew, B, 7)
    answer = client.follow()
    assert answer is not None
    assert answer.result == {"id": "t"}
    assert client.take() == 0
    write(crew, own, run_id, b"one\n")
    assert crew.nodes[B].said(TaskChanged) == [TaskChanged("t")]
    assert client.take() == 1
    write(crew, own, run_id, b"oh\n", stream=2)
    crew.exit(own, run_id, 3, b"two\n")
    crew.wait(0.2)
    pieces, task = crew.nodes[B].tasks.take_watch(7)
    assert pieces == [(2, b"oh\n"), (1, b"two\n")]
    assert task is not None
    assert (task["state"], task["result"]["exit_code"]) == ("failed", 3)
    assert crew.nodes[B].tasks.take_watch(7) == ([], task)
    client.leave()
    assert "not known" in str(crew.nodes[B].tasks.take_watch(7))


def test_all_output_of_a_task_that_was_over_before_anybody_followed() -> None:
    crew, own, run_id = running({P: 1})
    data = b"x" * 20 * KIB  # more than the tail in its result
    crew.exit(own, run_id, 0, data)
    client = Client(crew, C, 1)
    client.follow()
    client.take_all(1)
    assert client.output[1] == data


def test_task_that_is_followed_before_it_starts() -> None:
    crew = Crew({P: 1})
    crew.submit("first")
    first = started(crew, P)
    crew.submit("t")
    client = Client(crew, B, 1)
    client.follow()
    crew.exit(P, first.run_id)
    crew.exit(P, started(crew, P).run_id, 0, b"at last\n")
    client.take_all(2)
    assert client.output[1] == b"at last\n"


def test_megabyte_for_a_slow_client_is_all_there_and_holds_the_command_up() -> None:
    crew, own, run_id = running({P: 1})
    client = Client(crew, B, 1)
    client.follow()
    output = chatter(count=64, piece_bytes=64 * KIB)  # four megabytes
    command = Command(crew, own, run_id, output)
    command.go_on()
    assert 16 <= command.written <= 2 * SIZE_MAX + 2, "what waits here, and there, and no more"
    taken = []
    while not client.task:
        taken.append(client.take())
        crew.wait(1)
        command.go_on()
    assert max(taken) <= SIZE_MAX
    for stream in (1, 2):
        assert client.output[stream] == wrote(output, stream)
    assert crew.nodes[own].tasks.view()["counters"]["dropped_output_bytes"] == 0


def test_chatty_command_ends_at_once_where_its_output_fits() -> None:
    crew, own, run_id = running({P: 1})
    client = Client(crew, B, 1)
    client.follow()
    output = chatter(900)
    command = Command(crew, own, run_id, output)
    command.go_on()
    assert command.has_ended, "what fits waits for nobody"
    client.take_all(5)
    assert {stream: client.output[stream] for stream in (1, 2)} == {
        stream: wrote(output, stream) for stream in (1, 2)
    }


def test_client_that_takes_nothing_is_told_so_and_the_command_goes_on() -> None:
    crew, own, run_id = running({P: 1})
    client = Client(crew, B, 1)
    client.follow()
    command = Command(crew, own, run_id, chatter(64, 64 * KIB))
    command.go_on()
    crew.wait(1)
    command.go_on()
    crew.wait(CONFIG.watcher_stall_s - 2)
    assert command.go_on() <= 1
    crew.wait(2)
    command.go_on()
    assert command.has_ended
    assert client.take() == 0
    assert client.task is not None
    assert client.task["watch_error"] == "nothing was taken for 30 s"
    assert client.task["id"] == "t"


def test_all_of_a_failed_attempt_comes_before_any_of_its_retry() -> None:
    crew, own, run_id = running({P: 1}, retries=1)
    client = Client(crew, B, 1)
    client.follow()
    output = chatter(40, 64 * KIB)
    command = Command(crew, own, run_id, output, code=1)
    while not command.has_ended:
        client.take()
        crew.wait(0.1)
        command.go_on()
    crew.wait(5)
    crew.exit(own, started(crew, own).run_id, 0, b"again")
    client.take_all(10)
    assert client.output[1] == wrote(output, 1) + b"again"
    assert client.output[2] == wrote(output, 2)


def test_burst_at_the_start_is_all_there_for_who_follows_a_moment_later() -> None:
    crew, own, run_id = running({P: 1})
    output = chatter(80, 64 * KIB)
    command = Command(crew, own, run_id, output)
    command.go_on()
    crew.wait(1)
    client = Client(crew, B, 1)
    client.follow()
    while client.task is None:
        command.go_on()
        client.take()
        crew.wait(0.1)
    assert client.output == {1: wrote(output, 1), 2: wrote(output, 2)}
    assert client.task["result"]["output_dropped_bytes"] == 0


def test_result_tells_how_much_nobody_ever_received() -> None:
    crew, own, run_id = running({P: 1})
    output = chatter(80, 64 * KIB)
    command = Command(crew, own, run_id, output)
    command.go_on()
    crew.wait(CONFIG.follow_grace_s)
    command.go_on()
    client = Client(crew, B, 1)
    client.follow()
    client.take_all(3)
    assert client.task is not None
    result = client.task["result"]
    assert result["output_bytes"] == 80 * 64 * KIB
    received = len(client.output[1]) + len(client.output[2])
    assert result["output_dropped_bytes"] == result["output_bytes"] - received > 0


def test_follower_on_the_owners_own_node() -> None:
    crew, own, run_id = running({A: 1})
    client = Client(crew, A, 1)
    client.follow()
    output = chatter(64, 64 * KIB)
    command = Command(crew, own, run_id, output)
    command.go_on()
    assert not command.has_ended, "what nobody takes holds it up here as well"
    while client.task is None:
        client.take()
        crew.wait(0.1)
        command.go_on()
    assert client.output[1] == wrote(output, 1)


@pytest.mark.parametrize("nodes", [(B, C), (B, B)], ids=["two nodes", "one node"])
def test_two_followers_each_get_all_of_it(nodes: tuple[NodeId, NodeId]) -> None:
    crew, own, run_id = running({P: 1})
    early, late = Client(crew, nodes[0], 1), Client(crew, nodes[1], 2)
    early.follow()
    output = chatter(400)
    command = Command(crew, own, run_id, output)
    command.output = output[:200]
    node = crew.nodes[own]
    for stream, data in command.output:
        piece = ProcessOutput(run_id, stream, data)
        crew.do(node, lambda tasks, now: tasks.handle_process(now, piece))  # noqa: B023 - done at once
        early.take()
    late.follow()
    command.output, command.written = output, 200
    node.effects.clear()
    for _ in range(200):
        command.go_on()
        early.take()
        crew.wait(0.05)
        if crew.now % 1 < 0.5:
            late.take()
    early.take_all(5)
    late.take_all(5)
    for client in (early, late):
        assert client.output[1] == wrote(output, 1)
        assert client.output[2] == wrote(output, 2)


def test_unknown_task_is_told_in_words() -> None:
    crew = Crew({P: 1})
    answer = Client(crew, B, 1, task_id="ghost").follow()
    assert answer is not None
    assert answer.result is None
    assert "no task ghost is known" in str(answer.error)
    assert "watch_error" in (crew.nodes[B].tasks.take_watch(1)[1] or {})
    answer = Client(crew, B, 1, task_id="").follow()
    assert answer is not None
    assert "1 to 128 characters is expected, found 0" in str(answer.error)


def test_client_that_waits_no_more_for_the_answer_gets_none() -> None:
    crew = Crew({P: 1})
    crew.submit("t")
    crew.away = {A, C}
    client = Client(crew, B, 1)
    client.follow()
    number = crew._last
    crew.give(B, lambda _: Abandon(number))
    crew.away = set()
    crew.wait(6)
    assert not crew.nodes[B].said(Answer)


def test_task_that_was_cancelled_unstarted_has_no_output() -> None:
    crew = Crew()
    crew.submit("t")
    client = Client(crew, B, 1)
    client.follow()
    crew.give(A, lambda number: CancelTask(number, "t"))
    client.take_all(2)
    assert client.task is not None
    assert (client.task["state"], client.output) == ("cancelled", {1: b"", 2: b""})


def test_quiet_command_costs_a_word_now_and_then() -> None:
    crew, _, _ = running({P: 1})
    Client(crew, B, 1).follow()
    crew.wait(60)
    before = len(crew.heard)
    crew.wait(100)
    follows = [one for _, one in crew.heard[before:] if isinstance(one, wire.Follow)]
    assert 9 <= len(follows) <= 11


def test_as_many_clients_follow_as_may_and_one_more_is_told() -> None:
    crew, own, run_id = running({P: 1})
    for number in range(CONFIG.watchers_max):
        Client(crew, B, number).follow()
    answer = Client(crew, B, CONFIG.watchers_max).follow()
    assert answer is not None
    assert f"at most {CONFIG.watchers_max} clients" in str(answer.error)
    assert WINDOWS_TOTAL // CONFIG.watchers_max == 1
    client = Client(crew, B, 3)  # takes another's place
    assert client.follow() is not None
    crew.exit(own, run_id, 0, b"done")
    client.take_all(2, every_s=0.5)
    assert client.output[1] == b"done"

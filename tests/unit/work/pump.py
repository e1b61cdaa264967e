"""A few nodes' work in one thread of virtual time: messages pass through the codec, processes are scripts.

No handling of messages happens here: the pump carries bytes, loses some when a test says so, and plays
the commands. A command's argument list is its script: ("job", duration in s, exit code, piece, piece…).
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable
from itertools import count
from typing import Any

from mesh.core.address import Address
from mesh.core.effects import (
    Answer,
    Emit,
    ReadOutput,
    StartProcess,
    StopProcess,
    TaskChanged,
)
from mesh.core.ids import MeshId
from mesh.core.process import ProcessEvent, ProcessExit, ProcessOutput
from mesh.core.requests import Ask, Outgoing, Tell
from mesh.placement.live_view import LiveView
from mesh.wire.packet import FRAME_BYTES_MAX, decode_packet, encode_message, encode_packet
from mesh.wire.records import Metadata
from mesh.wire.work_messages import Spec
from mesh.work.commands import Cancel, GetTask, ListTasks, Submit, WorkCommand
from mesh.work.work import Work, WorkConfig
from tests.unit.work.hosts import Host, Process

MESH = MeshId(77)
LATENCY_S = 0.001
UNIX_OFFSET_S = 1_700_000_000.0


Fate = Callable[[Host, Host, object], bool]  # True: lost


class Pump:
    """The hosts, the clock, and the wire between them."""

    def __init__(
        self,
        slots: list[int],
        *,
        seed: int = 1,
        config: WorkConfig | None = None,
        metas: dict[int, Metadata] | None = None,
    ) -> None:
        self.now = 100.0
        self.config = config
        self.rng = random.Random(seed)
        self.is_double_run_allowed = True
        self.attempts: dict[tuple[str, str], str] = {}  # every number that ever started, and where
        self.messages = 0
        self.carried: dict[str, int] = {}
        self.lose_request: Fate = lambda _a, _b, _m: False
        self.lose_reply: Fate = lambda _a, _b, _m: False
        self.answers: dict[int, Answer] = {}
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self._seq = count()
        self._commands = count(1)
        self.hosts = {
            i + 1: Host(i + 1, (metas or {}).get(i + 1) or Metadata(slots=n))
            for i, n in enumerate(slots)
        }
        for host in self.hosts.values():
            self._new_work(host)
        for host in self.hosts.values():
            for other in self.hosts.values():
                self.meet(host, other)

    def __getitem__(self, number: int) -> Host:
        return self.hosts[number]

    def _new_work(self, host: Host) -> None:
        host.work = Work(
            card=host.own_card,
            view=host.view,
            rng=random.Random(f"{self.rng.random()}"),
            unix_offset_s=UNIX_OFFSET_S,
            config=self.config,
        )

    # -- membership, as the tests wish it

    def meet(self, host: Host, other: Host, free_slots: int | None = None) -> None:
        host.view.put(other.card(free_slots))
        self.carry(host, host.work.handle_member_up(self.now, other.node_id))

    def suspect(self, host: Host, other: Host) -> None:
        host.view.drop(other.node_id)

    def declare(self, host: Host, other: Host, boot: int, reason: str) -> None:
        host.view.drop(other.node_id)
        self.carry(host, host.work.handle_member_down(self.now, other.node_id, boot, reason))

    def kill(self, number: int, *, noticed_after_s: float | None = 1.0) -> None:
        """End a host at once; the others notice after a while (None: never)."""
        dead = self.hosts[number]
        dead.is_up = False
        for process in dead.processes.values():
            process.is_over = True
        boot = dead.boot
        for host in self.hosts.values():
            if host is not dead and noticed_after_s is not None:
                self.later(noticed_after_s, self._declare_if_up(host, dead, boot))

    def _declare_if_up(self, host: Host, dead: Host, boot: int) -> Callable[[], None]:
        def act() -> None:
            known = host.view.get(dead.node_id)
            if host.is_up and (known is None or known.boot == boot):
                self.declare(host, dead, boot, "declared dead (silent)")

        return act

    def restart(self, number: int, *, told: bool = True) -> None:
        """Bring a killed host back under the next boot."""
        host = self.hosts[number]
        ended, host.boot = host.boot, host.boot + 1
        host.is_up, host.view, host.processes = True, LiveView(), {}
        self._new_work(host)
        for other in self.hosts.values():
            if other.is_up:
                self.meet(host, other)
                if other is not host and told:
                    down = other.work.handle_member_down(self.now, host.node_id, ended, "restarted")
                    other.view.put(host.card())
                    self.carry(other, down)
                    self.meet(other, host)

    # -- commands

    def command(self, number: int, make: Callable[[int], WorkCommand]) -> int:
        command_id = next(self._commands)
        host = self.hosts[number]
        self.carry(host, host.work.handle_command(self.now, make(command_id)))
        return command_id

    def submit(self, number: int, spec: Spec) -> str:
        answer = self.answers[self.command(number, lambda c: Submit(c, spec))]
        assert answer.error is None, answer.error
        return str(answer.result["id"])

    def ask(self, number: int, make: Callable[[int], WorkCommand], within_s: float = 5.0) -> Answer:
        command_id = self.command(number, make)
        self.run_until(lambda: command_id in self.answers, within_s)
        return self.answers[command_id]

    def task(self, number: int, task_id: str) -> dict[str, Any]:
        answer = self.ask(number, lambda c: GetTask(c, task_id))
        assert answer.error is None, answer.error
        found: dict[str, Any] = answer.result
        return found

    def cancel(self, number: int, task_id: str) -> Answer:
        return self.ask(number, lambda c: Cancel(c, task_id))

    def tasks(self, number: int) -> dict[str, Any]:
        found: dict[str, Any] = self.ask(number, ListTasks).result
        return found

    # -- time

    def later(self, delay_s: float, act: Callable[[], None]) -> None:
        heapq.heappush(self._due, (self.now + delay_s, next(self._seq), act))

    def step(self, until: float) -> bool:
        """Do the next thing that is due by `until`; False when there is none."""
        timers = [
            (due, host.number)
            for host in self.hosts.values()
            if host.is_up and (due := host.work.next_timeout()) is not None
        ]
        at, number = min(timers, default=(float("inf"), 0))
        if self._due and self._due[0][0] <= at:
            if self._due[0][0] > until:
                return False
            at, _, act = heapq.heappop(self._due)
            self.now = max(self.now, at)
            act()
            return True
        if at > until:
            return False
        self.now = max(self.now, at)
        host = self.hosts[number]
        self.carry(host, host.work.handle_timeout(self.now))
        return True

    def run(self, seconds: float) -> None:
        until = self.now + seconds
        while self.step(until):
            self.check()
        self.now = until

    def run_until(self, is_true: Callable[[], bool], within_s: float) -> None:
        until = self.now + within_s
        while not is_true():
            assert self.step(until), f"not within {within_s} s: {self.states()}"
            self.check()

    def finish(self, *number_and_id: tuple[int, str], within_s: float = 60.0) -> None:
        """Run until these tasks have ended."""
        self.run_until(lambda: all(self.is_over(n, t) for n, t in number_and_id), within_s)

    def is_over(self, number: int, task_id: str) -> bool:
        return self.hosts[number].work._keeping._table.tasks[task_id].is_terminal

    def check(self) -> None:
        tasks = sum(len(host.work._keeping._table.tasks) for host in self.hosts.values())
        if tasks > 50 and self.rng.random() > 0.02:
            return  # it looks at every task: with many, now and then is enough
        for host in self.hosts.values():
            host.work.check_invariants()

    def states(self) -> dict[str, dict[str, str]]:
        return {
            host.name: {
                t.task_id: f"{t.state} {t.asked}" for t in host.work._keeping._table.tasks.values()
            }
            for host in self.hosts.values()
        }

    # -- the wire and the processes

    def carry(self, host: Host, outputs: list[Outgoing]) -> None:
        for output in outputs:
            match output:
                case Ask():
                    self.later(LATENCY_S, self._request(host, output))
                case Tell():
                    self.later(LATENCY_S, self._datagram(host, output))
                case Answer():
                    assert output.command_id not in self.answers, "answered twice"
                    self.answers[output.command_id] = output
                case StartProcess():
                    self._start(host, output)
                case ReadOutput():
                    process = host.processes[output.run_id]
                    process.is_reading = True
                    self.later(0.0, self._play(host, process))
                case StopProcess():
                    host.stopped.append(output.run_id)
                    process = host.processes[output.run_id]
                    process.exit_code, process.pieces, process.ends_at = 143, [], self.now
                    self.later(0.01, self._play(host, process))
                case Emit():
                    host.events.append(output.event)
                case TaskChanged():
                    host.changed.append(output.task_id)
                case _:
                    raise AssertionError(output)

    def _host_at(self, address: Address) -> Host:
        return self.hosts[address.port - 7000]

    def _through_codec(self, sender: Host, message: object) -> object:
        self.messages += 1
        name = type(message).__name__
        self.carried[name] = self.carried.get(name, 0) + 1
        data = encode_packet(MESH, sender.node_id, [encode_message(message)])
        return decode_packet(data, FRAME_BYTES_MAX).messages[0]

    def _datagram(self, sender: Host, tell: Tell) -> Callable[[], None]:
        message = self._through_codec(sender, tell.message)

        def act() -> None:
            target = self._host_at(tell.to)
            if target.is_up and not self.lose_request(sender, target, message):
                reply, outputs = target.work.handle_message(self.now, sender.node_id, message)
                assert reply is None
                self.carry(target, outputs)

        return act

    def _request(self, sender: Host, ask: Ask) -> Callable[[], None]:
        message = self._through_codec(sender, ask.message)
        asker = sender.work

        def bring(reply: object | None) -> Callable[[], None]:
            def act() -> None:
                if sender.is_up and sender.work is asker:
                    self.carry(sender, asker.handle_reply(self.now, ask.tag, reply))

            return act

        def act() -> None:
            target = self._host_at(ask.to)
            if not target.is_up or self.lose_request(sender, target, message):
                self.later(ask.timeout_s, bring(None))
                return
            reply, outputs = target.work.handle_message(self.now, sender.node_id, message)
            assert reply is not None
            back = self._through_codec(target, reply)
            if self.lose_reply(target, sender, back):
                self.later(ask.timeout_s, bring(None))
            else:
                self.later(LATENCY_S, bring(back))
            self.carry(target, outputs)

        return act

    def _start(self, host: Host, effect: StartProcess) -> None:
        host.started.append(effect)
        assert effect.run_id not in host.processes
        running = host.running()
        assert running < host.meta.slots, f"{host.name} runs more than its slots"
        task_id, number = effect.env["MESH_TASK_ID"], effect.env["MESH_ATTEMPT"]
        before = self.attempts.get((task_id, number))
        assert before is None, f"attempt {number} of {task_id} started at {before}, and {host.name}"
        self.attempts[task_id, number] = host.name
        if not self.is_double_run_allowed:
            twins = [
                (other.name, process.env["MESH_ATTEMPT"])
                for other in self.hosts.values()
                for process in other.processes.values()
                if not process.is_over and process.env["MESH_TASK_ID"] == task_id
            ]
            assert not twins, f"{task_id} starts at {host.name} and runs at {twins}"
        if effect.argv[0] != "job" or host.is_short:
            exit_event = ProcessExit(effect.run_id, 127, f"no such command: {effect.argv[0]}")
            if host.is_short:
                text = "job could not be started: Too many open files"
                exit_event = ProcessExit(effect.run_id, 126, text, is_host_fault=True)
            host.processes[effect.run_id] = Process(
                effect.run_id, 127, self.now, [], {}, False, True
            )
            self.later(0.0, self._tell_process(host, host.work, exit_event))
            return
        _, duration, code, *pieces = effect.argv
        process = Process(
            effect.run_id,
            int(code),
            self.now + float(duration),
            [piece.encode() for piece in pieces],
            dict(effect.env),
        )
        host.processes[effect.run_id] = process
        self.later(0.0, self._play(host, process))
        if process.ends_at < float("inf"):
            self.later(float(duration), self._play(host, process))

    def _tell_process(self, host: Host, work: Work, event: ProcessEvent) -> Callable[[], None]:
        def act() -> None:
            if host.is_up and host.work is work:
                self.carry(host, work.handle_process(self.now, event))

        return act

    def _play(self, host: Host, process: Process) -> Callable[[], None]:
        work = host.work

        def act() -> None:
            if process.is_over or host.work is not work or not host.is_up:
                return
            if process.pieces and process.is_reading:
                process.is_reading = False
                event = ProcessOutput(process.run_id, 1, process.pieces.pop(0))
                self.carry(host, work.handle_process(self.now, event))
            elif not process.pieces and process.is_reading and process.ends_at <= self.now:
                process.is_over = True
                exit_event = ProcessExit(process.run_id, process.exit_code)
                self.carry(host, work.handle_process(self.now, exit_event))

        return act

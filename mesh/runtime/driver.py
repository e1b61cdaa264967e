"""Drives one node in the real world: inputs in, effects out, one deadline.

Everything that happens to the node passes through here, on one thread, one thing at a time. An
input's effects are carried out in order before the next deadline is read; an effect that is answered
at once (a command that cannot be started) is a new input whose effects stand behind the ones before.
There is no ticker: an idle node wakes for its own deadlines and for packets, for nothing else.

A bug that an input meets is said, counted, and survived: no packet, command or process may end a
node. But a node that was left half-way through a change must not go on: after each bug the node checks
itself, and stops if it contradicts itself, or if its deadlines meet bugs again and again.
"""

from __future__ import annotations

import math
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, Final, assert_never
from weakref import WeakValueDictionary

import trio

from mesh.core import effects as fx
from mesh.core.address import Address
from mesh.core.events import Event
from mesh.core.lines import LineEvent
from mesh.core.process import ProcessEvent
from mesh.errors import CommandRefused, DataDirectoryError, LocalProtocolError, TransportError
from mesh.node.commands import Command, SetLoad, TakeAddress
from mesh.node.face import NodeFace
from mesh.runtime.busy import Processors, load_average_pct
from mesh.runtime.clock import Clock
from mesh.runtime.lateness import Lateness
from mesh.runtime.store.faults import StoreError
from mesh.tasks.commands import Abandon

LOAD_INTERVAL_S: Final = 1.0
BUG_PAUSE_S: Final = 1.0
"""The wait before a deadline is tried again that met a bug."""

TIMEOUT_BUGS_MAX: Final = 10
"""So many deadlines in a row that met a bug stop the node: it does not do its part any more."""

BUGS_SAID_MAX: Final = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Hands:
    """What carries the effects out. None of them waits."""

    send: Callable[[Address, bytes], None]
    exchange: Callable[[fx.StartExchange], None]
    keep_line: Callable[[fx.LineEffect], None]
    resolve: Callable[[str], None]
    persist: Callable[[Mapping[str, int]], None]
    commit: Callable[[fx.Commit], None]
    remember: Callable[[fx.Remember], None]
    bequeath: Callable[[fx.WriteObituary], None]
    emit: Callable[[Event], None]
    run: Callable[[fx.ProcessEffect], None]
    say: Callable[[str], None]
    look: Callable[[], Address | None]
    """Where this node is reached from now on, if that has changed."""


@dataclass(slots=True)
class _Question:
    answer: fx.Answer | None = None
    is_answered: trio.Event = field(default_factory=trio.Event)


class TaskChanges:
    """Wakes whoever waits for a task to change."""

    def __init__(self) -> None:
        # Held by those who wait, and by nobody else: what nobody waits for is forgotten.
        self._waiting: WeakValueDictionary[str, trio.Event] = WeakValueDictionary()

    def next_of(self, task_id: str) -> trio.Event:
        """Return what is set at the task's next change. Ask first, then look at the task, then wait."""
        return self._waiting.setdefault(task_id, trio.Event())

    def announce(self, task_id: str) -> None:
        """Wake everybody who waits for this task."""
        event = self._waiting.pop(task_id, None)
        if event is not None:
            event.set()


class Driver:
    """Owns the order in which things happen to a node. `attach` its hands, then `run` it."""

    def __init__(self, node: NodeFace, clock: Clock) -> None:
        self.changes = TaskChanges()
        self.counters = {"dropped_bug": 0}
        """Inputs that the node failed on, and effects that failed: bugs of ours, dropped and counted."""

        self.lateness = Lateness()
        """Of the deadlines that were kept here."""

        self.next_id: Callable[[], int] = count(1).__next__
        """Returns a number that was not given out before, for a command or a watcher."""

        self._node = node
        self._clock = clock
        self._hands: Hands | None = None
        self._effects: deque[fx.Effect] = deque()
        self._is_applying = False
        self._stop: fx.Stop | None = None
        self._questions: dict[int, _Question] = {}
        self._load_at = -math.inf
        self._processors = Processors()
        self._sleep = trio.CancelScope()
        self._armed = math.nan  # the deadline that `_sleep` has, on the node's clock
        self._given_at = -math.inf  # when the node was given its latest input
        self._due = math.inf  # when `_armed` can be met at the earliest: not before it was known
        self._bugs_said: set[str] = set()
        self._timeout_bugs = 0
        self._not_before = -math.inf  # no deadline is kept earlier

    def attach(self, hands: Hands) -> None:
        """Take what carries out the effects."""
        self._hands = hands

    async def run(self) -> fx.Stop:
        """Start the node and keep its deadlines until it stops; return how it stopped."""
        self._given_at = self._clock()  # what was due before it can have been due from now on only
        self._apply(self._node.start(self._given_at))
        while True:
            with trio.CancelScope() as self._sleep:
                self._armed = math.nan
                self._arm()
                await trio.sleep_forever()
            if self._stop is not None:
                return self._stop
            self.lateness.note(self._clock() - self._due)
            self._keep_deadline()

    def handle_datagram(self, source: Address, data: bytes) -> None:
        """Hand on a datagram. Whatever is wrong with it, the node lives on."""
        if self._stop is None:
            try:
                self._apply(self._node.handle_datagram(self._tick(), source, data))
            except Exception as error:  # noqa: BLE001 - no packet kills a node
                self._survive(f"a datagram from {source}", error)

    def handle_request(self, source: Address, data: bytes) -> bytes:
        """Hand on a request and return the reply, b"" for none; what it asks to store is stored before."""
        if self._stop is not None:
            return b""
        try:
            reply, effects = self._node.handle_request(self._tick(), source, data)
            self._apply(effects)
        except Exception as error:  # noqa: BLE001 - no packet kills a node
            self._survive(f"a request from {source}", error)
            return b""
        return b"" if self._has_stopped() else reply

    def handle_exchange(self, exchange_id: int, reply: bytes | TransportError) -> None:
        """Hand on the outcome of an exchange."""
        if self._stop is None:
            try:
                self._apply(self._node.handle_exchange(self._tick(), exchange_id, reply))
            except Exception as error:  # noqa: BLE001 - no reply kills a node
                self._survive(f"the reply to exchange {exchange_id}", error)

    def handle_line(self, event: LineEvent) -> None:
        """Hand on what became of a stream that is kept open."""
        if self._stop is None:
            try:
                self._apply(self._node.handle_line(self._tick(), event))
            except Exception as error:  # noqa: BLE001 - no stream kills a node
                self._survive(f"{type(event).__name__}", error)

    def handle_resolved(self, seed: str, addresses: tuple[Address, ...]) -> None:
        """Hand on what a seed's name stands for."""
        if self._stop is None:
            try:
                self._apply(self._node.handle_resolved(self._tick(), seed, addresses))
            except Exception as error:  # noqa: BLE001 - no seed kills a node
                self._survive(f"the address of {seed}", error)

    def handle_process(self, event: ProcessEvent) -> None:
        """Hand on a command's output or end."""
        if self._stop is None:
            try:
                self._apply(self._node.handle_process(self._tick(), event))
            except Exception as error:  # noqa: BLE001 - no command kills a node
                self._survive(f"{type(event).__name__} of run {event.run_id}", error)

    def handle_committed(self, number: int) -> None:
        """Hand on that every commit up to this one is stored."""
        if self._stop is None:
            try:
                self._apply(self._node.handle_committed(self._tick(), number))
            except Exception as error:  # noqa: BLE001 - no commit kills a node
                self._survive(f"the end of commit {number}", error)

    def tell(self, command: Command) -> None:
        """Hand on a command that is not answered, or whose answer nobody waits for."""
        if self._stop is None:
            try:
                self._apply(self._node.handle_command(self._tick(), command))
            except Exception as error:  # noqa: BLE001 - no client kills a node
                self._survive(f"the command {type(command).__name__}", error)

    async def ask(self, build: Callable[[int], Command]) -> Any:  # noqa: ANN401 - JSON comes back
        """Hand on the command that `build` makes of its id, and wait for the answer.

        Raises:
            CommandRefused: the node refused it, or is stopping.
            LocalProtocolError: the node met a bug.
        """
        if self._stop is not None:
            raise CommandRefused("this node is stopping")
        command_id = self.next_id()
        question = self._questions[command_id] = _Question()
        command = build(command_id)
        try:
            try:
                self._apply(self._node.handle_command(self._tick(), command))
            except Exception as error:
                what = f"the command {type(command).__name__}"
                self._survive(what, error)
                raise LocalProtocolError(f"{what} met a bug: {_bug_text(error)}") from error
            await question.is_answered.wait()
        except trio.Cancelled:
            self.tell(Abandon(command_id))  # whoever asked has hung up
            raise
        finally:
            del self._questions[command_id]
        answer = question.answer
        if answer is None:
            raise CommandRefused("this node is stopping")
        if answer.error is not None:
            raise CommandRefused(answer.error)
        return answer.result

    def halt(self, stop: fx.Stop) -> None:
        """Stop now, without the node's leave: `run` returns `stop`. The first stop counts."""
        if self._stop is None:
            self._finish(stop)
            self._arm()

    def _has_stopped(self) -> bool:
        return self._stop is not None

    def _keep_deadline(self) -> None:
        """Let the node do what is due. When that meets a bug, wait before the next try."""
        try:
            self._apply(self._node.handle_timeout(self._tick()))
            self._timeout_bugs = 0
        except Exception as error:  # noqa: BLE001 - one timer's bug does not stop the others at once
            self._timeout_bugs += 1
            self._not_before = self._clock() + BUG_PAUSE_S
            self._survive("a deadline", error)
            if self._timeout_bugs >= TIMEOUT_BUGS_MAX:
                self.halt(
                    fx.Stop(
                        1, f"{TIMEOUT_BUGS_MAX} deadlines in a row met a bug: {_bug_text(error)}"
                    )
                )

    def _survive(self, what: str, error: Exception) -> None:
        """Say and count a bug; then go on, if the node is still at one with itself."""
        self.counters["dropped_bug"] += 1
        bug = _bug_text(error)
        if bug not in self._bugs_said and len(self._bugs_said) < BUGS_SAID_MAX:
            self._bugs_said.add(bug)
            self._say(f"{what} met a bug and was dropped: {bug}; please report it")
        try:
            self._node.check_invariants()
        except Exception as broken:  # noqa: BLE001 - whatever it is, the node contradicts itself
            reason = f"a bug ({bug}) left this node at odds with itself: {_bug_text(broken)}"
            self.halt(fx.Stop(1, reason))
            return
        self._arm()

    def _say(self, text: str) -> None:
        if self._hands is not None:
            self._hands.say(text)

    def _tick(self) -> float:
        """Return the time; with it, at most once a second, the node hears the host's load, and a new address."""
        now = self._given_at = self._clock()
        if now - self._load_at >= LOAD_INTERVAL_S:
            self._load_at = now
            busy_pct, lag_ms = self._processors.busy_pct(now), self.lateness.smoothed_ms
            self._apply(
                self._node.handle_command(now, SetLoad(load_average_pct(), busy_pct, lag_ms))
            )
            address = None if self._hands is None else self._hands.look()
            if address is not None:
                self._apply(self._node.handle_command(now, TakeAddress(address)))
        return now

    def _arm(self) -> None:
        """Let `run` wake at the node's next deadline, or at once when the node has stopped."""
        deadline = self._node.next_timeout() if self._stop is None else -math.inf
        deadline = math.inf if deadline is None else deadline
        if self._stop is None:
            deadline = max(deadline, self._not_before)
        if deadline != self._armed:
            self._armed = deadline
            self._due = max(deadline, self._given_at)
            self._sleep.deadline = trio.current_time() + deadline - self._clock()

    def _apply(self, effects: Iterable[fx.Effect]) -> None:
        self._effects.extend(effects)
        if self._is_applying:
            return
        self._is_applying = True
        try:
            while self._effects and self._stop is None:
                effect = self._effects.popleft()
                try:
                    self._carry_out(effect)
                except Exception as error:  # noqa: BLE001 - the effects after it are still owed
                    self._survive(f"the effect {type(effect).__name__}", error)
        finally:
            self._is_applying = False
        self._arm()

    def _carry_out(self, effect: fx.Effect) -> None:  # noqa: C901, PLR0912 - one row for each effect
        hands = self._hands
        assert hands is not None, "attach the hands before any input"
        match effect:
            case fx.SendDatagram(to, data):
                hands.send(to, data)
            case fx.StartExchange():
                hands.exchange(effect)
            case (
                fx.OpenLifeline() | fx.CloseLifeline() | fx.KeepOpen() | fx.TryLine() | fx.HangUp()
            ):
                hands.keep_line(effect)
            case fx.Resolve(seed):
                hands.resolve(seed)
            case fx.Persist(values):
                self._keep(lambda: hands.persist(values))
            case fx.Commit():
                self._keep(lambda: hands.commit(effect))
            case fx.Remember():
                hands.remember(effect)
            case fx.WriteObituary():
                hands.bequeath(effect)
            case fx.Emit(event):
                hands.emit(event)
            case fx.Answer(command_id):
                question = self._questions.get(command_id)
                if question is not None:
                    question.answer = effect
                    question.is_answered.set()
            case (
                fx.StartProcess()
                | fx.ReadOutput()
                | fx.StopProcess()
                | fx.GuardProcess()
                | fx.FreezeProcess()
                | fx.ThawProcess()
            ):
                hands.run(effect)
            case fx.TaskChanged(task_id):
                self.changes.announce(task_id)
            case fx.Stop():
                self._finish(effect)
            case _:
                assert_never(effect)

    def _keep(self, store: Callable[[], None]) -> None:
        # When it fails, nothing that was promised may leave: the node ends here.
        try:
            store()
        except (DataDirectoryError, StoreError) as error:
            self._finish(fx.Stop(1, str(error)))
        except Exception as error:  # noqa: BLE001 - not stored is not stored, whatever the reason
            self._finish(fx.Stop(1, f"what must be kept could not be stored: {_bug_text(error)}"))

    def _finish(self, stop: fx.Stop) -> None:
        self._stop = stop
        self._effects.clear()
        for question in self._questions.values():
            question.is_answered.set()


def _bug_text(error: BaseException) -> str:
    """Return what a bug is and where: enough to tell it from others, and to find it."""
    frames = traceback.extract_tb(error.__traceback__, limit=-1)
    where = f" at {Path(frames[0].filename).name}:{frames[0].lineno}" if frames else ""
    return f"{type(error).__name__}: {error}{where}"[:400]

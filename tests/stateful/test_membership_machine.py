"""Any sequence of faults, then peace: what one member knows of another never goes back, the machines
never contradict themselves, and once the faults stop all views become equal.

The faults are drawn one by one, and shrink; of the machines' and the network's randomness only the
seed is drawn: a mesh draws more numbers in a few seconds than an example can hold.
"""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from mesh.core.ids import NodeId, format_id
from mesh.wire.records import State
from tests.unit.membership.pump import Host, Pump, are_equal

SIZE = 5
indices = st.integers(0, 1_000_000)


class Membership(RuleBasedStateMachine):
    """Five hosts, of which the first founded; everybody has everybody as a seed."""

    @initialize(seed=st.integers(0, 2**32 - 1))
    def start(self, seed: int) -> None:
        self.pump = Pump(seed)
        self.hosts = [self.pump.add(1)]
        self.hosts += [self.pump.add(n, *range(1, SIZE + 1)) for n in range(2, SIZE + 1)]
        self.known: dict[tuple[int, NodeId], tuple[int, int]] = {}
        self.pump.run(1.0)

    def _pick(self, index: int, hosts: list[Host]) -> Host | None:
        return hosts[index % len(hosts)] if hosts else None

    # Time and the network.

    @rule(seconds=st.sampled_from([0.01, 0.1, 0.3, 1.5, 5.0]))
    def let_time_pass(self, seconds: float) -> None:
        self.pump.run(seconds)

    @rule(loss_ratio=st.sampled_from([0.0, 0.2, 0.6]))
    def lose(self, loss_ratio: float) -> None:
        self.pump.loss_ratio = loss_ratio

    @precondition(lambda self: bool(self.pump.flight))
    @rule(index=indices)
    def hasten(self, index: int) -> None:
        """Something in flight arrives now, before all that was sent earlier."""
        flight = self.pump.flight
        _, _, action = flight.pop(index % len(flight))
        flight.sort(key=lambda item: item[:2])
        action()

    @rule(index=indices)
    def repeat_an_old_datagram(self, index: int) -> None:
        sender = self._pick(index, [host for host in self.hosts if host.sent])
        if sender is not None:
            self.pump._send(sender.address, sender.sent[index % len(sender.sent)])

    @rule(mask=st.integers(1, 2**SIZE - 2), one_way=st.booleans())
    def cut(self, mask: int, one_way: bool) -> None:
        inside = {h.address for n, h in enumerate(self.hosts) if mask >> n & 1}
        if one_way:
            self.pump.cut = lambda a, b: a in inside and b not in inside
        else:
            self.pump.cut = lambda a, b: (a in inside) != (b in inside)

    @rule()
    def heal(self) -> None:
        self.pump.heal()

    # Processes.

    @rule(index=indices)
    def pause(self, index: int) -> None:
        host = self._pick(index, [h for h in self.pump.running if not h.is_paused])
        if host is not None:
            self.pump.pause(host)

    @rule(index=indices)
    def resume(self, index: int) -> None:
        host = self._pick(index, [h for h in self.pump.running if h.is_paused])
        if host is not None:
            self.pump.resume(host)

    @rule(index=indices)
    def kill(self, index: int) -> None:
        host = self._pick(index, self.pump.running)
        if host is not None and len(self.pump.running) > 2:
            self.pump.kill(host)

    @rule(index=indices)
    def leave(self, index: int) -> None:
        host = self._pick(index, [h for h in self.pump.running if not h.is_paused])
        if host is not None and len(self.pump.running) > 2:
            self.pump.leave(host)

    @rule(index=indices, whom=indices)
    def forget(self, index: int, whom: int) -> None:
        """Somebody asks to forget one of those that are gone in its eyes, whether they are or not."""
        observer = self._pick(index, [h for h in self.pump.running if not h.is_paused])
        gone = [] if observer is None else observer.swim.table.gone
        if observer is not None and gone:
            chosen = format_id(gone[whom % len(gone)])
            observer.swim.forgetting.forget(self.pump.now, chosen)
            self.pump._carry_out(observer, observer.swim.handle_timeout(self.pump.now))

    @rule(index=indices)
    def restart(self, index: int) -> None:
        place = index % SIZE
        self.hosts[place].is_paused = False
        self.hosts[place] = self.pump.restart(self.hosts[place], seeds=tuple(range(1, SIZE + 1)))

    # What holds throughout, and in the end. The pump checks each machine's invariants at every input.

    @invariant()
    def nothing_goes_back(self) -> None:
        for observer in self.pump.running:
            for member in observer.swim.table:
                key = (id(observer), member.node_id)
                rank = (member.boot, member.incarnation)
                assert rank >= self.known.get(key, rank)
                self.known[key] = rank

    @invariant()
    def nobody_stops_but_who_was_asked_to(self) -> None:
        for host in self.pump.hosts:
            assert host.stop is None or host.stop.exit_code == 0, host.stop

    def teardown(self) -> None:
        if not hasattr(self, "pump"):
            return
        pump = self.pump
        pump.loss_ratio = 0.0
        pump.heal()
        for host in pump.running:
            if host.is_paused:
                pump.resume(host)
        pump.run(1.0)  # who was leaving has left
        config = pump.config
        # A suspicion or two run their course; who was cut off is tried, and compares; a few rounds
        # of anti-entropy find what else is missing.
        bound_s = 10 * config.pause_tolerance_s + SIZE * config.reconnect_interval_s
        bound_s += 6 * config.sync_interval_s
        gone = [host for host in self.hosts if host not in pump.running]

        def is_settled() -> bool:
            running = pump.running
            return (
                are_equal(running)
                and all(len(host.swim.table.living) == len(running) - 1 for host in running)
                and all(
                    h.state_of(g) not in {State.ALIVE, State.SUSPECT} for h in running for g in gone
                )
                # A tombstone is held by all or by nobody.
                and len({h.swim.table.tombstones.hash for h in running}) <= 1
            )

        assert pump.run_until(is_settled, bound_s), [
            {m.name: (m.boot, m.incarnation, m.state.word) for m in host.swim.table}
            for host in pump.running
        ]
        self.nothing_goes_back()


def test_views_become_equal_once_the_faults_stop() -> None:
    quick = settings.get_current_profile_name() == "check"
    run_state_machine_as_test(
        Membership,
        settings=settings(max_examples=40 if quick else 500, stateful_step_count=30),
    )

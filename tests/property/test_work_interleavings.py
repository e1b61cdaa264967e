"""Whatever is lost, answered late, declared dead or brought back: the records stay in order.

`check_invariants` holds after every input, and in particular no task ever has two live attempts on
record. Once the faults stop, every task ends.
"""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mesh.work.commands import Cancel
from mesh.work.work import WorkConfig
from tests.unit.work.hosts import job
from tests.unit.work.pump import Pump

NODES = 3
node = st.integers(1, NODES)
actions = st.lists(
    st.one_of(
        st.tuples(st.just("submit"), node, st.floats(0.0, 3.0)),
        st.tuples(st.just("cancel"), node, st.integers(0, 30)),
        st.tuples(st.just("lose"), node, st.sampled_from(["request", "reply", "both"])),
        st.tuples(st.just("hear"), node, st.none()),
        st.tuples(st.just("declare"), node, node),
        st.tuples(st.just("suspect"), node, node),
        st.tuples(st.just("meet"), node, node),
        st.tuples(st.just("kill"), node, st.none()),
        st.tuples(st.just("restart"), node, st.booleans()),
        st.tuples(st.just("early"), node, st.none()),
        st.tuples(st.just("run"), st.just(0), st.floats(0.001, 8.0)),
    ),
    min_size=5,
    max_size=60,
)
CONFIG = WorkConfig(output_bytes_max=500, output_total_bytes_max=2000, finished_max=50, check_s=3.0)


class Mesh:
    """Carries out the actions, as far as they make sense just then."""

    def __init__(self, seed: int) -> None:
        self.pump = Pump([1, 2, 1], seed=seed, config=CONFIG)
        self.lost: dict[int, str] = {}
        self.tasks: list[tuple[int, int, str]] = []  # keeper, its boot, id
        self.pump.lose_request = lambda a, b, _m: self._is_lost(a.number, b.number, "request")
        self.pump.lose_reply = lambda a, b, _m: self._is_lost(a.number, b.number, "reply")

    def _is_lost(self, one: int, other: int, what: str) -> bool:
        return any(self.lost.get(number) in {what, "both"} for number in (one, other))

    def act(self, name: str, number: int, value: object) -> None:
        pump = self.pump
        host = pump.hosts.get(number)
        if name == "run":
            assert isinstance(value, float)
            pump.run(value)
            return
        assert host is not None
        if name == "lose":
            self.lost[number] = str(value)
        elif name == "hear":
            self.lost.pop(number, None)
        elif name == "restart" and not host.is_up:
            pump.restart(number, told=bool(value))
        elif host.is_up:
            self._act_alive(name, number, value)

    def _act_alive(self, name: str, number: int, value: object) -> None:
        pump, host = self.pump, self.pump[number]
        other = pump.hosts.get(value) if isinstance(value, int) else None
        if name == "submit":
            task_id = pump.submit(number, job(float(str(value)), 0, *["x" * 90] * 9))
            self.tasks.append((number, host.boot, task_id))
        elif name == "cancel" and self.tasks and isinstance(value, int):
            task_id = self.tasks[value % len(self.tasks)][2]
            pump.command(number, lambda c: Cancel(c, task_id))
        elif name == "declare" and other is not None and other is not host:
            pump.declare(host, other, other.boot, "declared dead (silent)")
        elif name == "suspect" and other is not None and other is not host:
            pump.suspect(host, other)
        elif name == "meet" and other is not None and other.is_up:
            pump.meet(host, other)
        elif name == "kill":
            pump.kill(number, noticed_after_s=0.5)
        elif name == "early":
            pump.carry(host, host.work.handle_timeout(pump.now))
        pump.check()

    def heal(self) -> None:
        pump = self.pump
        self.lost.clear()
        for number, host in pump.hosts.items():
            if not host.is_up:
                pump.run(1.0)
                pump.restart(number)
        for host in pump.hosts.values():
            for other in pump.hosts.values():
                pump.meet(host, other)

    def is_quiet(self) -> bool:
        return all(
            host.work.used == 0 and not host.work._keeping._table.unfinished
            for host in self.pump.hosts.values()
        )


@given(st.integers(0, 1000), actions)
def test_any_interleaving_keeps_the_records_in_order_and_every_task_ends(
    seed: int, script: list[tuple[str, int, object]]
) -> None:
    mesh = Mesh(seed)
    for name, number, value in script:
        mesh.act(name, number, value)
    mesh.heal()
    mesh.pump.run_until(mesh.is_quiet, within_s=200.0)
    for number, boot, task_id in mesh.tasks:
        host = mesh.pump[number]
        if host.boot == boot:
            assert host.work._keeping._table.tasks[task_id].is_terminal

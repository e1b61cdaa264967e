"""Who below a guardian is not its node's, on a host that is made up: what was there before, and its children."""

from __future__ import annotations

import os
import signal

import pytest

from mesh.guardian import company as company_module
from mesh.guardian.company import Company
from mesh.guardian.process import Process, below

GUARDIAN, NODE, HELPER = 100, 101, 90


class Host:
    """A guardian with a helper that it had before, its node, and a mark on some."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.processes: dict[int, Process] = {}
        self.marked: set[int] = set()
        self.start(GUARDIAN, 1)
        self.start(HELPER, GUARDIAN)
        monkeypatch.setattr(company_module, "survey", lambda: self.processes)
        monkeypatch.setattr(company_module, "carries", lambda pid, _: pid in self.marked)
        monkeypatch.setattr(os, "waitid", lambda *_: None)  # there are children
        self.company = Company(GUARDIAN, "MARK=1")
        self.start(NODE, GUARDIAN)

    def start(self, pid: int, parent: int, *, group: int = 0, state: str = "S") -> None:
        group = group or pid
        fields = [state, parent, group, group, *[0] * 13, 1, 0, pid]
        self.processes[pid] = Process(pid, f"{pid} (x) {' '.join(map(str, fields))}".encode())

    def end(self, pid: int) -> None:
        del self.processes[pid]
        for child in self.processes.values():
            if child.parent == pid:
                child.parent = GUARDIAN

    def ours(self, *leaders: int) -> list[int]:
        tree = below((GUARDIAN,), self.processes)
        return sorted(process.pid for process in self.company.pick(tree, {NODE}, set(leaders)))


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Host:
    return Host(monkeypatch)


def test_what_descends_from_the_node_is_its_work_and_stays_it_as_an_orphan(host: Host) -> None:
    host.start(200, NODE)
    host.start(201, 200)
    assert host.ours() == [NODE, 200, 201]
    host.end(200)
    assert host.ours() == [NODE, 201]
    host.start(202, 201)
    host.end(201)
    host.end(NODE)
    assert host.ours() == []  # nobody has seen where it came from
    assert host.company.unclear == 1
    host.marked.add(202)
    assert host.ours() == [202]
    assert host.company.unclear == 0


def test_what_descends_from_a_helper_is_none_and_stays_so_as_an_orphan(host: Host) -> None:
    host.start(91, HELPER)
    assert host.ours() == [NODE]
    host.end(HELPER)
    host.start(92, 91)
    host.marked.update({91, 92})  # whatever it carries: it was there
    assert host.ours() == [NODE]
    assert host.company.unclear == 0


def test_an_orphan_in_the_group_of_a_run_is_its_work(host: Host) -> None:
    host.start(201, GUARDIAN, group=200)
    assert host.ours() == [NODE]
    assert host.ours(200) == [NODE, 201]


def test_a_dead_orphan_is_nobodys_question(host: Host) -> None:
    host.start(201, GUARDIAN, state="Z")
    assert host.ours() == [NODE]
    assert host.company.unclear == 0


def test_a_guardian_alone_with_its_node_takes_all_that_is_below_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def no_children(*_: object) -> None:
        raise ChildProcessError

    host = Host(monkeypatch)
    monkeypatch.setattr(os, "waitid", no_children)
    host.company = Company(GUARDIAN, "MARK=1")
    assert host.ours() == [HELPER, NODE]
    assert Company(1, "MARK=1").is_shared  # it adopts all orphans of its container


def test_an_environment_that_cannot_be_read_in_time_holds_nobody_up(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, mouth = os.pipe()
    monkeypatch.setattr(company_module, "READ_TIMEOUT_MS", 500)
    monkeypatch.setattr(company_module, "TRIES_MAX", 1)

    def read(pid: int, _: object) -> bool:
        os.write(mouth, b"%d " % pid)
        if pid == 202:
            signal.pause()
        return True

    monkeypatch.setattr(company_module, "carries", read)
    for pid in (201, 202, 203):
        host.start(pid, GUARDIAN)
    assert host.ours() == [NODE, 201]
    assert host.ours() == [NODE, 201, 203]  # the silent one is not asked again
    assert host.company.unclear == 1
    os.close(mouth)
    assert os.read(asked, 100) == b"201 202 203 "
    os.close(asked)
    for _ in range(2):
        os.wait()

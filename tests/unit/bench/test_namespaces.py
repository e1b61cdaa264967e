"""What is said where namespaces cannot be had, and that they are gone whatever happens."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest

from mesh.bench import keeper, namespaces
from mesh.bench.ground import LOOPBACK
from mesh.bench.namespaces import Namespaces, why_not
from mesh.bench.ports import LOOPBACK_TABLES
from mesh.fleet.clearing import wait_until


@pytest.fixture
def hosts() -> None:
    if reason := why_not():
        pytest.skip(reason)


def test_what_is_not_installed_is_named_with_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda program: None if program == "ip" else "/bin/it")
    assert why_not() == "not installed: ip (apt-get install iproute2)"


def test_who_is_not_root_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda program: program)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert "run it as root" in why_not()


def test_a_refusal_of_the_kernel_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_members: object) -> Namespaces:
        raise namespaces.NamespaceError("ip netns add: not permitted")

    monkeypatch.setattr(shutil, "which", lambda program: program)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(namespaces, "Namespaces", refuse)
    assert "not permitted" in why_not()


def test_a_run_bears_the_process_that_made_it() -> None:
    first, second = keeper.new_run(), keeper.new_run()
    assert first != second
    assert first.startswith(f"{keeper.PREFIX}-{os.getpid()}-")
    assert keeper.started(os.getpid()) > 0
    assert keeper.started(2**30) == -1


def test_on_loopback_members_run_here() -> None:
    assert LOOPBACK.inside("n01") == ()
    assert LOOPBACK.host("n01") == "127.0.0.1"
    assert LOOPBACK.tables([1]) == list(LOOPBACK_TABLES)


KNOCK = """
import socket, sys
try:
    socket.create_connection((sys.argv[1], 9), 0.5)
except ConnectionRefusedError:
    print("refused")
except OSError as error:
    print("silent:", error)
"""


@pytest.mark.usefixtures("hosts")
def test_a_lost_host_is_silent_and_is_reached_again_when_mended() -> None:
    ground = Namespaces(("a", "b"))
    try:

        def answers() -> bool:
            ask = [*ground.inside("a"), sys.executable, "-c", KNOCK, ground.host("b")]
            done = subprocess.run(ask, capture_output=True, text=True, check=True)
            return done.stdout == "refused\n"

        wait_until(lambda: answers() or None, 10.0, lambda: AssertionError("never reached"))
        ground.cut("b")
        assert not answers()
        ground.mend("b")
        wait_until(lambda: answers() or None, 10.0, lambda: AssertionError("not mended"))
    finally:
        ground.close()
    ground.close()
    assert keeper.namespaces_of(ground.run) == []


MADE = """
import sys, time
from mesh.bench.namespaces import Namespaces
print(Namespaces(("a", "b")).run, flush=True)
time.sleep(600)
"""


@pytest.mark.usefixtures("hosts")
def test_namespaces_go_with_a_process_that_is_killed() -> None:
    maker = subprocess.Popen([sys.executable, "-c", MADE], stdout=subprocess.PIPE, text=True)
    assert maker.stdout is not None
    with maker.stdout:
        run = maker.stdout.readline().strip()
        assert len(keeper.namespaces_of(run)) == 3
        maker.kill()
        maker.wait()
    wait_until(
        lambda: keeper.namespaces_of(run) == [] or None,
        15.0,
        lambda: AssertionError(f"left behind: {keeper.namespaces_of(run)}"),
    )


@pytest.mark.usefixtures("hosts")
def test_who_has_which_address_is_never_asked_and_not_forgotten_with_a_lost_host() -> None:
    ground = Namespaces(("a", "b", "c"))

    def known(member: str) -> list[str]:
        shown = subprocess.run(
            ["ip", "-n", ground._name(member), "neigh", "show", "nud", "permanent"],
            capture_output=True,
            text=True,
            check=True,
        )
        return sorted(line.split()[0] for line in shown.stdout.splitlines())

    try:
        everybody = sorted(ground.host(member) for member in "abc")
        assert known("a") == everybody
        ground.cut("a")
        ground.mend("a")
        assert known("a") == everybody
    finally:
        ground.close()

"""What a host lacks is found out, and said without an error."""

from __future__ import annotations

import ctypes
import errno
import os
import sqlite3
import time

import pytest

from mesh.runtime import host
from mesh.runtime.doctor import Finding
from mesh.runtime.errqueue import ErrorQueue
from mesh.runtime.host import check_host


def named(name: str) -> Finding:
    (found,) = (finding for finding in check_host() if finding.name == name)
    return found


def test_everything_is_looked_at_once() -> None:
    names = [finding.name for finding in check_host()]
    assert names == ["system", "boot clock", "error queue", "subreaper", "pid namespaces", "sqlite"]


def test_this_host_has_what_the_tests_of_the_runtime_use() -> None:
    if os.uname().sysname != "Linux":
        pytest.skip("Linux has these")
    for name in ("system", "boot clock", "error queue", "subreaper", "sqlite"):
        assert named(name).level == "ok", name


def test_no_boot_clock_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(time, "CLOCK_BOOTTIME")
    assert named("boot clock").level == "warn"


def test_no_error_queue_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "open_error_queue", lambda _: False)
    assert named("error queue").level == "warn"


def test_an_error_queue_that_stays_empty_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ErrorQueue, "drain", lambda _: [])
    assert named("error queue").level == "warn"


def test_no_subreaper_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    class NoSuchSymbol:
        def __init__(self, *_: object, **__: object) -> None: ...

    monkeypatch.setattr(ctypes, "CDLL", NoSuchSymbol)
    assert named("subreaper").level == "warn"


def test_no_namespace_is_a_warning_that_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "_ENTER", f"import sys; sys.exit({errno.EPERM})")
    found = named("pid namespaces")
    assert found.level == "warn"
    assert "EPERM" in found.text


def test_a_user_takes_a_user_namespace_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(host, "_ENTER", f"import sys; sys.exit(sys.argv[1] != '{0x30000000}')")
    assert "in a user namespace" in named("pid namespaces").text


def test_an_old_database_library_is_bad(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 23, 1))
    monkeypatch.setattr(sqlite3, "sqlite_version", "3.23.1")
    found = named("sqlite")
    assert (found.level, "3.24.0 or later is expected, found 3.23.1" in found.text) == ("bad", True)

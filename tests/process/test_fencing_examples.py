"""The guards of examples/fencing hold: against a stale run that wakes, in every order, and in races.

One check judges all: what is kept is a list of marks, each write adds one to what its owner began with, so
a write that was acknowledged and is missing at the end was overwritten by somebody who had not read it.
Wrong guards, and right guards used in the wrong order, are shown to fail the same check.
"""

from __future__ import annotations

import http.client
import itertools
import os
import selectors
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.process.fence_writer import BASE, mark
from tests.process.guarded_places import GUARDS, http_service, postgresql

FENCED = 77
PATIENCE_S = 60.0
WRITER = Path(__file__).with_name("fence_writer.py")
NAMES = ("sqlite", "postgresql", "file", "http")
REFUSALS = {"sqlite": 12, "postgresql": 10, "file": 50, "http": 25}
_COUNT = itertools.count(1)
OLD, NEW = BASE + 1, BASE + 2
"""They differ in the last of 192 bits."""


@dataclass(frozen=True)
class Guard:
    """A guard's program, and the resource that it stands before."""

    program: Path
    place: str
    key: str = field(default_factory=lambda: f"nightly/{next(_COUNT)}")

    def attempt(self, token: int | str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run the program to its end, as a task with this token."""
        return subprocess.run(
            [sys.executable, self.program, self.place, *arguments],
            env={**os.environ, "MESH_TOKEN": str(token), "MESH_IDEMPOTENCY_KEY": self.key},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )

    @contextmanager
    def writer(self, *arguments: str) -> Iterator[subprocess.Popen[str]]:
        """Start a writer in a process group of its own."""
        process = subprocess.Popen(
            [sys.executable, WRITER, self.program, self.place, self.key, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            bufsize=1,
            start_new_session=True,
        )
        with process:
            try:
                yield process
            finally:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)


@contextmanager
def guard_called(
    name: str, place: Path, wrong: Callable[[str], str] | None = None, server: str = ""
) -> Iterator[Guard]:
    """Give a guard before a record of its own; `wrong` changes the text of what decides."""
    with ExitStack() as stack:
        decider = GUARDS / ("http_service.py" if name == "http" else f"{name}_guard.py")
        if wrong:
            text = decider.read_text()
            assert wrong(text) != text
            decider = place / decider.name
            decider.write_text(wrong(text))
        program = GUARDS / "http_guard.py" if name == "http" else decider
        if name == "sqlite":
            where = str(place / "tasks.db")
        elif name == "file":
            where = str(place)
        elif name == "http":
            where, _ = stack.enter_context(http_service(decider, place / "service.db"))
        else:
            where = server
        yield Guard(program, where)


@pytest.fixture(scope="module")
def database_server() -> Iterator[str]:
    with postgresql() as connection:
        yield connection


@pytest.fixture(params=NAMES)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def server(name: str, request: pytest.FixtureRequest) -> str:
    """How to connect to PostgreSQL, for the guard that needs it."""
    return str(request.getfixturevalue("database_server")) if name == "postgresql" else ""


@pytest.fixture
def guard(name: str, server: str, tmp_path: Path) -> Iterator[Guard]:
    with guard_called(name, tmp_path, server=server) as guard:
        yield guard


def problems(kept: str, acknowledged: list[str]) -> list[str]:
    """Judge what is kept at the end by what the writers were told."""
    marks = kept.split()
    tokens = [int(each.split(".")[0]) for each in marks]
    found = [f"{each} was acknowledged and is gone" for each in acknowledged if each not in marks]
    found += [
        f"token {after} came after {before}"
        for before, after in itertools.pairwise(tokens)
        if after < before
    ]
    newest = max((int(each.split(".")[0]) for each in acknowledged), default=0)
    if acknowledged and (not tokens or tokens[-1] < newest):
        found.append(f"the end is not of token {newest}")
    return found


def take_over(guard: Guard, *, reads_first: bool = False) -> list[str]:
    """Let an old run wake between what its successor does first and its first write."""
    assert guard.attempt(OLD, "begin").stdout == "\n"
    assert guard.attempt(OLD, "write", mark(OLD, 0)).returncode == 0
    acknowledged = [mark(OLD, 0)]
    if reads_first:
        value = guard.attempt(NEW, "show").stdout.split(" ", 1)[1].strip()
    else:
        value = guard.attempt(NEW, "begin").stdout.strip()
    if guard.attempt(OLD, "write", f"{mark(OLD, 0)} {mark(OLD, 1)}").returncode == 0:
        acknowledged.append(mark(OLD, 1))
    if reads_first:
        guard.attempt(NEW, "begin")
    done = guard.attempt(NEW, "write", f"{value} {mark(NEW, 0)}")
    assert done.returncode == 0, done.stderr
    acknowledged.append(mark(NEW, 0))
    if guard.attempt(OLD, "write", f"{mark(OLD, 0)} {mark(OLD, 1)}").returncode == 0:
        acknowledged.append(mark(OLD, 1))
    return problems(guard.attempt(NEW, "show").stdout.strip().split(" ", 1)[1], acknowledged)


def test_each_step_says_what_it_did(guard: Guard) -> None:
    """The story of one record, as a shell sees it."""
    assert guard.attempt(OLD, "show").stdout == "-1 \n"
    early = guard.attempt(OLD, "write", "x")
    assert (early.returncode, early.stdout) == (FENCED, "")
    assert "begin before the first write" in early.stderr
    assert guard.attempt(OLD, "begin").stdout == "\n"
    for _ in range(2):  # the same token may write again
        assert guard.attempt(OLD, "write", "it's\n17 %").returncode == 0
    assert guard.attempt(OLD, "begin").stdout == "it's\n17 %\n"
    assert guard.attempt(NEW, "begin").stdout == "it's\n17 %\n"
    for arguments in (("write", "18"), ("begin",)):
        refused = guard.attempt(OLD, *arguments)
        assert (refused.returncode, refused.stdout) == (FENCED, "")
        assert f"fenced: {guard.key} has token {NEW}, ours is {OLD}: " in refused.stderr
        assert refused.stderr.count("\n") == 1
    assert guard.attempt(NEW, "show").stdout == f"{NEW} it's\n17 %\n"
    assert guard.attempt((1 << 192) - 1, "begin").stdout == "it's\n17 %\n"
    assert guard.attempt(9, "begin").returncode == FENCED
    assert guard.attempt(9, "fly").returncode == 2


def by_hand(program: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a guard's program outside a task, with these variables of Mesh's and no others."""
    alone = {name: value for name, value in os.environ.items() if not name.startswith("MESH_")}
    return subprocess.run(
        [sys.executable, program, *arguments],
        env={**alone, **variables},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({}, "found no MESH_IDEMPOTENCY_KEY: "),
        ({"MESH_TOKEN": "7"}, "found no MESH_IDEMPOTENCY_KEY: "),
        ({"MESH_IDEMPOTENCY_KEY": "a"}, "found no MESH_TOKEN: "),
        ({"MESH_IDEMPOTENCY_KEY": "a", "MESH_TOKEN": "x"}, "'x': "),
        ({"MESH_IDEMPOTENCY_KEY": "a", "MESH_TOKEN": "0"}, "2**192 - 1, found 0: "),
    ],
)
def test_a_guard_outside_a_task_says_what_to_set(
    guard: Guard, variables: dict[str, str], said: str
) -> None:
    found = by_hand(guard.program, guard.place, "begin", **variables)
    assert (found.returncode, found.stdout, found.stderr.count("\n")) == (2, "", 1)
    assert f"{said}run this in a task, or set both to try it by hand" in found.stderr


def test_people_are_shown_a_record_without_a_token(guard: Guard) -> None:
    guard.attempt(OLD, "begin")
    guard.attempt(OLD, "write", "10 done")
    found = by_hand(guard.program, guard.place, "show", MESH_IDEMPOTENCY_KEY=guard.key)
    assert (found.returncode, found.stdout, found.stderr) == (0, f"{OLD} 10 done\n", "")


@pytest.mark.parametrize("token", ["-1", "0", str(1 << 192), "9" * 5000])
def test_a_token_that_is_none_is_refused_in_one_line(guard: Guard, token: str) -> None:
    for words in (("begin",), ("write", "stolen"), ("show",)):
        found = guard.attempt(token, *words)
        assert (found.returncode, found.stdout, found.stderr.count("\n")) == (2, "", 1)
    assert guard.attempt(OLD, "show").stdout == "-1 \n"


def test_a_stopped_run_that_wakes_after_its_successor_began_is_refused(guard: Guard) -> None:
    with guard.writer("step", str(OLD)) as old:
        assert old.stdin is not None
        assert old.stdout is not None
        assert old.stderr is not None
        old.stdin.write("\n")
        assert [old.stdout.readline() for _ in range(2)] == ["began\n", f"kept {mark(OLD, 0)}\n"]
        os.killpg(old.pid, signal.SIGSTOP)
        assert guard.attempt(NEW, "begin").stdout == f"{mark(OLD, 0)}\n"
        old.stdin.write("\n")
        os.killpg(old.pid, signal.SIGCONT)
        assert old.stdout.readline() == "refused\n"
        assert old.wait(PATIENCE_S) == FENCED
        assert f"has token {NEW}, ours is {OLD}" in old.stderr.read()
    assert guard.attempt(NEW, "show").stdout == f"{NEW} {mark(OLD, 0)}\n"


def test_no_acknowledged_write_is_lost_if_the_successor_installs_before_it_reads(
    guard: Guard,
) -> None:
    assert take_over(guard) == []


def test_an_acknowledged_write_is_lost_if_the_successor_reads_before_it_installs(
    guard: Guard,
) -> None:
    assert take_over(guard, reads_first=True) == [f"{mark(OLD, 1)} was acknowledged and is gone"]


def without_comparison(text: str) -> str:
    """Plant a guard that looks at no token when it writes."""
    return text.replace(" AND token = :token", "").replace("if seen != token:", "if seen < 0:")


def test_a_guard_that_does_not_compare_fails_the_check(
    name: str, server: str, tmp_path: Path
) -> None:
    with guard_called(name, tmp_path, without_comparison, server) as guard:
        assert f"{mark(NEW, 0)} was acknowledged and is gone" in take_over(guard)


def race(guard: Guard, refusals: int) -> list[str]:
    """Let two writers take over from each other until each had so many writes refused; kill them, and judge."""
    counts = {"0": 0, "1": 0}
    latest = {"0": "", "1": ""}
    acknowledged: list[str] = []
    deadline = time.monotonic() + PATIENCE_S
    with ExitStack() as stack, selectors.DefaultSelector() as selector:
        for parity in counts:
            writer = stack.enter_context(guard.writer("race", parity))
            assert writer.stdout is not None
            selector.register(writer.stdout, selectors.EVENT_READ, (parity, writer))
        while min(counts.values()) < refusals:
            assert time.monotonic() < deadline, f"refused so far: {counts}"
            for key, _ in selector.select(1.0):
                parity, writer = key.data
                line = writer.stdout.readline()
                assert line, writer.stderr.read()
                acknowledged += [line.split()[1]] if line.startswith("kept") else []
                counts[parity] += line == "refused\n" != latest[parity]
                latest[parity] = line
    # A killed writer's last statement may still be on its way: we install before we read, as anybody.
    kept = guard.attempt(BASE + (1 << 100), "begin").stdout.strip()
    print(f"{len(acknowledged)} writes acknowledged, {len(kept.split())} kept, refused: {counts}")
    return problems(kept, acknowledged)


def test_in_a_race_no_acknowledged_write_is_lost_and_no_lower_token_comes_after_a_higher(
    guard: Guard, name: str
) -> None:
    assert race(guard, REFUSALS[name]) == []


def test_a_guard_that_checks_and_then_writes_fails_in_a_race(tmp_path: Path) -> None:
    def check_then_write(text: str) -> str:
        check = "    if show(database, key)[0] != token:\n        raise Fenced('planted')\n"
        head, write, rest = text.partition("def write(")
        return (head + write + rest.replace("    with ", f"{check}    with ", 1)).replace(
            " AND token = :token", ""
        )

    deadline = time.monotonic() + PATIENCE_S
    rounds = 0
    found: list[str] = []
    while not found and time.monotonic() < deadline:
        (place := tmp_path / str(rounds := rounds + 1)).mkdir()
        with guard_called("sqlite", place, check_then_write) as guard:
            found = race(guard, 5)
    assert found


def test_the_service_refuses_what_carries_no_good_token(tmp_path: Path) -> None:
    with guard_called("http", tmp_path) as guard:
        place = urlsplit(guard.place)

        def status(method: str, path: str, **headers: str) -> int:
            connection = http.client.HTTPConnection(place.netloc, timeout=PATIENCE_S)
            connection.request(method, path, headers={"Content-Length": "0", **headers})
            answer = connection.getresponse()
            answer.read()
            connection.close()
            return answer.status

        record = "/records/x"
        assert status("GET", record) == 404
        assert status("POST", record) == status("PUT", record) == 428
        for wrong in ("-1", "0", "1e3", "", "x", str(1 << 192), "9" * 5000, "²"):
            assert status("POST", record, **{"Fencing-Token": wrong}) == 400
        assert status("POST", "/elsewhere", **{"Fencing-Token": "1"}) == 404
        assert status("PUT", record, **{"Fencing-Token": "1"}) == 412
        assert status("POST", record, **{"Fencing-Token": "1"}) == 200
        assert status("PUT", record, **{"Fencing-Token": "1"}) == 204
        assert status("PUT", record, **{"Fencing-Token": "1", "Content-Length": "9" * 9}) == 413


def test_a_service_that_was_killed_still_knows_who_is_fenced(tmp_path: Path) -> None:
    program, database = GUARDS / "http_service.py", tmp_path / "service.db"
    with http_service(program, database) as (url, service):
        before = Guard(GUARDS / "http_guard.py", url)
        assert before.attempt(NEW, "begin").returncode == 0
        service.kill()
    with http_service(program, database) as (url, _):
        guard = Guard(before.program, url, before.key)
        assert guard.attempt(OLD, "begin").returncode == FENCED
        assert guard.attempt(NEW, "write", "17").returncode == 0


def test_what_the_read_me_says_to_try_by_hand_comes_out_as_it_says(tmp_path: Path) -> None:
    _, _, rest = (GUARDS / "README.md").read_text().partition("be two runs of a task:\n\n")
    lines = itertools.takewhile(lambda line: line.startswith("    "), rest.splitlines())
    shutil.copy(GUARDS / "file_guard.py", tmp_path)
    done = subprocess.run(
        ["sh", "-c", "\n".join(lines)], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (FENCED, "\n10 done\n")
    assert done.stderr == "fenced: nightly has token 2, ours is 1: a later owner has begun; stop\n"


def test_statements_in_one_transaction_behind_the_guard_are_kept_or_refused_as_one(
    tmp_path: Path,
) -> None:
    with (
        guard_called("sqlite", tmp_path) as guard,
        closing(sqlite3.connect(guard.place, timeout=PATIENCE_S, isolation_level=None)) as db,
    ):
        guard.attempt(OLD, "begin")
        update = "UPDATE fence SET value = ? WHERE key = ? AND token = ?"
        db.execute("CREATE TABLE report (line TEXT)")
        db.execute("BEGIN")
        assert db.execute(update, ("1", guard.key, f"{OLD:058d}")).rowcount == 1
        with guard.writer("step", str(NEW)) as new:  # waits for the database
            db.execute("INSERT INTO report VALUES ('one')")
            db.execute("COMMIT")
            assert new.communicate("\n", PATIENCE_S)[0] == f"began\nkept {mark(NEW, 0)}\n"
        assert guard.attempt(NEW, "show").stdout == f"{NEW} 1 {mark(NEW, 0)}\n"
        db.execute("BEGIN")
        assert db.execute(update, ("2", guard.key, f"{OLD:058d}")).rowcount == 0
        db.execute("ROLLBACK")
        assert db.execute("SELECT line FROM report").fetchall() == [("one",)]

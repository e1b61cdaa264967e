"""What `mesh join` listens on when it is not told."""

from __future__ import annotations

import gc
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest

from mesh.cli.join import _command, run_join
from mesh.cli.main import build_parser
from mesh.errors import ConfigError
from mesh.runtime import agent
from mesh.runtime.settings import AgentSettings

SettingsOf: TypeAlias = Callable[..., AgentSettings]


@pytest.fixture
def join(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> SettingsOf:
    """Return what turns words into the settings that a node would run with."""

    def settings_of(*words: str) -> AgentSettings:
        found: list[AgentSettings] = []

        def record(settings: AgentSettings, guardian: object, *, why_alone: str) -> int:
            assert guardian is None
            assert why_alone  # this process becomes nobody's guardian
            found.append(settings)
            return 0

        monkeypatch.setattr(agent, "run_agent", record)
        # A node is a small process. This one holds all tests, and looking through it takes a second.
        monkeypatch.setattr(gc, "collect", lambda: 0)
        parser, _ = build_parser()
        run_join(parser.parse_args(["join", "--headless", "--data", str(tmp_path), *words]))
        return found[0]

    return settings_of


def test_node_without_a_key_listens_on_loopback(join: SettingsOf) -> None:
    assert join().bind == ("127.0.0.1", 7946)


def test_node_with_a_key_given_or_kept_listens_everywhere(join: SettingsOf, tmp_path: Path) -> None:
    assert join("--key", "mesh.key").bind == ("0.0.0.0", 7946)
    (tmp_path / "keys").touch()
    assert join().bind == ("0.0.0.0", 7946)


def test_what_the_user_says_counts_with_a_key_too(join: SettingsOf) -> None:
    assert join("--key", "mesh.key", "--bind", "127.0.0.1:0").bind == ("127.0.0.1", 0)


@pytest.mark.parametrize(
    ("environment", "given", "line"),
    [
        ("", ["join", "--name", "n 1", "h:1"], "mesh join --name 'n 1' h:1"),
        ("/d", ["join", "h:1"], "mesh join --data /d h:1"),
        ("/d", ["join", "--data", "/e"], "mesh join --data /e"),
        ("", ["join", "--name", "a\nb"], ""),
        ("", ["join", "--label", "a=\udcff"], ""),
        ("", ["join", "--name", "x" * 5000], ""),
        ("", [], ""),
    ],
)
def test_the_line_that_starts_it_again_is_the_one_that_was_given(
    monkeypatch: pytest.MonkeyPatch, environment: str, given: list[str], line: str
) -> None:
    monkeypatch.setenv("MESH_DATA", environment)
    parser, _ = build_parser()
    options = parser.parse_args(given or ["join"])
    options.given = given
    assert _command(options) == line


def test_pause_tolerance_takes_the_place_of_the_profiles(join: SettingsOf) -> None:
    assert join("--profile", "lan").swim().pause_tolerance_s == 3.0
    quick = join("--profile", "lan", "--pause-tolerance", "0.4").swim()
    assert (quick.pause_tolerance_s, quick.probe_interval_s) == (0.4, 1.0)
    with pytest.raises(ConfigError, match=r"--pause-tolerance expects a number from 0\.1"):
        join("--pause-tolerance", "0")


def test_running_tasks_get_the_time_that_is_said_when_the_node_is_told_to_end(
    join: SettingsOf,
) -> None:
    assert join().drain_s == 0.0
    assert join("--drain", "0s").drain_s == 0.0
    assert join("--drain", "90s").drain_s == 90.0
    assert join("--drain", "10m").drain_s == 600.0
    for wrong in ("5", "31d", "soon"):
        with pytest.raises(ConfigError, match="--drain expects"):
            join("--drain", wrong)


def test_evidence_may_be_left_to_silence_alone(join: SettingsOf) -> None:
    assert join().has_evidence
    assert join().swim().lifeguard.has_lifelines
    plain = join("--evidence", "none")
    assert not plain.has_evidence
    assert not plain.swim().lifeguard.has_lifelines


def test_hooks_run_as_often_as_is_said(join: SettingsOf) -> None:
    plain = join().hooks
    assert (plain.health_check, plain.on_shortage) == (None, None)
    found = join("--health-check", "test -e /dev/null", "--on-shortage", "start-a-host --now").hooks
    assert (found.health_check, found.on_shortage) == ("test -e /dev/null", "start-a-host --now")
    assert (found.check_every_s, found.load_lasts_s, found.cool_down_s) == (10.0, 30.0, 600.0)
    often = ["--health-every", "5s", "--short-after", "1m", "--shortage-cool-down", "2h"]
    found = join("--health-check", "true", "--on-shortage", "true", *often).hooks
    assert (found.check_every_s, found.load_lasts_s, found.cool_down_s) == (5.0, 60.0, 7_200.0)
    for flag in ("--health-every", "--short-after", "--shortage-cool-down"):
        with pytest.raises(ConfigError, match=f"{flag} says when"):
            join(flag, "30s")
    for wrong in (["--health-check", " "], ["--on-shortage", ""], ["--short-after", "2h"]):
        with pytest.raises(ConfigError, match=f"{wrong[0]} expects"):
            join(*wrong)

"""One fault in a calm mesh: what is measured, how it is told, and that a seed repeats it."""

from __future__ import annotations

import json

import pytest

from mesh.errors import ConfigError
from mesh.node.config import profile
from mesh.sim.checkers import verdict_window_s
from mesh.sim.report import Result
from mesh.sim.scenario import FAULTS, run, run_sim, sweep

NODES = 12
SWIM = profile("local")


def measured(fault: str) -> Result:
    result = run_sim(NODES, fault, 1, profile="local", duration_s=4.0, check=True)
    assert result.has_held, result.to_text()
    return result


def test_every_survivor_notices_a_crash_at_once() -> None:
    found = measured("crash").detection
    assert len(found.seconds) == NODES - 1
    assert not found.missing
    assert max(found.seconds) <= 0.15


@pytest.mark.parametrize("fault", ["host", "pause"])
def test_every_survivor_notices_a_silent_member_in_time(fault: str) -> None:
    found = measured(fault).detection
    assert len(found.seconds) == NODES - 1
    assert not found.missing
    assert min(found.seconds) >= SWIM.pause_tolerance_s
    assert max(found.seconds) <= 10 * SWIM.probe_interval_s + verdict_window_s(SWIM, NODES)


def test_a_leave_is_known_to_all_within_a_second() -> None:
    found = measured("leave").detection
    assert len(found.seconds) == NODES - 1
    assert max(found.seconds) < 1.0


def test_a_restarted_member_is_alive_everywhere_within_two_periods() -> None:
    result = measured("restart")
    assert result.healed_s is not None
    assert result.healed_s <= 2 * SWIM.probe_interval_s


@pytest.mark.parametrize("fault", ["partition", "loss", "none"])
def test_views_are_right_again_and_nobody_healthy_was_accused(fault: str) -> None:
    result = measured(fault)
    assert result.converged_s is not None
    if fault != "loss":  # under heavy loss false verdicts are counted, not forbidden
        assert result.false_accusations == 0
    assert (result.healed_s is None) == (fault == "none")


def test_an_idle_member_sends_one_probe_and_one_ack_a_period() -> None:
    # Long enough that the first seconds, in which three come to vote, count for little.
    packets_s = run_sim(NODES, "none", 1, profile="local", duration_s=20.0).packets_s
    assert packets_s is not None
    assert packets_s == pytest.approx(2 / SWIM.probe_interval_s, rel=0.1)


def test_constant_loss_is_measured_not_condemned() -> None:
    result = run_sim(6, "none", 1, profile="local", duration_s=4.0, loss=0.2)
    assert result.has_held
    assert result.settings["loss"] == 0.2


def test_the_json_has_the_promised_shape() -> None:
    found = json.loads(json.dumps(measured("crash").to_json()))
    assert {"settings", "seed", "trace_hash", "converged_s", "detection"} <= set(found)
    assert {"false_accusations", "packets_s", "invariants"} <= set(found)
    assert found["invariants"] == "held"
    assert set(found["detection"]) == {"first_s", "median_s", "last_s", "missing"}


def test_the_table_is_aligned_and_says_it_all() -> None:
    text = measured("crash").to_text()
    rows = [line.split("  ")[0] for line in text.splitlines()]
    assert {"settings", "seed", "converged", "detection", "false accusations"} <= set(rows)
    starts = {len(line) - len(line[line.index("  ") :].lstrip()) for line in text.splitlines()}
    assert len(starts) == 1


def test_the_table_says_what_its_numbers_are() -> None:
    text = measured("crash").to_text()
    assert "a few round trips, since its host tells of a crash; were it silent, a probe" in text
    assert "its host tells" not in measured("host").to_text()
    assert " s, from the first start until all views were right\n" in text
    assert " s, from the end of the fault until all views were right again\n" in text
    shared_s, alone_s = SWIM.suspicion_s(NODES), SWIM.longest_suspicion_s(NODES)
    assert (
        f"a probe within a period or two of {SWIM.probe_interval_s:g} s, and a suspicion of "
        in text
    )
    assert (
        f"{shared_s:.1f} s if enough share it, {alone_s:.1f} s if nobody does (local, {NODES} members)"
        in text
    )
    assert "it repeats with the seed" in text


def test_what_was_not_looked_at_is_not_said_to_hold() -> None:
    plain = run_sim(NODES, "crash", 1, profile="local")
    assert plain.to_text().endswith("--check looks at views and nodes on the way, too")
    assert plain.to_json()["checked"] is False
    checked = run_sim(NODES, "crash", 1, profile="local", check=True)
    assert "held, every view and node looked at on the way" in checked.to_text()
    mixed = run_sim(6, "mixed", 3, profile="local")
    assert "held, every view" in mixed.to_text()
    assert " s, from the end of the faults until all views were right\n" in mixed.to_text()


def test_the_same_seed_measures_the_same_and_another_does_not() -> None:
    one, same, other = (run_sim(NODES, "crash", seed, profile="local") for seed in (1, 1, 2))
    assert one.trace_hash == same.trace_hash
    assert one.detection == same.detection
    assert one.trace_hash != other.trace_hash


def test_checking_does_not_change_the_run() -> None:
    plain = run_sim(NODES, "crash", 1, profile="local")
    assert plain.trace_hash == run_sim(NODES, "crash", 1, profile="local", check=True).trace_hash


def test_progress_is_told_in_order() -> None:
    told: list[tuple[float, str]] = []
    run_sim(NODES, "crash", profile="local", progress=lambda at_s, text: told.append((at_s, text)))
    assert [at_s for at_s, _ in told] == sorted(at_s for at_s, _ in told)
    assert any("all see all" in text for _, text in told)


def test_mixed_is_a_fault_like_the_others() -> None:
    result = run_sim(6, "mixed", 3, profile="local")
    assert result.has_held, result.to_text()
    assert result.settings["nodes"] == 6
    assert "--nodes 6" in result.replay


def test_a_sweep_yields_a_result_for_each_seed() -> None:
    assert [result.seed for result in sweep(range(3, 6))] == [3, 4, 5]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"fault": "flood"}, ", ".join(FAULTS[:-1])),
        ({"nodes": 1}, "at least 2"),
        ({"loss": 1.0}, "loss"),
        ({"delay_ms": -1.0}, "delay"),
        ({"profile": "moon"}, "profile"),
    ],
)
def test_a_wrong_setting_is_refused_before_anything_runs(
    settings: dict[str, object], words: str
) -> None:
    with pytest.raises(ConfigError, match=words):
        run_sim(**settings)  # type: ignore[arg-type]  # one wrong setting each


def test_a_mixed_run_needs_five_nodes() -> None:
    with pytest.raises(ConfigError, match="5"):
        run(1, nodes=4)

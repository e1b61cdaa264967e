"""A member's story in words: what happened to it, and what would have changed it.

Made of the node's answer alone. Hints are told from proof: `left` and `ended` are proof, every other
death is what the observers could know, and says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, TypeAlias

from mesh.cli.telling import day_clock, happening, page, paragraphs, title, when
from mesh.core.time import format_duration

Told: TypeAlias = dict[str, Any]

_ACCUSED: Final = frozenset({"suspect", "confirm", "dead"})
_REFUSALS: Final = frozenset({"connection_refused", "port_unreachable"})
_PROBES: Final = {
    "no_ack": "a ping",
    "no_indirect_ack": "pings through others",
    "no_tcp": "a question over TCP",
}


_TAKES_NOTHING: Final = {
    "standby": "it stands by, and takes no tasks until the load of its pool is high",
    "unfit": "it takes no tasks",
    "draining": "it takes no more tasks",
}
"""What follows from its availability; of one that is open nothing has to be said."""


def as_text(told: Told) -> str:
    """Return the whole story for people, in three parts."""
    lines = [headline(told), *(f"  {line}" for line in condition(told))]
    lines += ["", title(f"what {told['observer']} saw")]
    if not told["history"]:
        lines.append("  nothing against it, as far as it remembers")
    for at, words, evidence in _happenings(told):
        lines += happening(at, words, evidence)
    if changes := otherwise(told):
        is_open = told["state"] == "suspect"
        lines += ["", title("what would change it" if is_open else "what would have changed it")]
        lines += paragraphs(changes)
    return page(lines)


def headline(told: Told) -> str:
    """Return how the member is."""
    state = {"suspect": "is suspected", "left": "has left"}.get(
        told["state"], f"is {told['state']}"
    )
    cause = f" ({told['cause']})" if told["cause"] else ""
    who = f"{told['name']} ({told['node_id']})"
    return f"{who} {state}{cause}, as {told['observer']} sees it"


def condition(told: Told) -> list[str]:
    """Return since when it is so, when it was last heard, and how long its answers take."""
    age = format_duration(told["at"] - told["since"])
    lines = [f"for {age}, since {_clock(told, told['since'])}"]
    if told["state"] in {"alive", "suspect"} and (
        words := _TAKES_NOTHING.get(told.get("availability", ""))
    ):
        why = told.get("availability_why")
        lines.append(f"{words}: {why}" if why else words)
    if told["self"]:
        return [*lines, "it is this node itself"]
    if told["heard"] is not None:
        ago = format_duration(told["at"] - told["heard"])
        lines.append(f"last heard {ago} ago, at {_clock(told, told['heard'])}")
    if told["rtt_ms"] is not None:
        tense = "take" if told["state"] in {"alive", "suspect"} else "took"
        lines.append(f"its answers {tense} {_ms(told['rtt_ms'])}")
    return lines


def story(told: Told) -> list[str]:
    """Return a line for each thing that happened, oldest first; none if nothing was said against it."""
    return [
        f"{at}  {words}" + (f": {'; '.join(evidence)}" if evidence else "")
        for at, words, evidence in _happenings(told)
    ]


def _happenings(told: Told) -> Iterator[tuple[str, str, list[str]]]:
    """Yield when each thing happened, what it was, and the evidence that was not told before."""
    suspected_at: float | None = None
    known: list[str] = []
    for entry in told["history"]:
        if entry["kind"] == "suspect":
            suspected_at = entry["at"]
        evidence = [piece for piece in entry["evidence"] if piece not in known]
        known += [*evidence, f"{', '.join(evidence)}, as {entry['accuser']} saw"]
        if entry["kind"] in {"suspect", "confirm"}:  # the sentence says who
            who = entry["accuser"]
            evidence = [piece for piece in evidence if piece != f"suspected by {who}"]
            evidence = [piece.removesuffix(f", as {who} saw") for piece in evidence]
        elif suspected_at is not None:
            evidence = [piece for piece in evidence if not piece.startswith("accused by ")]
        yield when(told["at"], entry["at"]), _happened(told, entry, suspected_at), evidence
        if entry["kind"] not in _ACCUSED:
            suspected_at, known = None, []


def _happened(told: Told, entry: Told, suspected_at: float | None) -> str:
    kind = entry["kind"]
    accuser = entry["accuser"] or "somebody"
    if kind == "suspect":
        rtt = f" (its answers took {_ms(entry['rtt_ms'])})" if entry["rtt_ms"] else ""
        return f"{accuser} suspected it{rtt}"
    if kind == "confirm":
        return f"{accuser} suspected it too"
    if kind == "dead":
        kinds = entry["evidence_kinds"]
        is_told = "obituary" in kinds or ("declared" in kinds and "no_refutation" not in kinds)
        did = "heard that it is" if is_told else "declared it"
        return f"{told['observer']} {did} dead ({entry['cause']})"
    if kind == "refute" and not told["self"]:
        names = [name for name in (entry["accuser"], *entry["confirmed_by"]) if name]
        what = f"what {_names(names)} said" if names else "the suspicion"
        after = "" if suspected_at is None else f", {_span(entry['at'] - suspected_at)} later"
        return f"it refuted {what} itself{after}"
    phrases = {"return": "it came back", "leave": "it left", "forget": "it was forgotten"}
    return phrases.get(kind) or str(entry["detail"])


def otherwise(told: Told) -> list[str]:
    """Return what would have led to another outcome, or still may; nothing for a member that is well."""
    state, cause, name = told["state"], told["cause"], told["name"]
    if state == "suspect":
        return _of_a_suspect(told)
    if state == "left":
        return [
            f"Nothing: {name} said goodbye itself. That is proof: this session runs nothing any more."
        ]
    if state == "dead" and cause == "ended":
        return ["Nothing: that its session has ended is proven."]
    if state == "forgotten":
        text = (
            "Nothing: somebody asked for it, and it was gone already. If it lives after all, only cut off, "
            "it comes back by itself."
        )
        return [text]
    if state != "dead":
        return []
    run = _last_run(told["history"])
    lines = _crash(run) if cause == "crashed" else _silence(told, run)
    return [
        *lines,
        f"If {name} lives after all, its own word brings it back as soon as it is heard.",
    ]


def _of_a_suspect(told: Told) -> list[str]:
    found = told["suspicion"]
    if found is None:
        return []
    left_s = found["due"] - told["at"]
    due = f"{_clock(told, found['due'])} (in {format_duration(left_s)})"
    lines = [f"A word of its own by {due} refutes it; else {told['observer']} declares it dead."]
    if found["soonest"] < found["due"]:
        lines.append(f"If more confirm it, it has until {_clock(told, found['soonest'])} only.")
    if found["is_doubted"]:
        lines.append(f"{told['observer']} hears too little itself, and holds its verdict back.")
    return lines


def _silence(told: Told, run: Sequence[Told]) -> list[str]:
    """Return what would have kept a member from being declared dead for its silence."""
    lines = []
    asked = next((entry for entry in run if entry["kind"] == "suspect"), None)
    if asked is not None:
        tried = [word for kind, word in _PROBES.items() if kind in asked["evidence_kinds"]]
        by = _clock(told, asked["at"])
        who = asked["accuser"] or "anybody"
        if len(tried) > 1:
            lines.append(
                f"An answer to any of the {len(tried)} probes ({', '.join(tried)}) by {by} would have "
                f"kept {who} from suspecting it."
            )
        else:
            lines.append(f"An answer to {who} by {by} would have kept it from being suspected.")
    dead = next((entry for entry in reversed(run) if entry["kind"] == "dead"), None)
    if dead is not None:
        lines.append(f"A word of its own by {_clock(told, dead['at'])} would have refuted it.")
    lines.append("Silent is a hint, and no proof: a host that is paused or cut off is as silent.")
    return lines


def _crash(run: Sequence[Told]) -> list[str]:
    """Return what would have kept a member from being declared crashed."""
    refused = [
        entry["accuser"]
        for entry in run
        if entry["kind"] != "dead" and not _REFUSALS.isdisjoint(entry["evidence_kinds"])
    ]
    whose = f" of {' or '.join(dict.fromkeys(refused))}" if refused else ""
    text = (
        f"Crashed is a hint, and no proof: had its host answered a connection{whose}, it would only have "
        "been suspected. A firewall that resets and rejects looks the same."
    )
    return [text]


def _last_run(history: Sequence[Told]) -> list[Told]:
    """Return the entries of the last accusation, from its first suspicion on."""
    run: list[Told] = []
    for entry in reversed(history):
        if entry["kind"] not in _ACCUSED or (entry["kind"] == "dead" and run):
            break
        run.insert(0, entry)
    return run


def _span(seconds: float) -> str:
    return format_duration(max(0.0, seconds))


def _clock(told: Told, at: float) -> str:
    return day_clock(told["at"], at)


def _ms(value: float) -> str:
    return f"{value:.1f} ms"


def _names(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))

"""A suspect may well live: its words about work are heard, and it is told what it has to know."""

from __future__ import annotations

from mesh.core.effects import StartExchange, StartProcess
from mesh.core.process import ProcessExit
from mesh.node.config import Metadata
from mesh.node.node import Node
from mesh.wire.packet import decode_packet
from mesh.wire.swim_messages import Alive, Suspect
from mesh.wire.work_messages import Decline, Offer, OfferAnswer, Report, ReportAnswer, Spec, Verdict
from tests.unit.membership.pump import address, card_bytes, node_id
from tests.unit.node.talk import NOW, ask, from_host, started, submit, tell


def suspect(node: Node, number: int) -> None:
    tell(node, 3, Alive(card_bytes(3, meta=Metadata(slots=0))))
    tell(node, 3, Suspect(node_id(number), 1, 0, node_id(3)))
    states = {member["name"]: member["state"] for member in node.view(NOW).members}
    assert states[f"host-{number}"] == "suspect"


def test_report_is_sent_to_a_keeper_that_is_suspect() -> None:
    node = started()
    tell(node, 2, Alive(card_bytes(2)))
    _, effects = ask(node, 2, Offer(Spec(task_id="t", argv=("true",)), 1, 1))
    (run,) = [e.run_id for e in effects if isinstance(e, StartProcess)]
    suspect(node, 2)
    effects = node.handle_process(NOW, ProcessExit(run, 3))
    (sent,) = [e for e in effects if isinstance(e, StartExchange)]
    assert sent.to == address(2)
    assert decode_packet(sent.data).messages == (Report("t", 1, 3, "", 2),)
    effects = node.handle_exchange(NOW, sent.exchange_id, from_host(2, ReportAnswer(Verdict.TAKEN)))
    assert node.view(NOW).running == []
    node.check_invariants()


def test_report_of_an_owner_that_is_suspect_is_taken() -> None:
    node = started(meta=Metadata(slots=0))
    tell(node, 2, Alive(card_bytes(2, meta=Metadata(slots=1))))
    (offer,) = [e for e in submit(node, "t") if isinstance(e, StartExchange)]
    node.handle_exchange(NOW, offer.exchange_id, from_host(2, OfferAnswer(Decline.NONE, 1, 0)))
    suspect(node, 2)
    answer, _ = ask(node, 2, Report("t", 1, 0, "", 1))
    assert answer == ReportAnswer(Verdict.TAKEN)
    assert [task["state"] for task in node.view(NOW).tasks] == ["done"]

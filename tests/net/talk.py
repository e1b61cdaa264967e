"""A program for trying a network: it listens on a port, or speaks to one and says what came of it."""

from __future__ import annotations

import socket
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

PORT = 9000
SILENCE_S = 1.0


def serve(host: str) -> None:
    """Answer everything that is said by UDP or TCP; write one line for each datagram that was heard."""
    udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    udp.bind((host, PORT))
    tcp = socket.create_server((host, PORT))
    threading.Thread(target=_greet, args=(tcp,), daemon=True).start()
    print("listens", flush=True)
    while True:
        data, sender = udp.recvfrom(1024)
        print(data.decode(), flush=True)
        udp.sendto(data, sender)


def _greet(listener: socket.socket) -> None:
    while True:
        listener.accept()[0].close()


def ask(host: str, kind: str) -> str:
    """Return what comes of speaking to a host: "answered", "refused" or "silence"."""
    try:
        if kind == "tcp":
            socket.create_connection((host, PORT), timeout=SILENCE_S).close()
        else:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
                udp.settimeout(SILENCE_S)
                udp.connect((host, PORT))
                udp.send(b"ask")
                udp.recv(1024)
    except ConnectionRefusedError:
        return "refused"
    except TimeoutError:
        return "silence"
    return "answered"


def tell(host: str, count: int) -> None:
    """Send some datagrams, slowly enough for every buffer."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        for number in range(count):
            udp.sendto(f"told {number}".encode(), (host, PORT))
            if number % 20 == 19:
                threading.Event().wait(0.005)


if __name__ == "__main__":
    what, own, *others = sys.argv[1:]
    if what == "serve":
        serve(own)
    elif what == "tell":
        tell(own, int(others[0]))
    else:
        pairs = [(host, kind) for host in (own, *others) for kind in ("udp", "tcp")]
        with ThreadPoolExecutor() as pool:
            outcomes = list(pool.map(lambda pair: ask(*pair), pairs))
        print(*(f"{host}/{kind}={o}" for (host, kind), o in zip(pairs, outcomes, strict=True)))

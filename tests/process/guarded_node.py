"""A node as its guardian sees one: it hands its link to the test, and starts what it is told to."""

import os
import socket
import sys

test = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
test.connect(sys.argv[1])
link = int(os.environ.pop("MESH_GUARDIAN_FD"))
socket.send_fds(test, [f"{os.getpid()}\n".encode()], [link])
os.close(link)
orders = test.makefile("rb")
while line := orders.readline():
    word, *rest = line.rstrip(b"\n").split(b"\0")
    if word == b"exit":
        os._exit(int(rest[0]))
    if word == b"reap":
        answer = os.waitpid(int(rest[0]), 0)[1]
    else:
        answer = os.fork()
        if not answer:
            os.setsid()
            os.execvp(rest[0], rest)
    test.sendall(f"{answer}\n".encode())

"""The guardian's process: it starts the node, keeps deadlines, and has the last word.

One loop, one wait. Whoever wakes it, what is due is frozen first, before anything is read: after a
pause of its own it does not know how late it is. Then the orders that have come are read, and only
then is anything killed: a run that was renewed meanwhile lost nothing but that moment. Deadlines
wake it by a timer on CLOCK_BOOTTIME, which fires at once when the host was asleep beyond them.

When the node ends, however it ends, its work is killed until the guardian has no child left. Then
the obituary goes out, and the guardian ends as the node did. What shares the guardian's process group
is no work, as work has sessions of its own: it is the node's screen, which has a moment to give the
terminal back.
"""

from __future__ import annotations

import _socket
import ctypes
import os
import select
import struct
import time
from errno import ENOENT

from mesh.guardian.link import (
    ALONE_VARIABLE,
    DONE,
    FD_VARIABLE,
    FORWARDED,
    KILLED,
    LEFT_UNKNOWN,
    MARK_VARIABLE,
    PACKET_BYTES_MAX,
    Leader,
    decode_answer,
    deliver,
    encode_cleared,
    encode_run_id,
)
from mesh.guardian.process import SIGSTOP, become, kill_below, look
from mesh.guardian.record import Leftovers, Record, clear, load
from mesh.guardian.work import INFINITY, RUNS_MAX, Run, Work

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Callable
    from typing import Any, Final

    from mesh.guardian.link import Place
else:
    import _signal as signal  # the same without its enumerations: 0.7 MiB less

END_TIMEOUT_S: Final = 10.0
"""How long work that was killed is waited for; then there is no obituary."""

SCREEN_TIMEOUT_S: Final = 2.0
"""How long the node's screen may take to give the terminal back, after the node has ended."""

OBITUARY_ROUNDS: Final = 3
OBITUARY_SPACING_S: Final = 0.05
ORDERS_PER_ROUND_MAX: Final = 4096
ANSWERS_MAX: Final = 2 * RUNS_MAX

_PR_SET_PDEATHSIG: Final = 1
_PR_SET_NAME: Final = 15
_PR_SET_CHILD_SUBREAPER: Final = 36
_TFD_TIMER_ABSTIME: Final = 1
_CLOEXEC_NONBLOCK: Final = os.O_CLOEXEC | os.O_NONBLOCK
_SIGNAL_INFO_BYTES: Final = 128
_SIGSET_BYTES: Final = 128
_FROM_KERNEL: Final = 0x80
_SAID_MAX: Final = 64
_CLEARED_KEY: Final = -1
_FAR_S: Final = 2e9

_FORWARDED: Final = (
    signal.SIGTERM,
    signal.SIGINT,
    signal.SIGHUP,
    signal.SIGQUIT,
    signal.SIGUSR1,
    signal.SIGUSR2,
)
_HANDLED: Final = (*_FORWARDED, signal.SIGCHLD, signal.SIGTSTP)
_FROM_TERMINAL: Final = {signal.SIGINT, signal.SIGQUIT}
"""Of these the terminal tells the node too, which is in the same process group."""


class Guardian:
    """One node's guardian, from its start to its end."""

    def __init__(self, record_path: str, command: list[str]) -> None:
        self._pid = os.getpid()
        me = look(self._pid)
        if me is None or os.readlink("/proc/self") != str(self._pid):
            raise OSError(ENOENT, "it needs a /proc in which it finds itself: mount one")
        self._command = command
        self._mark = f"{self._pid}.{me.start}"
        self._record_path = record_path
        self._record = Record(record_path, self._mark)
        self._work = Work(self._pid, {os.getpgrp(), os.getsid(0)}, self._say)
        self._status: int | None = None
        self._answers: dict[int, bytes] = {}  # one for each run: the last word counts
        self._places: list[Place] = []
        self._sealed = b""
        self._clearing: tuple[int, int, Leftovers] | None = None
        self._armed = INFINITY
        self._is_deaf = False
        self._said: set[str] = set()

        self._libc = ctypes.CDLL(None, use_errno=True)
        self._call("prctl", _PR_SET_NAME, b"mesh-guardian", 0, 0, 0)
        self._call("prctl", _PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # else children vanish without a word
        self._mask_before = signal.pthread_sigmask(signal.SIG_BLOCK, _HANDLED)
        mask = struct.pack("@L", sum(1 << (number - 1) for number in _HANDLED))
        mask = mask.ljust(_SIGSET_BYTES, b"\0")
        self._signals = self._call("signalfd", -1, mask, _CLOEXEC_NONBLOCK)
        self._timer = self._call("timerfd_create", time.CLOCK_BOOTTIME, _CLOEXEC_NONBLOCK)
        self._link, self._far_link = _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_SEQPACKET)
        self._link.setblocking(False)
        self._poller = select.poll()
        for fd in (self._signals, self._timer, self._link.fileno()):
            self._poller.register(fd, select.POLLIN)

    def run(self) -> int:
        """Guard until the node has ended; return how it ended, as a shell would put it."""
        while self._status is None:
            self._work.freeze_due(_now())
            self._read_orders()
            self._work.settle(_now())
            self._send_answers()
            self._arm(self._work.next_deadline())
            self._wait()
        self._read_orders()  # the last obituary may still be among them
        if self._kill_rest():
            self._send_obituary()
        else:
            self._complain("some of its work would not die: no obituary was sent")
        return self._status

    # What the node asks for: see the link.

    def watch(self, run_id: int, leader: Leader, freeze_at: float, kill_at: float) -> None:
        """Guard a run."""
        if self._work.watch(run_id, leader, freeze_at, kill_at):
            self._note(self._record.add, (leader.pid, leader.start))

    def move(self, run_id: int, freeze_at: float, kill_at: float) -> None:
        """Move a run's deadlines."""
        self._work.move(run_id, freeze_at, kill_at)

    def done(self, run_id: int) -> None:
        """Forget a run, and clear away what it has left behind."""
        self._work.done(run_id, _now())

    def take_obituary(self, places: list[Place], sealed: bytes) -> None:
        """Replace what is sent when the node has ended."""
        self._places, self._sealed = places, sealed

    def clear(self) -> None:
        """Clear away what the last boot left behind, in a child: what it has to read may not answer."""
        if self._clearing is not None:
            return
        try:
            left = load(self._record_path)
            ear, mouth = os.pipe()
            pid = os.fork()
        except OSError as error:
            self._complain(f"what the last boot left cannot be found out: {error}")
            self._answers[_CLEARED_KEY] = encode_cleared(0, LEFT_UNKNOWN)
            return
        if pid == 0:
            try:
                self._call("prctl", _PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
                os.write(mouth, encode_cleared(*clear(left, self._pid)))
            finally:
                os._exit(0)
        os.close(mouth)
        self._work.spared.add(pid)
        self._clearing = (pid, ear, left)

    def _finish_clearing(self, pid: int, ear: int, left: Leftovers) -> None:
        answer = os.read(ear, PACKET_BYTES_MAX) or encode_cleared(0, LEFT_UNKNOWN)
        os.close(ear)
        self._work.spared.discard(pid)
        self._clearing = None
        self._note(self._record.begin, left if decode_answer(answer)[2] else Leftovers())
        self._answers[_CLEARED_KEY] = answer

    # The loop.

    def _read_orders(self) -> None:
        for _ in range(ORDERS_PER_ROUND_MAX):
            try:
                packet = self._link.recv(PACKET_BYTES_MAX + 1)
            except BlockingIOError:
                return
            except OSError:  # the node has gone, and left answers unread
                return
            if not packet:  # the end, or an empty packet: the wait tells them apart
                return
            try:
                deliver(packet, self)
            except ValueError as error:
                self._complain(f"an order was dropped: {error}")

    def _send_answers(self) -> None:
        events = select.POLLIN
        for key, packet in list(self._answers.items()):
            try:
                self._link.send(packet)
            except BlockingIOError:
                events |= select.POLLOUT
                break
            except OSError:  # the node does not listen any more
                self._answers.clear()
                break
            del self._answers[key]
        if not self._is_deaf:
            self._poller.modify(self._link.fileno(), events)

    def _arm(self, deadline: float) -> None:
        """Let the timer fire at this time, at once if it is past, or never."""
        if deadline == self._armed:
            return
        self._armed = deadline
        # Zero would be never, as is what lies beyond any host's life.
        whole, rest = divmod(max(deadline, 1e-6), 1.0) if deadline < _FAR_S else (0, 0)
        value = struct.pack("@llll", 0, 0, int(whole), int(rest * 1e9))
        self._call("timerfd_settime", self._timer, _TFD_TIMER_ABSTIME, value, None)

    def _wait(self) -> None:
        for fd, events in self._poller.poll():
            if fd == self._signals:
                self._take_signals()
            elif fd == self._timer:
                _drain(self._timer, 8)
                self._armed = -INFINITY
            elif events & (select.POLLHUP | select.POLLERR):
                self._is_deaf = True
                self._poller.unregister(fd)

    def _take_signals(self) -> None:
        while info := _drain(self._signals, _SIGNAL_INFO_BYTES):
            number, _, code = struct.unpack_from("@Iii", info)
            if number == signal.SIGCHLD:
                self._reap()
            elif self._status is not None:
                continue
            elif number == signal.SIGTSTP:
                # Nobody keeps deadlines while this process is stopped: so nothing runs meanwhile.
                self._read_orders()
                self._work.freeze_all(_now())
                os.kill(self._pid, SIGSTOP)
            elif not (
                number in _FROM_TERMINAL and code == _FROM_KERNEL and self._shares_terminal()
            ):
                # Said first: who signals the whole group, or service, reaches the node twice.
                self._answers[_CLEARED_KEY - number] = encode_run_id(FORWARDED, number)
                self._send_answers()
                os.kill(self._work.node, number)

    def _shares_terminal(self) -> bool:
        return os.getpgid(self._work.node) == os.getpgrp()

    def _reap(self) -> bool:
        """Reap whoever has ended; return whether no child is left."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return True
            if pid == 0:
                return False
            if pid == self._work.node:
                code = os.waitstatus_to_exitcode(status)
                self._status = code if code >= 0 else 128 - code
            elif self._clearing is not None and pid == self._clearing[0]:
                self._finish_clearing(*self._clearing)

    # The beginning and the end.

    def start(self) -> None:
        """Start the node. Raises OSError if no process can be had."""
        fd = self._far_link.fileno()
        pid = os.fork()
        if pid:
            self._work.node = pid
            self._far_link.close()
            return
        try:
            # If the guardian is killed while the node is stopped, the node has to wake and notice.
            self._call("prctl", _PR_SET_PDEATHSIG, int(signal.SIGCONT), 0, 0, 0)
            os.set_inheritable(fd, True)
            own = {FD_VARIABLE: str(fd), MARK_VARIABLE: self._mark}
            become(self._command, own, self._mask_before)
        except OSError as error:
            self._complain(f"{self._command[0]} cannot be started: {error.strerror}")
        finally:
            os._exit(127)

    def _kill_rest(self) -> bool:
        """Kill all that is left, and reap it; False if some of it would not die."""
        began = _now()
        ear = select.poll()
        ear.register(self._signals, select.POLLIN)
        pause_ms = 1
        while not self._reap():
            passed_s = _now() - began
            if passed_s > END_TIMEOUT_S:
                return False
            try:
                kill_below(self._pid, os.getpgrp() if passed_s < SCREEN_TIMEOUT_S else 0)
            except OSError as error:  # no descriptor, no memory: perhaps after the pause
                self._complain(f"its work cannot be looked at: {error}")
            ear.poll(pause_ms)
            self._take_signals()
            pause_ms = min(2 * pause_ms, 200)
        return True

    def _send_obituary(self) -> None:
        sockets = {}
        for length, family in ((4, _socket.AF_INET), (16, _socket.AF_INET6)):
            if any(len(host) == length for host, _ in self._places):
                sockets[length] = family, _socket.socket(family, _socket.SOCK_DGRAM)
        for count in range(OBITUARY_ROUNDS if self._places else 0):
            if count:
                time.sleep(OBITUARY_SPACING_S)
            for host, port in self._places:
                family, sender = sockets[len(host)]
                try:
                    sender.sendto(self._sealed, (_socket.inet_ntop(family, host), port))
                except OSError as error:  # the others still want to know
                    self._complain(f"an obituary could not be sent: {error}")

    # Small change.

    def _say(self, kind: int, run: Run) -> None:
        if kind in {DONE, KILLED}:
            self._note(self._record.drop, (run.leader.pid, run.leader.start))
        if kind != DONE:
            self._answers[run.run_id] = encode_run_id(kind, run.run_id)
            if len(self._answers) > ANSWERS_MAX:  # a node that asks on and on, and never listens
                del self._answers[next(iter(self._answers))]

    def _note(self, write: Callable[[Any], None], what: object) -> None:
        try:
            write(what)
        except OSError as error:
            self._complain(f"{self._record_path} cannot be written: {error.strerror}")

    def _complain(self, text: str) -> None:
        """Say something on stderr, once, and only where nobody has to be waited for."""
        ear = select.poll()
        ear.register(2, select.POLLOUT)
        if text in self._said or len(self._said) >= _SAID_MAX or not ear.poll(0):
            return
        self._said.add(text)
        try:
            os.write(2, f"mesh guardian: {text}\n".encode())
        except OSError:
            return  # nobody hears it

    def _call(self, name: str, *arguments: object) -> int:
        result: int = getattr(self._libc, name)(*arguments)
        if result < 0:
            number = ctypes.get_errno()
            raise OSError(number, f"{name}: {os.strerror(number)}")
        return result


def _now() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def _drain(fd: int, size_bytes: int) -> bytes:
    try:
        return os.read(fd, size_bytes)
    except BlockingIOError:
        return b""


def main(arguments: list[str]) -> int:
    """Guard a command: RECORD COMMAND [ARGUMENT…]. Returns the command's exit code.

    Where there can be no guardian the command takes its place, and finds the reason in its environment.
    """
    if len(arguments) < 2:
        os.write(2, b"mesh guardian: expected RECORD COMMAND [ARGUMENT...]\n")
        return 2
    command = arguments[1:]
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    try:
        guardian = Guardian(arguments[0], command)
        guardian.start()
    except OSError as error:
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)  # orphans are init's again
        become(command, {ALONE_VARIABLE: error.strerror or str(error)}, mask)
    return guardian.run()

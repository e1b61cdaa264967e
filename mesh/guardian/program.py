"""The guardian's process: it starts the node, keeps deadlines, and has the last word.

One loop, one wait. Whoever wakes it, what is due is frozen first, before anything is read: after a
pause of its own it does not know how late it is. Then the orders that have come are read, and only
then is anything killed: a run that was renewed meanwhile lost nothing but that moment. Deadlines
wake it by a timer on CLOCK_BOOTTIME, which fires at once when the host was asleep beyond them.

When the node ends, however it ends, its work is killed until nothing of it is left. Then
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

from mesh.guardian.company import Company
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
from mesh.guardian.obituary import send_obituary
from mesh.guardian.process import SIGSTOP, become, kill_all, look, may_be_continued
from mesh.guardian.record import Leftovers, Record, clear, load
from mesh.guardian.voice import Voice
from mesh.guardian.work import INFINITY, RUNS_MAX, Run, Work

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Callable
    from typing import Final

    from mesh.guardian.link import Letter
else:
    import _signal as signal  # the same without its enumerations: 0.7 MiB less

END_TIMEOUT_S: Final = 10.0
"""How long work that was killed is waited for; then there is no obituary."""

SCREEN_TIMEOUT_S: Final = 2.0
"""How long the node's screen may take to give the terminal back, after the node has ended."""

REPAIR_S: Final = 5.0  # the wait after the record could not be written
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
_CLEARED_KEY: Final = -1
_FAR_S: Final = 2e9

_LEAVE: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)
_FORWARDED: Final = (*_LEAVE, signal.SIGUSR1, signal.SIGUSR2)
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
        self._complain = Voice().complain
        self._mark = f"{self._pid}.{me.start}"
        self._record_path = record_path
        self._record = Record(record_path, self._mark)
        self._status: int | None = None
        self._answers: dict[int, bytes] = {}  # one for each run: the last word counts
        self._letters: list[Letter] = []
        self._clearing: tuple[int, int] | None = None
        self._repair_at = INFINITY
        self._armed = INFINITY
        self._is_deaf = False

        self._libc = ctypes.CDLL(None, use_errno=True)
        self._call("prctl", _PR_SET_NAME, b"mesh-guardian", 0, 0, 0)
        self._call("prctl", _PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # else children vanish without a word
        self._company = Company(self._pid, f"{MARK_VARIABLE}={self._mark}")
        self._work = Work(self._company, {os.getpgrp(), os.getsid(0)}, self._say)
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
            if self._repair_at <= _now():
                self._repair_at = INFINITY
                self._note(self._record.repair)
            self._arm(min(self._work.next_deadline(), self._repair_at))
            self._wait()
        self._read_orders()  # the last obituary may still be among them
        if reason := self._kill_rest():
            self._complain(f"{reason}: no obituary was sent")
        else:
            send_obituary(self._letters, self._complain)
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

    def take_obituary(self, letters: list[Letter]) -> None:
        """Replace what is sent when the node has ended."""
        self._letters = letters

    def clear(self) -> None:
        """Clear away what the last boot left behind, in a child: what it has to read may not answer."""
        if self._clearing is not None:
            return
        try:
            ear, mouth = os.pipe()
            pid = os.fork()
        except OSError as error:
            self._complain(f"what the last boot left cannot be found out: {error}")
            self._answers[_CLEARED_KEY] = encode_cleared(0, LEFT_UNKNOWN)
            return
        if pid == 0:
            try:
                self._call("prctl", _PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
                os.write(mouth, encode_cleared(*clear(load(self._record_path), self._pid)))
            finally:
                os._exit(0)
        os.close(mouth)
        self._work.spared.add(pid)
        self._clearing = (pid, ear)

    def _finish_clearing(self, pid: int, ear: int) -> None:
        answer = os.read(ear, PACKET_BYTES_MAX) or encode_cleared(0, LEFT_UNKNOWN)
        os.close(ear)
        self._work.spared.discard(pid)
        self._clearing = None
        self._answers[_CLEARED_KEY] = answer
        try:
            left = load(self._record_path) if decode_answer(answer)[2] else Leftovers()
        except OSError as error:  # as it was for the child
            self._complain(f"what the last boot left cannot be found out: {error}")
        else:
            self._note(self._record.begin, left)

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
                self._stop()
            elif not (
                number in _FROM_TERMINAL and code == _FROM_KERNEL and self._shares_terminal()
            ):
                # Said first: who signals the whole group, or service, reaches the node twice.
                self._answers[_CLEARED_KEY - number] = encode_run_id(FORWARDED, number)
                self._send_answers()
                os.kill(self._work.node, number)

    def _stop(self) -> None:
        """Stop as the terminal wants, unless nobody could continue this process: the node does the same."""
        try:
            if not may_be_continued(os.getpgrp()):
                return
        except OSError as error:
            self._complain(f"it does not stop, as nobody knows who could continue it: {error}")
            return
        # Nobody keeps deadlines while this process is stopped: so nothing runs meanwhile.
        self._read_orders()
        self._work.freeze_all(_now())
        os.kill(self._pid, SIGSTOP)

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
                self._work.node = 0  # its pid may be given anew
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

    def _kill_rest(self) -> str:
        """Kill all that is left, and reap it; return why it cannot be said that none of it runs, or ""."""
        began = _now()
        ear = select.poll()
        ear.register(self._signals, select.POLLIN)
        pause_ms = 1
        while not self._reap():
            passed_s = _now() - began
            if passed_s > END_TIMEOUT_S:
                return "some of its work would not die"
            try:
                if self._kill_once(os.getpgrp() if passed_s < SCREEN_TIMEOUT_S else 0):
                    break
            except OSError as error:  # no descriptor, no memory: perhaps after the pause
                self._complain(f"its work cannot be looked at: {error}")
            ear.poll(pause_ms)
            self._take_signals()
            pause_ms = min(2 * pause_ms, 200)
        if self._company.unclear:
            return "some of what runs below it may be its work, or not"
        return ""

    def _kill_once(self, spared_group: int) -> bool:
        """Kill what is the node's; return whether nothing of it is left beside others that live on."""
        find = self._work.find
        kill_all(lambda: [process for process in find() if process.group != spared_group])
        return self._company.is_shared and all(process.is_dead for process in find())

    # Small change.

    def _say(self, kind: int, run: Run) -> None:
        if kind in {DONE, KILLED}:
            self._note(self._record.drop, (run.leader.pid, run.leader.start))
        if kind != DONE:
            self._answers[run.run_id] = encode_run_id(kind, run.run_id)
            if len(self._answers) > ANSWERS_MAX:  # a node that asks on and on, and never listens
                del self._answers[next(iter(self._answers))]

    def _note(self, write: Callable[..., None], *what: object) -> None:
        try:
            write(*what)
        except OSError as error:
            self._repair_at = _now() + REPAIR_S
            self._complain(f"{self._record_path} cannot be written: {error.strerror}")

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

"""A program that is talked to in lines, over its standard input and output, and that can do its caller no harm.

Nothing here waits longer than it is told to, or keeps more than some kilobytes of what the program writes.
"""

import contextlib
import os
import selectors
import signal
import subprocess
import time
import weakref
from collections import deque

LONGEST_LINE = 1 << 16  # bytes
MOST_LINES = 1000  # that may wait to be read
MOST_UNREAD = 1 << 20  # bytes that the program may leave unread
ERRORS_KEPT = 10  # last lines of its stderr
GRACE = 0.5  # seconds in which it may end by itself


class Trouble(Exception):
    """The program did something that it may not do.

    Args:
        kind: A word for it; here ``"timeout"``, ``"exit"`` or ``"flood"``.
        what: What it did.
    """

    def __init__(self, kind: str, what: str) -> None:
        super().__init__(what)
        self.kind = kind


class Program:
    """A running program, in a process group of its own.

    Args:
        words: The command.

    Attributes:
        owner: Id of the process that started it: a fork of that one must leave it alone.

    Raises:
        OSError: If there is no such program.
    """

    def __init__(self, words: list[str]) -> None:
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=pipe, bufsize=0, start_new_session=True)
        self.owner = os.getpid()
        # When nobody needs it any more, at the latest when Python ends.
        self._end = weakref.finalize(self, _end, self._process, self.owner)
        pipes = self._process.stdin, self._process.stdout, self._process.stderr
        self._stdin, self._stdout, self._stderr = (file.fileno() for file in pipes if file is not None)
        for number in (self._stdin, self._stdout, self._stderr):
            os.set_blocking(number, False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._stdout, selectors.EVENT_READ)
        self._selector.register(self._stderr, selectors.EVENT_READ)
        self._unread = bytearray()  # what it has not taken yet
        self._partial = {self._stdout: bytearray(), self._stderr: bytearray()}  # lines without their end
        self._lines: deque[str] = deque()
        self._errors: deque[str] = deque(maxlen=ERRORS_KEPT)
        self._silent = False  # whether it has closed its stdout

    def send(self, line: str) -> None:
        """Writes a line, now or as soon as the program reads.

        Raises:
            Trouble: If it has left too much unread, or floods us.
        """
        if not self._unread:
            self._selector.register(self._stdin, selectors.EVENT_WRITE)
        self._unread += line.encode() + b"\n"
        self._pump(0)
        if len(self._unread) > MOST_UNREAD:
            raise Trouble("timeout", "it does not read what it is told")

    def receive(self, seconds: float) -> str:
        """Returns the next line that it writes. Empty lines and those that start with # are its own business.

        Raises:
            Trouble: If there is none in time, it has ended, or it floods us.
        """
        deadline = time.monotonic() + seconds
        while True:
            while self._lines:
                line = self._lines.popleft().strip()
                if line and not line.startswith("#"):
                    return line
            left = deadline - time.monotonic()
            if self._silent or (left <= 0 and self._process.poll() is not None):
                raise Trouble("exit", f"it ended ({self._status()})")
            if left <= 0:
                raise Trouble("timeout", f"no answer within {seconds:g} seconds")
            self._pump(left)

    def drop_lines(self) -> int:
        """Drops what it has written so far, and returns how many lines that were.

        Raises:
            Trouble: If it floods us.
        """
        while self._pump(0):
            pass
        dropped = sum(1 for line in self._lines if line.strip() and not line.lstrip().startswith("#"))
        self._lines.clear()
        return dropped

    def last_words(self) -> str:
        """Returns the last lines of its stderr, in one."""
        lines = [" ".join(line.split()) for line in self._errors]
        return " | ".join(line for line in lines if line)[-500:]

    def stop(self) -> None:
        """Ends it and whatever it has started that is still in its process group."""
        with contextlib.suppress(Trouble):
            self._pump(0)  # its last words
        self._selector.close()
        self._end()

    def _pump(self, seconds: float) -> bool:
        """Waits until something can be read or written, and does so; says whether there was anything to read."""
        some = False
        for key, _ in self._selector.select(seconds):
            if key.fd == self._stdin:
                self._write()
            else:
                some = self._read(key.fd) or some
        return some

    def _write(self) -> None:
        try:
            written = os.write(self._stdin, self._unread)
        except BlockingIOError:
            return
        except OSError:  # it reads no more: what it writes, or its end, will say why
            written = len(self._unread)
        del self._unread[:written]
        if not self._unread:
            self._selector.unregister(self._stdin)

    def _read(self, pipe: int) -> bool:
        try:
            chunk = os.read(pipe, LONGEST_LINE)
        except BlockingIOError:
            return False
        if not chunk:
            self._selector.unregister(pipe)
            self._silent = self._silent or pipe == self._stdout
        partial = self._partial[pipe]
        *lines, rest = (partial + chunk).split(b"\n")
        partial[:] = rest[-LONGEST_LINE:]
        (self._lines if pipe == self._stdout else self._errors).extend(line.decode(errors="replace") for line in lines)
        if pipe == self._stdout and (len(rest) >= LONGEST_LINE or len(self._lines) > MOST_LINES):
            raise Trouble("flood", "it writes far more than an answer")
        return bool(chunk)

    def _status(self) -> str:
        try:
            status = self._process.wait(GRACE)
        except subprocess.TimeoutExpired:
            return "it has closed its stdout"
        return f"exit status {status}" if status >= 0 else f"signal {-status}"


def _end(process: subprocess.Popen[bytes], owner: int) -> None:
    """Ends a process: by the word quit and the end of its input, after a moment by force, with its process group."""
    if os.getpid() != owner or process.stdin is None or process.stdout is None or process.stderr is None:
        return
    with contextlib.suppress(OSError):
        os.write(process.stdin.fileno(), b"quit\n")
    process.stdin.close()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(GRACE)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()
    process.stderr.close()

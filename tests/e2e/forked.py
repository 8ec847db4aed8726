"""Trainings whose process need not import PyTorch: it is forked by one that has.

`Server.run` is `trainings.run_training` but for that: `traindbg run` starts forked_client.py in the
place of the script, and that has a child of the server run the script, with its arguments,
environment, folder and output. It is for tests of what is found, and takes a tenth of the time.
Ranks that the script spawns by torch.multiprocessing are forked, too, and need not be pickled.
How a process starts and ends, by itself, by a signal or with children, is to be tested with
`run_training`, once at least: a forked one calls what traindbg does at its end by itself.

As a program it is the server: `python forked.py SOCKET`. It ends when its standard input does.
"""

from __future__ import annotations

import atexit
import functools
import gc
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, NoReturn

if TYPE_CHECKING:
    from trainings import Outcome

ROOT = Path(__file__).resolve().parents[2]
MEASURE = ROOT / "benchmarks" / "python"
CLIENT = Path(__file__).with_name("forked_client.py")
SECONDS = 200
MOST_BYTES = 1 << 20  # of a request


class Server:
    """The server of a session of tests, and a context that ends it."""

    def __init__(self, folder: Path) -> None:
        self._log = folder / "log"
        self._socket = folder / "socket"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, __file__, str(self._socket)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )
        assert self._process.stdout is not None
        if not self._process.stdout.readline():  # it is told when it is ready
            self._fail()

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate(timeout=SECONDS)

    def python(self, seconds: float = SECONDS) -> tuple[str, ...]:
        """What stands before a script in the place of the interpreter, also without `traindbg run`.

        A training that takes longer is ended.
        """
        return (sys.executable, "-I", "-S", str(CLIENT), str(self._socket), str(seconds))

    def run(
        self,
        runs: Path,
        script: Path,
        *arguments: object,
        options: tuple[str, ...] = (),
        **extra: str,
    ) -> Outcome:
        """`traindbg run OPTIONS -- python SCRIPT ARGUMENTS`, to its end."""
        from trainings import run_training  # tests/python has other trainings

        outcome = run_training(
            runs, script, *arguments, options=options, python=self.python(), **extra
        )
        if self._process.poll() is not None:
            self._fail()
        return outcome

    def plain(
        self, script: Path, *arguments: object, **extra: str
    ) -> subprocess.CompletedProcess[str]:
        """The same training without traindbg."""
        from trainings import run_plain

        return run_plain(script, *arguments, python=self.python(), **extra)

    def _fail(self) -> None:
        code = self._process.wait(timeout=SECONDS)
        raise RuntimeError(f"forked.py ended with {code}:\n{self._log.read_text()[-4000:]}")


class Request(NamedTuple):
    """A training that is asked for."""

    seconds: float
    script: str
    arguments: list[str]
    folder: str
    environment: dict[str, str]


class Child(NamedTuple):
    """A training that runs, and who waits for its end."""

    pid: int
    connection: socket.socket
    seconds: float
    until: float  # of time.monotonic()


def serve(path: str) -> Request | None:
    """Forks a child for each training that is asked for. None: nobody will ask any more.

    Returns its request in each of the children, which ends by itself.
    """
    children: dict[int, Child] = {}  # by a descriptor that is ready when it has ended
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(path)
        listener.listen()
        print("ready", flush=True)
        try:
            while True:
                waiting = [child.connection for child in children.values()]
                left = [child.until - time.monotonic() for child in children.values()]
                ready, _, _ = select.select(
                    [listener, sys.stdin, *children, *waiting],
                    [],
                    [],
                    max(0.0, min(left)) if left else None,
                )
                if sys.stdin in ready:
                    return None
                for descriptor, child in list(children.items()):
                    late = time.monotonic() >= child.until
                    if late or descriptor in ready or child.connection in ready:
                        del children[descriptor]
                        finish(child, descriptor, is_late=late and descriptor not in ready)
                if listener not in ready:
                    continue
                request = accept(listener, children)
                if request is not None:
                    children.clear()  # the server's
                    return request
        finally:
            for descriptor, child in children.items():
                finish(child, descriptor, is_late=False)


def accept(listener: socket.socket, children: dict[int, Child]) -> Request | None:
    """Starts what is asked for, in a child, where its request is returned."""
    connection, _ = listener.accept()
    text, output, _, _ = socket.recv_fds(connection, MOST_BYTES, 3)
    try:
        request = Request(**json.loads(text))
        if len(output) != 3:
            raise ValueError("it has gone")
        pid = os.fork()
    except (OSError, TypeError, ValueError):
        connection.close()
        for descriptor in output:
            os.close(descriptor)
        return None
    if pid == 0:
        for descriptor, child in children.items():
            os.close(descriptor)
            child.connection.close()
        connection.close()
        for number, descriptor in enumerate(output):
            os.dup2(descriptor, number)
            os.close(descriptor)
        os.setpgid(0, 0)
        return request
    for descriptor in output:
        os.close(descriptor)
    until = time.monotonic() + request.seconds
    children[os.pidfd_open(pid)] = Child(pid, connection, request.seconds, until)
    return None


def finish(child: Child, descriptor: int, *, is_late: bool) -> None:
    """Ends a child, if it has not ended, with what it started; tells its status, and why we did."""
    os.close(descriptor)
    for kill in (os.killpg, os.kill):  # its group, which it has made
        try:
            kill(child.pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
    why = f"the training took longer than {child.seconds} s and was ended" if is_late else ""
    answer = os.waitpid(child.pid, 0)[1], why
    with child.connection:
        try:
            child.connection.send(json.dumps(answer).encode())
        except BrokenPipeError:
            return  # who asked has gone


def main() -> None:
    sys.path[0] = str(MEASURE)
    from measure import recording

    recording.import_once()
    import numpy
    import torch

    gc.freeze()  # children need not go through what is there already, not even at their end
    request = serve(sys.argv[1])
    if request is None:
        return
    # From here on we are as a process that has just begun.
    del sys.path[0]
    os.environ.clear()
    os.environ.update(request.environment)
    os.chdir(request.folder)
    torch.default_generator.seed()
    numpy.random.seed()
    multiprocessing = torch.multiprocessing
    multiprocessing.spawn = functools.partial(multiprocessing.start_processes, start_method="fork")
    code = 0
    try:
        recording.run_script(Path(request.script), [request.arguments])
    except SystemExit as error:
        if not isinstance(error.code, int | None):
            raise
        code = error.code or 0
    end(code)


def end(code: int) -> NoReturn:
    """The end of an interpreter that does not take its modules apart, which takes half a second.

    But for the script's own, so that what it has left open is written.
    """
    threading._shutdown()  # type: ignore[attr-defined]  # ends pools, and waits for threads
    atexit._run_exitfuncs()
    vars(sys.modules["__main__"]).clear()
    for stream in (sys.stdout, sys.stderr):
        if stream is not None and not stream.closed:
            stream.flush()
    os._exit(code & 0xFF)


if __name__ == "__main__":
    main()

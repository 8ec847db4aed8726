"""Trainings whose process need not import PyTorch: it is forked by one that has.

`Server.run` is `trainings.run_training` but for that: `traindbg run` starts forked_client.py in the
place of the script, and that has a child of the server run the script, with its arguments,
environment, folder and output. It is for tests of what is found, and takes a tenth of the time.
What a training's process itself does (its start, signals, children, other threads, its end) is to
be tested with `run_training`.

As a program it is the server: `python forked.py SOCKET`. It ends when its standard input does.
"""

from __future__ import annotations

import gc
import json
import os
import select
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

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


def serve(path: str) -> Request | None:
    """Forks a child for each training that is asked for. None: nobody will ask any more.

    Returns its request in each of the children, which ends by itself.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(path)
        listener.listen()
        print("ready", flush=True)
        while True:
            ready, _, _ = select.select([listener, sys.stdin], [], [])
            if sys.stdin in ready:
                return None
            connection, _ = listener.accept()
            with connection:
                text, output, _, _ = socket.recv_fds(connection, MOST_BYTES, 3)
                if len(output) != 3:  # it has gone
                    continue
                request = Request(**json.loads(text))
                child = os.fork()
                if child == 0:
                    for number, descriptor in enumerate(output):
                        os.dup2(descriptor, number)
                        os.close(descriptor)
                    os.setpgid(0, 0)
                    return request
                for descriptor in output:
                    os.close(descriptor)
                answer = end_of(child, connection, request.seconds)
                try:
                    connection.send(json.dumps(answer).encode())
                except BrokenPipeError:
                    continue  # it has gone


def end_of(child: int, connection: socket.socket, seconds: float) -> tuple[int, str]:
    """The status of a child when it has ended, and why if we ended it.

    That is where it hangs, and where nobody waits for it any more.
    """
    descriptor = os.pidfd_open(child)
    try:
        ready, _, _ = select.select([descriptor, connection, sys.stdin], [], [], seconds)
    finally:
        os.close(descriptor)
    why = "" if ready else f"the training took longer than {seconds} s and was ended"
    for kill in (os.killpg, os.kill):  # its group, which it has made, with what it started
        try:
            kill(child, signal.SIGKILL)
        except ProcessLookupError:
            continue
    return os.waitpid(child, 0)[1], why


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
    recording.run_script(Path(request.script), [request.arguments])


if __name__ == "__main__":
    main()

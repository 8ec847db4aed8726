"""A proxy between a client and an S3 server that misbehaves on purpose.

It speaks HTTP/1.1 on loopback, one request per turn of a connection, and passes requests on to
the server unless its plan says that this one meets a fault. Faults are drawn from a seeded
generator, so that a storm can be repeated, or set for all requests with `always`.

    with FaultProxy(server_port, seed=7, share=0.3) as proxy:
        ...  # talk to proxy.url
"""

from __future__ import annotations

import asyncio
import random
import threading
from collections import Counter
from collections.abc import Callable
from email.utils import formatdate

# What may happen to a request. `lost` is the mean one: carried out, and the answer never comes.
FAULTS = ("latency", "reset", "truncate", "lost", "500", "503", "slow_down")

_ERRORS = {
    "500": (500, "InternalError"),
    "503": (503, "ServiceUnavailable"),
    "slow_down": (503, "SlowDown"),
    "403": (403, "AccessDenied"),
    "expired": (400, "ExpiredToken"),
    "skew": (403, "RequestTimeTooSkewed"),
}


class FaultProxy:
    """Runs in a thread of its own; `counts` says what it did to how many requests."""

    def __init__(
        self,
        server_port: int,
        *,
        seed: int = 0,
        share: float = 0.0,
        faults: tuple[str, ...] = FAULTS,
        always: str | None = None,
        matches: Callable[[str, str], bool] | None = None,
    ) -> None:
        self.server_port = server_port
        self.always = always
        self.share = share
        self.faults = faults
        self.matches = matches or (lambda method, path: True)
        self.counts: Counter[str] = Counter()
        self.requests: list[tuple[str, str]] = []
        self.port = 0
        self._random = random.Random(seed)
        self._ready = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> FaultProxy:
        self._thread.start()
        assert self._ready.wait(30)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(30)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)

        async def start() -> None:
            server = await asyncio.start_server(self._serve, "127.0.0.1", 0, limit=1 << 20)
            self.port = server.sockets[0].getsockname()[1]
            self._ready.set()

        self._loop.run_until_complete(start())
        self._loop.run_forever()
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self._loop.run_until_complete(asyncio.sleep(0))

    def _fault(self, method: str, path: str) -> str:
        if not self.matches(method, path):
            return ""
        if self.always:
            return self.always
        return self._random.choice(self.faults) if self._random.random() < self.share else ""

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await self._turn(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError, OSError):
            pass
        finally:
            writer.close()

    async def _turn(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = await reader.readuntil(b"\r\n\r\n")
        method, path = head.split(b" ", 2)[:2]
        body = await reader.readexactly(_length(head))
        name = method.decode()
        self.requests.append((name, path.decode()))
        fault = self._fault(name, path.decode())
        self.counts[fault or "passed"] += 1
        if fault == "reset":
            writer.transport.abort()
            return False
        if fault == "stall":
            await asyncio.sleep(3600)
        if fault in _ERRORS:
            status, code = _ERRORS[fault]
            text = f"<Error><Code>{code}</Code><Message>injected</Message></Error>".encode()
            date = formatdate(1_500_000_000 if fault == "skew" else None, usegmt=True)
            writer.write(
                f"HTTP/1.1 {status} Injected\r\nContent-Type: application/xml\r\nDate: {date}\r\n"
                f"Content-Length: {len(text)}\r\nConnection: close\r\n\r\n".encode()
            )
            writer.write(b"" if name == "HEAD" else text)
            await writer.drain()
            return False
        if fault == "latency":
            await asyncio.sleep(self._random.uniform(0.01, 0.2))
        answer_head, answer = await self._ask(head, body, name)
        if fault == "lost":
            writer.transport.abort()
            return False
        writer.write(answer_head)
        if fault == "truncate" and answer:
            writer.write(answer[: len(answer) // 2])
            await writer.drain()
            writer.transport.abort()
            return False
        writer.write(answer)
        await writer.drain()
        return True

    async def _ask(self, head: bytes, body: bytes, method: str) -> tuple[bytes, bytes]:
        """The server's answer, whole, with a Content-Length."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.server_port, limit=1 << 20)
        try:
            writer.write(head + body)
            await writer.drain()
            answer_head = await reader.readuntil(b"\r\n\r\n")
            status = int(answer_head.split(b" ", 2)[1])
            if method == "HEAD" or status in (204, 304):
                return answer_head, b""
            return answer_head, await reader.readexactly(_length(answer_head))
        finally:
            writer.close()


def _length(head: bytes) -> int:
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-length":
            return int(value)
    return 0

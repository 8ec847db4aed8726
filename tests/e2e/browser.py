"""A headless Chromium, driven through its debugging pipe: no driver, no socket, no package."""

from __future__ import annotations

import fcntl
import json
import os
import select
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

SECONDS = 60  # for one command; a browser that takes longer hangs
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--remote-debugging-pipe",
)


def find_chromium() -> str:
    """The path of an installed Chromium or Chrome; an error, not a skip, where there is none."""
    for name in ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable"):
        path = shutil.which(name)
        if path:
            return path
    raise FileNotFoundError("no chromium here: `make setup` installs it")


class Browser:
    """One browser process; use it as a context manager."""

    def __init__(self) -> None:
        program = find_chromium()
        self._profile = tempfile.mkdtemp(prefix="traindbg-chromium-")
        # The browser reads commands from descriptor 3 and writes answers to 4.
        theirs_in, self._to = os.pipe()
        self._from, theirs_out = os.pipe()
        high_in = fcntl.fcntl(theirs_in, fcntl.F_DUPFD_CLOEXEC, 20)
        high_out = fcntl.fcntl(theirs_out, fcntl.F_DUPFD_CLOEXEC, 20)
        os.close(theirs_in)
        os.close(theirs_out)
        try:
            self._pid = os.posix_spawn(
                program,
                [program, *FLAGS, f"--user-data-dir={self._profile}", "about:blank"],
                os.environ,
                file_actions=[
                    (os.POSIX_SPAWN_DUP2, high_in, 3),
                    (os.POSIX_SPAWN_DUP2, high_out, 4),
                    (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
                    (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
                ],
            )
        finally:
            os.close(high_in)
            os.close(high_out)
        self._buffer = b""
        self._last_id = 0
        self.events: list[dict[str, Any]] = []

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._to)  # the browser ends when its pipe does
        deadline = time.monotonic() + SECONDS
        while os.waitpid(self._pid, os.WNOHANG) == (0, 0):
            if time.monotonic() > deadline:
                os.kill(self._pid, 9)
                os.waitpid(self._pid, 0)
                break
            time.sleep(0.02)
        os.close(self._from)
        shutil.rmtree(self._profile, ignore_errors=True)

    def _message(self, deadline: float) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._from], [], [], max(0, deadline - time.monotonic()))
            if not ready:
                raise TimeoutError("the browser did not answer in time")
            chunk = os.read(self._from, 1 << 20)
            if not chunk:
                raise EOFError("the browser went away")
            self._buffer += chunk
        message, _, self._buffer = self._buffer.partition(b"\0")
        decoded: dict[str, Any] = json.loads(message)
        return decoded

    def call(self, method: str, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        """One command of the DevTools protocol, and its answer."""
        self._last_id += 1
        command: dict[str, Any] = {"id": self._last_id, "method": method, "params": parameters}
        if session:
            command["sessionId"] = session
        data = json.dumps(command).encode() + b"\0"
        while data:
            data = data[os.write(self._to, data) :]
        deadline = time.monotonic() + SECONDS
        while True:
            message = self._message(deadline)
            if message.get("id") == self._last_id:
                assert "error" not in message, f"{method}: {message['error']}"
                answer: dict[str, Any] = message["result"]
                return answer
            self.events.append(message)

    def wait_for(self, method: str, session: str) -> None:
        """Until the event has come for this page."""
        deadline = time.monotonic() + SECONDS
        seen = 0
        while True:
            for event in self.events[seen:]:
                if event.get("method") == method and event.get("sessionId") == session:
                    return
            seen = len(self.events)
            self.events.append(self._message(deadline))


class Page:
    """One page that was loaded from a file, and all that it did meanwhile."""

    def __init__(
        self,
        browser: Browser,
        path: Path,
        *,
        script: bool = True,
        width: int = 1200,
        dark: bool = False,
    ) -> None:
        self._browser = browser
        target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        attached = browser.call("Target.attachToTarget", targetId=target, flatten=True)
        self.session: str = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            browser.call(f"{domain}.enable", self.session)
        browser.call(
            "Emulation.setDeviceMetricsOverride",
            self.session,
            width=width,
            height=900,
            deviceScaleFactor=1,
            mobile=width < 500,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        browser.call("Emulation.setEmulatedMedia", self.session, features=[scheme])
        if not script:
            browser.call("Emulation.setScriptExecutionDisabled", self.session, value=True)
        browser.call("Page.navigate", self.session, url=path.resolve().as_uri())
        browser.wait_for("Page.loadEventFired", self.session)

    def _events(self, *methods: str) -> list[dict[str, Any]]:
        return [
            event["params"]
            for event in self._browser.events
            if event.get("sessionId") == self.session and event.get("method") in methods
        ]

    def complaints(self) -> list[dict[str, Any]]:
        """Uncaught exceptions, console output, and what the browser logged (CSP, failed loads)."""
        self.evaluate("new Promise((done) => setTimeout(done, 50))")
        return self._events("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded")

    def requests(self) -> list[str]:
        return [event["request"]["url"] for event in self._events("Network.requestWillBeSent")]

    def dialogs(self) -> list[dict[str, Any]]:
        return self._events("Page.javascriptDialogOpening")

    def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression (a promise is awaited)."""
        answer = self._browser.call(
            "Runtime.evaluate",
            self.session,
            expression=expression,
            returnByValue=True,
            awaitPromise=True,
        )
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def markup(self) -> str:
        """The document as it stands, without running anything in it."""
        root = self._browser.call("DOM.getDocument", self.session, depth=0)["root"]
        found = self._browser.call("DOM.getOuterHTML", self.session, nodeId=root["nodeId"])
        markup: str = found["outerHTML"]
        return markup

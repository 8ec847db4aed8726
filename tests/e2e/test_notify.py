"""Findings told to others: real trainings, a real HTTP server."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest
from forked import Server
from trainings import DIGITS, traindbg

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SECRET = "T0KEN-not-to-be-seen"


class Hook:
    """A webhook on loopback: refuses the first request as an overloaded server does."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, dict[str, str], dict[str, Any]]] = []
        self.requests = 0
        hook = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                hook.requests += 1
                code = 503 if hook.requests == 1 else 200
                if code == 200:
                    headers = {name.lower(): value for name, value in self.headers.items()}
                    hook.heard.append((self.path, headers, json.loads(body)))
                self.send_response(code)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/services/{SECRET}"
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


@pytest.fixture
def hook() -> Iterator[Hook]:
    made = Hook()
    yield made
    made.close()


def journal_of(run: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / "actions.jsonl").read_text().splitlines()]


def texts_below(directory: Path) -> Iterator[bytes]:
    for path in directory.rglob("*"):
        if path.is_file():
            yield path.read_bytes()


def test_each_finding_is_told_once_to_each_and_no_secret_is_kept(
    tmp_path: Path, hook: Hook, forked: Server
) -> None:
    options = ("--notify", "env:HOOK", "--notify", f"file:{tmp_path / 'findings.jsonl'}")
    outcome = forked.run(
        tmp_path / "runs", DIGITS, "--fault", "learning_rate", options=options, HOOK=hook.url
    )
    assert outcome.code == 0, outcome.stderr
    told = {f["rule"] for f in outcome.verdict["findings"] if f["severity"] != "info"}
    assert "exploding_gradient" in told
    assert {body["finding"]["rule"] for _, _, body in hook.heard} == told
    path, headers, body = hook.heard[0]
    assert path == f"/services/{SECRET}"
    assert headers["content-type"] == "application/json"
    assert headers["idempotency-key"] == body["id"]
    lines = (tmp_path / "findings.jsonl").read_text().splitlines()
    assert {json.loads(line)["id"] for line in lines} == {b["id"] for _, _, b in hook.heard}
    assert len(lines) == len({json.loads(line)["id"] for line in lines})
    journal = journal_of(outcome.run)
    assert {entry["action"] for entry in journal} == {"webhook", "file"}
    assert {entry["result"] for entry in journal} == {"done"}
    assert not any(SECRET.encode() in text for text in texts_below(outcome.runs))
    assert SECRET not in outcome.stdout + outcome.stderr


def text_of(chat: str, body: dict[str, Any]) -> str:
    """The first words of a message, where each chat has them."""
    if chat == "slack":
        return str(body["text"])
    if chat == "discord":
        return str(body["content"])
    return str(body["attachments"][0]["content"]["body"][0]["text"])


@pytest.mark.parametrize(("chat", "begin"), [("slack", "*"), ("discord", "**"), ("teams", "")])
def test_a_chat_gets_words(
    tmp_path: Path, hook: Hook, forked: Server, chat: str, begin: str
) -> None:
    options = ("--notify", f"{chat}:{hook.url}", "--act-at", "error", "--on-finding", "stop")
    outcome = forked.run(tmp_path / "runs", DIGITS, "--fault", "learning_rate", options=options)
    assert outcome.code == 90, outcome.stderr
    assert hook.heard
    words = text_of(chat, hook.heard[0][2]).replace("\\", "")
    assert words.startswith(f"{begin}error: exploding_gradient at step ")
    assert {entry["action"] for entry in journal_of(outcome.run)} == {"stop", "webhook"}


def test_what_comes_too_soon_is_told_with_the_next(tmp_path: Path, forked: Server) -> None:
    told = tmp_path / "findings.jsonl"
    options = ("--notify", f"file:{told}", "--notify-cooldown", "3600")
    outcome = forked.run(tmp_path / "runs", DIGITS, "--fault", "no_zero_grad", options=options)
    findings = [f for f in outcome.verdict["findings"] if f["severity"] != "info"]
    assert len(findings) > 2
    lines = [json.loads(line) for line in told.read_text().splitlines()]
    assert len(lines) == 2, "the first at once, the others with the last, when the training ends"
    assert (lines[0]["withheld"], lines[1]["withheld"]) == (0, len(findings) - 2)


def test_a_server_that_is_away_changes_nothing_but_is_said(tmp_path: Path, forked: Server) -> None:
    options = ("--notify", "http://127.0.0.1:9/hook", "--notify-timeout", "1")
    outcome = forked.run(tmp_path / "runs", DIGITS, "--fault", "learning_rate", options=options)
    assert outcome.code == 0, outcome.stderr
    assert "exploding_gradient was not told: post to http://127.0.0.1:9" in outcome.stderr


def test_a_dry_run_tells_nobody(tmp_path: Path, hook: Hook, forked: Server) -> None:
    options = ("--notify", hook.url, "--notify-dry-run")
    outcome = forked.run(tmp_path / "runs", DIGITS, "--fault", "learning_rate", options=options)
    assert hook.requests == 0
    assert {entry["result"] for entry in journal_of(outcome.run)} == {"dry run"}


def test_a_target_that_is_none_is_said_before_anything_starts(tmp_path: Path) -> None:
    result = traindbg("run", "--notify", "carrier-pigeon", "--", "python", "-c", "print('ran')")
    assert result.returncode == 2
    assert "carrier-pigeon" in result.stderr
    assert "slack:" in result.stderr
    assert "ran" not in result.stdout


def test_who_watches_a_run_may_tell_of_it_too(tmp_path: Path, forked: Server) -> None:
    outcome = forked.run(tmp_path / "runs", DIGITS, "--fault", "learning_rate")
    target = f"file:{tmp_path / 'findings.jsonl'}"
    result = traindbg("watch", outcome.run, "--notify", target, "--quiet")
    assert result.returncode == 0, result.stderr
    lines = (tmp_path / "findings.jsonl").read_text().splitlines()
    assert any(json.loads(line)["finding"]["rule"] == "exploding_gradient" for line in lines)


def test_who_watches_again_tells_nothing_twice_unless_asked_to(
    tmp_path: Path, forked: Server
) -> None:
    outcome = forked.run(tmp_path / "runs", DIGITS, "--fault", "learning_rate")
    told = tmp_path / "findings.jsonl"

    def watch_again(*options: str) -> tuple[int, str]:
        before = len(told.read_text().splitlines()) if told.exists() else 0
        result = traindbg("watch", outcome.run, "--notify", f"file:{told}", "--quiet", *options)
        assert result.returncode == 0, result.stderr
        return len(told.read_text().splitlines()) - before, result.stderr

    first, _ = watch_again()
    assert first > 1
    assert watch_again()[0] == 0
    assert watch_again("--notify-again")[0] == first

    # The end of the journal is cut off, as by a crash: what it said is told again, the rest is not.
    journal = outcome.run / "actions.jsonl"
    lines = journal.read_text().splitlines(keepends=True)[:first]
    journal.write_text("".join(lines)[:-10])
    again, said = watch_again()
    assert again == 1
    assert said.count("1 line cannot be read") == 1
    assert watch_again()[0] == 0

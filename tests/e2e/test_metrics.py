"""Metrics of a run, read with the parsers of Prometheus' own client library."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import urllib.error
import urllib.request
from typing import TYPE_CHECKING

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_open
from prometheus_client.parser import text_string_to_metric_families as parse_text
from trainings import DIGITS, PROGRAM, SECONDS, clean_environment, traindbg

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from forked import Server
    from prometheus_client.metrics_core import Metric

OPEN = "application/openmetrics-text"
# As Prometheus 2.50 and 3 ask.
SCRAPER = f"{OPEN};version=1.0.0;q=0.5,{OPEN};version=0.0.1;q=0.4,text/plain;version=0.0.4;q=0.3"

# Trains until its standard input ends. Its loss is NaN from step 3 on.
LOOP = """
import select
import torch

model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
step = 0
while True:
    optimizer.zero_grad()
    inputs = torch.full((8, 4), float("nan") if step >= 3 else 1.0)
    torch.nn.functional.mse_loss(model(inputs), torch.zeros(8, 1)).backward()
    optimizer.step()
    step += 1
    if step == 10:
        print("ten", flush=True)
    if step >= 10 and select.select([0], [], [], 0.01)[0]:
        break
"""


def samples(families: Iterable[Metric]) -> dict[str, list[tuple[dict[str, str], float]]]:
    """Values with their labels, by name; every family must say what it is."""
    found: dict[str, list[tuple[dict[str, str], float]]] = {}
    for family in families:
        assert family.documentation
        assert family.type != "unknown"
        for sample in family.samples:
            found.setdefault(sample.name, []).append((sample.labels, sample.value))
    return found


def get(url: str, accept: str = "", **headers: str) -> tuple[str, str]:
    """The type and text of a page."""
    asked = {**headers, **({"Accept": accept} if accept else {})}
    with urllib.request.urlopen(urllib.request.Request(url, headers=asked), timeout=30) as answer:
        return answer.headers["Content-Type"], answer.read().decode()


def test_a_running_training_is_scraped(tmp_path: Path) -> None:
    script = tmp_path / "loop.py"
    script.write_text(LOOP)
    command = [
        str(PROGRAM),
        "run",
        "--run-dir",
        str(tmp_path / 'odd "name"'),
        "--rules",
        "non_finite",
    ]
    command += ["--notify", "prometheus:0", "--notify", f"file:{tmp_path / 'told'}"]
    program = subprocess.Popen(
        [*command, "--", sys.executable, str(script)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=clean_environment(),
    )
    try:
        assert program.stdout is not None
        assert program.stderr is not None
        line = program.stderr.readline()
        url = re.fullmatch(r"traindbg: metrics at (http://127\.0\.0\.1:\d+/metrics)\n", line)
        assert url, line
        assert program.stdout.readline() == "ten\n"
        seen: dict[str, list[tuple[dict[str, str], float]]] = {}
        while not seen.get("traindbg_findings") or seen["traindbg_step"][0][1] < 9:
            kind, text = get(url[1])
            assert kind == "text/plain; version=0.0.4; charset=utf-8"
            seen = samples(parse_text(text))
        (finding,) = seen["traindbg_findings"]
        assert finding[0] | {"run": ""} == {
            "run": "",
            "rule": "non_finite",
            "severity": "error",
            "state": "firing",
        }
        assert finding[1] == 1
        assert seen["traindbg_running"] == [({"run": 'odd "name"'}, 1.0)]
        assert seen["traindbg_loss"][0][1] != seen["traindbg_loss"][0][1], "NaN"
        assert seen["traindbg_step_seconds_total"][0][1] > 0
        assert seen["traindbg_steps_dropped_total"][0][1] == 0

        kind, text = get(url[1], SCRAPER)
        assert kind == f"{OPEN}; version=1.0.0; charset=utf-8"
        opened = samples(parse_open(text))
        assert text.endswith("# EOF\n")
        assert {"traindbg_run_info", "traindbg_train_steps_total"} <= opened.keys()
        results = {
            (labels["channel"], labels["result"]): value
            for labels, value in opened["traindbg_notifications_total"]
        }
        assert results["file", "failed"] == 0

        for path, code in (("/", 404), ("/metrics/x", 404)):
            with pytest.raises(urllib.error.HTTPError) as refused:
                get(url[1].replace("/metrics", path))
            assert refused.value.code == code
        with pytest.raises(urllib.error.HTTPError) as refused:
            get(url[1], Host="evil.example")
        assert refused.value.code == 403
        # Who connects and says nothing holds nobody up for long, and no training at all.
        program.communicate("end\n", timeout=SECONDS)
        assert program.returncode == 0
    finally:
        if program.poll() is None:
            program.kill()
            program.communicate()
    with pytest.raises(OSError, match="refused"):
        get(url[1])


def test_the_file_of_a_run_says_how_it_ended(tmp_path: Path, forked: Server) -> None:
    path = tmp_path / "traindbg.prom"
    options = ("--notify", f"prometheus-file:{path}", "--notify", f"file:{tmp_path / 'told'}")
    outcome = forked.run(tmp_path / "runs", DIGITS, "--fault", "learning_rate", options=options)
    assert outcome.code == 0, outcome.stderr
    seen = samples(parse_text(path.read_text()))
    assert seen["traindbg_running"][0][1] == 0
    assert seen["traindbg_train_steps_total"][0][1] == outcome.steps()
    counted = {
        (labels["rule"], labels["severity"]): value for labels, value in seen["traindbg_findings"]
    }
    for finding in outcome.verdict["findings"]:
        assert counted[finding["rule"], finding["severity"]] >= 1
    assert sum(counted.values()) == len(outcome.verdict["findings"])
    told = len((tmp_path / "told").read_text().splitlines())
    by_result = {labels["result"]: value for labels, value in seen["traindbg_notifications_total"]}
    assert by_result == {"done": told, "failed": 0, "dry_run": 0, "withheld": 0}
    assert seen["traindbg_raw_tensors_dropped_total"][0][1] == 0
    rules = {labels["state"]: value for labels, value in seen["traindbg_rules"]}
    assert sum(rules.values()) == len(outcome.verdict["rules"])
    assert [entry.name for entry in tmp_path.glob("*.tmp")] == []
    assert path.stat().st_mode & 0o444 == 0o444, "the collector is somebody else"


def test_who_watches_a_run_may_show_its_metrics_too(tmp_path: Path, forked: Server) -> None:
    outcome = forked.run(tmp_path / "runs", DIGITS, "--fault", "learning_rate")
    path = tmp_path / "watched.prom"
    result = traindbg("watch", outcome.run, "--notify", f"prometheus-file:{path}", "--quiet")
    assert result.returncode == 0, result.stderr
    seen = samples(parse_text(path.read_text()))
    assert "exploding_gradient" in {labels["rule"] for labels, _ in seen["traindbg_findings"]}
    assert seen["traindbg_train_steps_total"][0][1] == outcome.steps()


def test_a_port_in_use_changes_nothing_but_is_said(tmp_path: Path, forked: Server) -> None:
    import socket

    script = tmp_path / "train.py"
    script.write_text("print('trained')\n")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        options = ("--notify", f"prometheus:{port}", "--json")
        outcome = forked.run(tmp_path / "runs", script, options=options)
    assert outcome.code == 0
    assert outcome.stdout.startswith("trained\n")
    assert f"prometheus:{port}" in outcome.stderr
    json.loads(outcome.stdout.splitlines()[-1])


@pytest.mark.parametrize(
    "target", ["prometheus:http", "prometheus", "prometheus:70000", "prometheus-file:"]
)
def test_a_target_that_is_none_is_said_before_anything_starts(target: str) -> None:
    result = traindbg("run", "--notify", target, "--", "python", "-c", "print('ran')")
    assert result.returncode == 2
    assert "prometheus" in result.stderr
    assert "ran" not in result.stdout

"""Rules that are spread over processes find what they find in one.

A process that is lost costs its rules only.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from trainings import DIGITS, PROGRAM, ROOT, SECONDS, clean_environment, run_training, traindbg

if TYPE_CHECKING:
    from collections.abc import Iterator

    from forked import Server
    from trainings import Outcome

FAULTS = ROOT / "examples" / "faults"
# Trainings with findings of many rules, first steps and severities.
SCRIPTS = (
    "dead_relu_bias",
    "nan_input_log_of_zero",
    "learning_rate_too_high_digits",
    "overfit_digits",
)

# A NaN at step 20; then it goes on until the file `go` is there, or for ever.
WAITS = """
import os, sys, time
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
step = 0
while not os.path.exists(sys.argv[1]):
    optimizer.zero_grad()
    inputs = torch.full((8, 4), float("nan")) if step == 20 else torch.randn(8, 4)
    nn.functional.mse_loss(model(inputs), torch.zeros(8, 1)).backward()
    optimizer.step()
    step += 1
    time.sleep(0.01)
print("went on", flush=True)
"""

# Keeps the process that has it at work long enough to be found.
SLOW = """
from traindbg.rules import Rule


class Slow(Rule):
    summary = "Takes its time."

    def needs(self):
        return ["losses"]

    def on_step(self, step, sink):
        if step.step == 3:
            import time

            time.sleep(30)
        return True
"""


@pytest.fixture(scope="module", params=SCRIPTS)
def fault(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, forked: Server
) -> Outcome:
    """A recorded training with a fault; nobody may change its files."""
    runs = tmp_path_factory.mktemp(request.param)
    outcome = forked.run(runs, FAULTS / f"{request.param}.py", options=("--quiet", "--no-report"))
    assert outcome.code == 0, outcome.stderr
    return outcome


def check(run: Path, *options: object) -> subprocess.CompletedProcess[str]:
    return traindbg("check", run, "--json", *options, TRAINDBG_PYTHON=sys.executable)


def outcomes(verdict: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {each["rule"]: each for each in verdict["rules"]}


@pytest.mark.parametrize("processes", [2, 3, 8])
def test_the_same_bytes_however_many_processes(fault: Outcome, processes: int) -> None:
    one = check(fault.run)
    assert json.loads(one.stdout)["findings"], "nothing to compare"
    many = check(fault.run, "--processes", processes)
    assert many.stdout == one.stdout
    assert many.stderr == one.stderr
    assert many.returncode == one.returncode == 1


def test_rules_of_the_user_are_spread_as_well(fault: Outcome) -> None:
    options = (
        "--rule-python", ROOT / "examples" / "plugins" / "python_rules" / "small_gradients.py",
        "--rule", "small_gradients.limit=1e3", "--rule", "VanishingGradient.threshold=1e3",
    )  # fmt: skip
    one = check(fault.run, *options)
    rules = {each["rule"] for each in json.loads(one.stdout)["findings"]}
    assert "small_gradients" in rules
    assert check(fault.run, *options, "--processes", 3).stdout == one.stdout


def test_damage_is_told_as_by_one(tmp_path: Path, forked: Server) -> None:
    outcome = forked.run(
        tmp_path / "runs", DIGITS, "--fault", "learning_rate", options=("--quiet",)
    )
    (part,) = (outcome.run / "w0000").glob("*.seg")
    data = bytearray(part.read_bytes())
    for place in range(len(data) // 4, len(data) // 2, 997):
        data[place] ^= 0x55
    part.write_bytes(data)
    one = check(outcome.run)
    assert json.loads(one.stdout)["damaged_places"] > 0
    many = check(outcome.run, "--processes", 2)
    assert many.stdout == one.stdout
    assert many.stderr == one.stderr


def test_what_cannot_be_read_is_the_same_error(tmp_path: Path) -> None:
    one = check(tmp_path)
    many = check(tmp_path, "--processes", 2)
    assert one.returncode != 0
    assert (many.returncode, many.stderr) == (one.returncode, one.stderr)


def test_wrong_numbers_are_refused() -> None:
    for number in ("0", "-1", "two"):
        done = traindbg("check", "last", "--processes", number)
        assert done.returncode == 2
        assert "--processes" in done.stderr


def children_of(pid: int) -> list[int]:
    """Of any thread of it; none where it has gone."""
    with contextlib.suppress(OSError):
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return []


def judges_of(pid: int) -> list[int]:
    """The processes that judge for it, in the order in which they were started."""
    found = []
    for child in children_of(pid):
        with contextlib.suppress(OSError):
            if b"--judge\0" in Path(f"/proc/{child}/cmdline").read_bytes():
                found.append(child)
    return sorted(found)


def text_of(path: Path) -> str:
    """Nothing while it is not there."""
    with contextlib.suppress(FileNotFoundError):
        return path.read_text()
    return ""


def wait_for(what: str, condition: Any) -> Any:
    """What `condition` gives, once it is true."""
    until = time.monotonic() + SECONDS
    while time.monotonic() < until:
        if found := condition():
            return found
        time.sleep(0.01)
    raise AssertionError(f"{what} did not come")


@contextlib.contextmanager
def started(*arguments: object, **extra: str) -> Iterator[subprocess.Popen[str]]:
    program = subprocess.Popen(
        [str(PROGRAM), *map(str, arguments)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=clean_environment(TRAINDBG_PYTHON=sys.executable, **extra),
        start_new_session=True,
    )
    try:
        yield program
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(program.pid, signal.SIGKILL)  # the training, too: it holds our pipes
        program.communicate()


def test_check_goes_on_without_a_process_that_is_killed(fault: Outcome, tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(SLOW)
    arguments = (
        "check", fault.run, "--json", "--rule-python", tmp_path / "slow.py", "--rule-timeout", 60,
        "--processes", 2,
    )  # fmt: skip
    with started(*arguments) as program:
        # The one that waits for the slow rule: it has the process of that rule as its child.
        busy = wait_for(
            "a process with the slow rule",
            lambda: [each for each in judges_of(program.pid) if children_of(each)],
        )
        os.kill(busy[0], signal.SIGKILL)
        stdout, stderr = program.communicate(timeout=SECONDS)
    lost = outcomes(json.loads(stdout))
    one = json.loads(check(fault.run).stdout)
    expected = outcomes(one)
    names = [*expected, "slow"]
    for place, name in enumerate(names):
        if place % 2 == (len(names) - 1) % 2:
            assert lost[name]["state"] == "not_checked"
            assert lost[name]["reason"] == "the process that judged it ended (signal 9)"
        else:
            assert lost[name] == expected[name]
    assert stderr.count("(signal 9)") == 1
    assert f"process {(len(names) - 1) % 2 + 1} of 2" in stderr


def test_a_live_run_stops_at_a_finding(tmp_path: Path) -> None:
    script = tmp_path / "waits.py"
    script.write_text(WAITS)
    done = run_training(
        tmp_path / "runs", script, tmp_path / "never",
        options=("--processes", "2", "--on-finding", "stop", "--act-at", "error"),
    )  # fmt: skip
    assert done.code == 90, done.stderr
    assert done.end["stopped_by_rule"] is True
    assert done.end["reason"] == "stopped by rule non_finite"
    assert "went on" not in done.stdout
    # What was found while it ran is what is found afterwards, by one and by many.
    stored = json.loads(check(done.run).stdout)
    assert done.verdict["findings"] == stored["findings"]
    assert done.verdict["rules"] == stored["rules"]
    assert done.verdict["causes"] == stored["causes"]


@pytest.mark.parametrize(("how", "why"), [
    (signal.SIGKILL, "the process that judged it ended (signal 9)"),
    (signal.SIGSTOP, "the process that judged it said nothing for 2.0 s and was ended"),
])  # fmt: skip
def test_a_live_run_goes_on_without_a_process(
    tmp_path: Path, how: signal.Signals, why: str
) -> None:
    script = tmp_path / "waits.py"
    script.write_text(WAITS)
    go = tmp_path / "go"
    run = tmp_path / "run"
    arguments = (
        "run", "--run-dir", run, "--quiet", "--no-report", "--processes", 3, "--process-timeout", 2,
        "--rules", "dead_relu,non_finite,overfit,low_capacity", "--", sys.executable, script, go,
    )  # fmt: skip
    with started(*arguments) as program:
        judges = wait_for(
            "three processes", lambda: (each := judges_of(program.pid)) and len(each) == 3 and each
        )
        os.kill(judges[0], how)  # of dead_relu and low_capacity
        wait_for("the finding", lambda: '"nan_input"' in text_of(run / "verdict.json"))
        if how == signal.SIGSTOP:
            wait_for("its end", lambda: judges[0] not in judges_of(program.pid))
        go.touch()
        stdout, stderr = program.communicate(timeout=SECONDS)
    assert program.returncode == 0, stderr
    assert stdout == "went on\n"
    assert stderr.count(why) == 1
    verdict = json.loads((run / "verdict.json").read_text())
    assert [each["rule"] for each in verdict["findings"]] == ["non_finite"]
    state = {each["rule"]: (each["state"], each.get("reason")) for each in verdict["rules"]}
    assert state["dead_relu"] == state["low_capacity"] == ("not_checked", why)
    assert state["non_finite"][0] == "fired"
    for judge in judges:
        assert not Path(f"/proc/{judge}").exists(), "a process was left"


def test_processes_end_with_their_judge(tmp_path: Path) -> None:
    script = tmp_path / "waits.py"
    script.write_text(WAITS)
    go = tmp_path / "go"
    arguments = (
        "run", "--run-dir", tmp_path / "run", "--quiet", "--processes", 2, "--", sys.executable,
        script, go,
    )  # fmt: skip
    with started(*arguments) as program:
        judges = wait_for(
            "two processes", lambda: (each := judges_of(program.pid)) and len(each) == 2 and each
        )
        program.kill()
        program.wait(timeout=SECONDS)
        wait_for("their end", lambda: not any(Path(f"/proc/{each}").exists() for each in judges))
        go.touch()  # the training has gone on meanwhile


def test_the_settings_file_may_say_it(tmp_path: Path) -> None:
    script = tmp_path / "waits.py"
    script.write_text(WAITS)
    (tmp_path / "traindbg.toml").write_text("processes = 2\nprocess-timeout = 30\n")
    go = tmp_path / "go"
    arguments = (
        "run", "--run-dir", tmp_path / "run", "--quiet", "--config", tmp_path / "traindbg.toml",
        "--", sys.executable, script, go,
    )  # fmt: skip
    with started(*arguments) as program:
        wait_for("two processes", lambda: len(judges_of(program.pid)) == 2)
        go.touch()
        _, stderr = program.communicate(timeout=SECONDS)
    assert program.returncode == 0, stderr

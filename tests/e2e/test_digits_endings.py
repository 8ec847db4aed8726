"""However a training ends, its behaviour and exit code stay its own, and the run stays readable."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pexpect
import pytest
from trainings import (
    DIGITS,
    PROGRAM,
    SECONDS,
    Outcome,
    clean_environment,
    run_plain,
    run_training,
    traindbg,
)

# The digits training with something done to its end. {after} runs once an epoch is over.
SCRIPT = """
import os
import runpy
import sys

digits = runpy.run_path({digits!r})
evaluate = digits["evaluate"]
epochs = 0


def after_an_epoch(*arguments):
    global epochs
    result = evaluate(*arguments)
    epochs += 1
    print("pid", os.getpid(), "epochs", epochs, flush=True)
{after}
    return result


digits["main"].__globals__["evaluate"] = after_an_epoch
try:
    digits["main"]()
except Exception as error:
    print("an Exception:", error, flush=True)
    raise
finally:
    print("finally ran", flush=True)
"""


def write_script(folder: Path, after: str = "    pass") -> Path:
    script = folder / "ends.py"
    script.write_text(SCRIPT.format(digits=str(DIGITS), after=after))
    return script


def assert_readable(outcome: Outcome, code: int) -> None:
    """The run has steps, says how it ended, and has its report."""
    assert outcome.end["exit_code"] == code
    assert outcome.steps() > 0
    assert "<html" in outcome.report
    check = traindbg("check", outcome.run, "--json")
    assert check.returncode in (0, 1), check.stdout + check.stderr


def without_our_lines(stderr: str) -> str:
    """What the training itself wrote to standard error."""
    start = stderr.find("Traceback")
    end = stderr.find("traindbg", start)
    return stderr[start : end if end >= 0 else None].rstrip()


def test_stop_runs_finally_and_passes_by_except_exception(tmp_path: Path) -> None:
    script = write_script(tmp_path)
    arguments = ("--fault", "dead_relu", "--epochs", "60")
    stop = ("--on-finding", "stop")
    outcome = run_training(tmp_path / "runs", script, *arguments, options=stop)
    assert outcome.code == 90, outcome.stderr
    assert "finally ran" in outcome.stdout
    assert "an Exception" not in outcome.stdout
    assert "Traceback" not in outcome.stderr
    assert_readable(outcome, 90)


def test_sys_exit_3_stays_3(tmp_path: Path) -> None:
    script = write_script(tmp_path, "    if epochs == 2: sys.exit(3)")
    outcome = run_training(tmp_path / "runs", script)
    assert outcome.code == 3
    assert "finally ran" in outcome.stdout
    assert_readable(outcome, 3)


def test_an_exception_gives_1_and_the_same_traceback(tmp_path: Path) -> None:
    script = write_script(tmp_path, '    if epochs == 2: raise RuntimeError("out of patience")')
    outcome = run_training(tmp_path / "runs", script)
    plain = run_plain(script)
    assert outcome.code == plain.returncode == 1
    assert without_our_lines(outcome.stderr) == without_our_lines(plain.stderr)
    assert "out of patience" in outcome.stderr
    assert_readable(outcome, 1)


def test_os_exit_stays_its_own(tmp_path: Path) -> None:
    script = write_script(tmp_path, "    if epochs == 2: os._exit(7)")
    outcome = run_training(tmp_path / "runs", script)
    assert outcome.code == 7
    assert_readable(outcome, 7)


@pytest.mark.parametrize(
    ("name", "code"), [("SIGKILL", 137), ("SIGTERM", 143), ("SIGSEGV", 139), ("SIGABRT", 134)]
)
def test_a_signal_to_the_training_gives_128_and_its_number(
    tmp_path: Path, name: str, code: int
) -> None:
    script = write_script(
        tmp_path, f"    import signal\n    if epochs == 2: os.kill(os.getpid(), signal.{name})"
    )
    outcome = run_training(tmp_path / "runs", script)
    assert outcome.code == code, outcome.stderr
    assert "cut off" in outcome.stderr, "the last steps may be missing, and that is said"
    assert_readable(outcome, code)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_signal_to_traindbg_reaches_the_training(
    tmp_path: Path, number: signal.Signals, code: int
) -> None:
    script = write_script(tmp_path)
    runs = tmp_path / "runs"
    with subprocess.Popen(
        [str(PROGRAM), "run", "--", sys.executable, str(script), "--epochs", "1000"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
        env=clean_environment(TRAINDBG_RUNS=str(runs)),
    ) as program:
        assert program.stdout is not None
        pid = 0
        for line in program.stdout:
            match = re.match(r"pid (\d+) epochs 2", line)
            if match:
                pid = int(match.group(1))
                program.send_signal(number)
                break
        stdout, stderr = program.communicate(timeout=SECONDS)
    assert program.returncode == code, stderr
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert_readable(Outcome(program.returncode, stdout, stderr, runs), code)


def test_ctrl_c_interrupts_the_training_as_without_traindbg(tmp_path: Path) -> None:
    script = write_script(tmp_path)
    runs = tmp_path / "runs"
    terminal = pexpect.spawn(
        str(PROGRAM),
        ["run", "--", sys.executable, str(script), "--epochs", "1000"],
        env=clean_environment(TRAINDBG_RUNS=str(runs), TERM="xterm"),
        timeout=SECONDS,
        encoding="utf-8",
        dimensions=(24, 100),
    )
    terminal.expect(r"epochs 2")
    terminal.sendintr()
    terminal.expect("finally ran")
    terminal.expect("KeyboardInterrupt")
    terminal.expect(pexpect.EOF)
    terminal.close()
    # The shell's convention for a program that ends by SIGINT: either way of saying it will do.
    code = terminal.exitstatus if terminal.exitstatus is not None else 128 + terminal.signalstatus
    assert code == 130
    assert_readable(Outcome(code, "", "", runs), 130)


def test_a_missing_script_is_one_clear_line_of_the_interpreter(tmp_path: Path) -> None:
    outcome = run_training(tmp_path / "runs", tmp_path / "gone.py")
    assert outcome.code == 2
    assert "gone.py" in outcome.stderr


def test_a_training_goes_on_when_its_supervisor_is_killed(tmp_path: Path) -> None:
    done = tmp_path / "done"
    after = f"    if epochs == 5: open({str(done)!r}, 'w').close()"
    script = write_script(tmp_path, after)
    runs = tmp_path / "runs"
    with (
        (tmp_path / "output").open("w") as output,
        subprocess.Popen(
            [str(PROGRAM), "run", "--", sys.executable, str(script), "--epochs", "6"],
            stdout=output,
            stderr=output,
            stdin=subprocess.DEVNULL,
            env=clean_environment(TRAINDBG_RUNS=str(runs)),
        ) as program,
        (tmp_path / "output").open() as reader,
    ):
        pid = wait_for_pid(reader, program)
        program.kill()
    wait_for_end(pid)
    assert done.exists()
    assert "finally ran" in (tmp_path / "output").read_text()
    run = next(runs.iterdir())
    assert traindbg("check", run, "--json").returncode in (0, 1)


def wait_for_pid(reader: object, program: subprocess.Popen[bytes]) -> int:
    """The training's process id, once it has finished an epoch."""
    text = ""
    while program.poll() is None:
        text += reader.read()  # type: ignore[attr-defined]
        match = re.search(r"pid (\d+) epochs 1\n", text)
        if match:
            return int(match.group(1))
        signal.sigtimedwait([], 0.02)
    raise AssertionError(f"traindbg ended before the first epoch:\n{text}")


def wait_for_end(pid: int) -> None:
    """Returns once the process, which is not ours, is gone."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        import select

        ready, _, _ = select.select([descriptor], [], [], SECONDS)
        assert ready, f"process {pid} did not end"
    finally:
        os.close(descriptor)

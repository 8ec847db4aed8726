"""The built executable as a supervisor of processes: codes, signals, the terminal, bad input.

No training here: what a child and its parent see must be as if traindbg were not between them.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pexpect  # type: ignore[import-untyped]
import pytest

EXE = os.environ.get("TRAINDBG_EXE") or shutil.which("traindbg")
assert EXE is not None, "no traindbg program: `make install`, or set TRAINDBG_EXE"

PATIENCE_SECONDS = 60


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """An environment whose runs lie in `tmp_path`, and whose bootstrap does nothing."""
    bootstrap = tmp_path / "bootstrap"
    bootstrap.mkdir()
    (bootstrap / "sitecustomize.py").write_text("")
    values = dict(os.environ)
    values.update(
        TRAINDBG_RUNS=str(tmp_path / "runs"),
        TRAINDBG_BOOTSTRAP=str(bootstrap),
        TERM="xterm",
        NO_COLOR="1",
    )
    values.pop("TRAINDBG_COLOR", None)
    return values


def traindbg(
    environment: dict[str, str], *arguments: str, text: str | None = None
) -> subprocess.CompletedProcess[str]:
    """Runs the executable to its end; `text` is its standard input."""
    assert EXE is not None
    return subprocess.run(
        [EXE, *arguments],
        env=environment,
        input=text,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )


def python(code: str) -> list[str]:
    """A command that runs `code`."""
    return [sys.executable, "-c", code]


def only_run(environment: dict[str, str]) -> Path:
    """The one run that there is."""
    runs = list(Path(environment["TRAINDBG_RUNS"]).iterdir())
    assert len(runs) == 1
    return runs[0]


@pytest.mark.parametrize("code", [0, 1, 3, 255])
def test_the_scripts_own_code_is_passed_through(environment: dict[str, str], code: int) -> None:
    done = traindbg(environment, "run", "--", *python(f"raise SystemExit({code})"))
    assert done.returncode == code
    end = json.loads((only_run(environment) / "END.json").read_text())
    assert end["exit_code"] == code
    assert end["stopped_by_rule"] is False


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM])
def test_death_by_a_signal_is_128_and_its_number(environment: dict[str, str], number: int) -> None:
    done = traindbg(
        environment, "run", "--", *python(f"import os; os.kill(os.getpid(), {int(number)})")
    )
    assert done.returncode == 128 + number
    assert "killed by signal" in done.stderr


def test_standard_streams_are_the_childs(environment: dict[str, str]) -> None:
    done = traindbg(
        environment,
        "run",
        "--",
        *python("import sys; print(sys.stdin.read().upper(), end='')"),
        text="abc\n",
    )
    assert done.stdout == "ABC\n"  # not one byte more
    assert "\x1b" not in done.stderr  # no status line where there is no terminal


def test_arguments_reach_the_child_as_they_are(environment: dict[str, str]) -> None:
    code = "import json, sys; print(json.dumps(sys.argv[1:]))"
    words = ["--help", "-q", "--", "", "a b", "--rules=x", "'\"$"]
    for separator in ([], ["--"]):
        done = traindbg(environment, "run", "-q", *separator, *python(code), *words)
        assert json.loads(done.stdout) == words


def test_the_child_finds_the_run_and_the_bootstrap(environment: dict[str, str]) -> None:
    environment["PYTHONPATH"] = "/somewhere"
    code = "import os; print(os.environ['TRAINDBG_RUN_DIR']); print(os.environ['PYTHONPATH'])"
    done = traindbg(environment, "run", "--name", "night", "--", *python(code))
    run, path = done.stdout.splitlines()
    assert run == environment["TRAINDBG_RUNS"] + "/night"
    assert path == environment["TRAINDBG_BOOTSTRAP"] + ":/somewhere"
    assert {"RUN.json", "plan.json", "control", "END.json"} <= {
        entry.name for entry in Path(run).iterdir()
    }


def test_a_missing_command_is_127_and_leaves_no_run(environment: dict[str, str]) -> None:
    done = traindbg(environment, "run", "--", "no-such-command-anywhere")
    assert done.returncode == 127
    assert (
        done.stderr
        == "traindbg: no-such-command-anywhere: command not found; check the spelling and PATH\n"
    )
    assert list(Path(environment["TRAINDBG_RUNS"]).iterdir()) == []


def test_a_file_that_is_not_executable_is_126(environment: dict[str, str], tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("print(1)\n")
    done = traindbg(environment, "run", "--", str(script))
    assert done.returncode == 126
    assert "chmod +x" in done.stderr


def test_a_missing_interpreter_is_told_from_a_missing_file(
    environment: dict[str, str], tmp_path: Path
) -> None:
    script = tmp_path / "train"
    script.write_text("#!/no/such/interpreter\n")
    script.chmod(stat.S_IRWXU)
    done = traindbg(environment, "run", "--", str(script))
    assert done.returncode == 127
    assert "interpreter" in done.stderr


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--rules", "vanishing_gradeint"),
        ("--no-rule", "vanishing_gradeint"),
        ("--rule", "vanishing_gradeint.x=1"),
        ("--collect", "gradient"),
        ("--fail-on", "warnign"),
        ("--on-finding", "halt"),
        ("--stop-grace", "soon"),
        ("--every", "0"),
        ("--nmae", "x"),
    ],
)
def test_what_a_user_got_wrong_is_told_and_nothing_is_started(
    environment: dict[str, str], tmp_path: Path, option: str, value: str
) -> None:
    done = traindbg(environment, "run", option, value, "--", "touch", str(tmp_path / "started"))
    assert done.returncode == 2
    assert done.stderr.startswith("traindbg: ")
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "started").exists()
    assert not Path(environment["TRAINDBG_RUNS"]).exists()


def test_an_unknown_rule_names_the_nearest(environment: dict[str, str]) -> None:
    done = traindbg(environment, "run", "--rules", "vanishing_gradeint", "true")
    assert "vanishing_gradient" in done.stderr


def test_a_run_directory_in_use_is_refused(environment: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "used").mkdir()
    (tmp_path / "used" / "RUN.json").write_text("{}")
    done = traindbg(
        environment,
        "run",
        "--run-dir",
        str(tmp_path / "used"),
        "--",
        "touch",
        str(tmp_path / "started"),
    )
    assert done.returncode == 2
    assert "in use" in done.stderr
    assert not (tmp_path / "started").exists()
    assert traindbg(environment, "run", "--name", "twice", "true").returncode == 0
    assert traindbg(environment, "run", "--name", "twice", "true").returncode == 2


def test_an_unusable_run_directory_costs_one_warning_and_not_the_training(
    environment: dict[str, str],
) -> None:
    environment["TRAINDBG_RUNS"] = "/proc/traindbg-runs"  # not even root makes a directory there
    code = "import os; print('TRAINDBG_RUN_DIR' in os.environ); raise SystemExit(7)"
    done = traindbg(environment, "run", "--", *python(code))
    assert done.returncode == 7
    assert done.stdout == "False\n"
    assert done.stderr.count("\n") == 1
    assert "the training runs without being recorded" in done.stderr


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
def test_output_that_cannot_be_written_is_an_error(environment: dict[str, str]) -> None:
    assert EXE is not None
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [EXE, "rules", "list"],
            env=environment,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 3
    assert "standard output" in done.stderr


def test_secrets_do_not_reach_the_run(environment: dict[str, str]) -> None:
    traindbg(
        environment,
        "run",
        "--",
        *python("pass"),
        "--api-key",
        "verysecret1",
        "s3://u:verysecret2@host/x",
    )
    text = (only_run(environment) / "RUN.json").read_text()
    assert "verysecret" not in text
    assert "[redacted]" in text


def test_the_summary_as_json_is_the_last_line(environment: dict[str, str]) -> None:
    done = traindbg(environment, "run", "--json", "--", *python("print('hello')"))
    lines = done.stdout.splitlines()
    assert lines[0] == "hello"
    summary = json.loads(lines[-1])
    assert summary["schema_version"] == 1
    assert summary["attached"] is False
    assert summary["exit_code"] == 0
    assert all(rule["state"] == "not_checked" for rule in summary["verdict"]["rules"])


def test_a_training_that_never_attached_is_told_why(environment: dict[str, str]) -> None:
    done = traindbg(environment, "run", "--", sys.executable, "-I", "-c", "pass")
    assert "no model was seen" in done.stderr
    assert "option -I" in done.stderr


def started(environment: dict[str, str], code: str) -> subprocess.Popen[str]:
    """A supervised child that has said `ready`."""
    assert EXE is not None
    process = subprocess.Popen(
        [EXE, "run", "--", *python(code)],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGINT"])
def test_a_signal_from_a_process_is_passed_on(environment: dict[str, str], name: str) -> None:
    process = started(
        environment,
        "import signal, sys, time\n"
        f"signal.signal(signal.{name}, lambda *_: sys.exit(42))\n"
        "print('ready', flush=True)\n"
        "time.sleep(60)\n",
    )
    process.send_signal(getattr(signal, name))
    process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == 42


def test_a_supervisor_that_is_killed_leaves_the_child_alone(
    environment: dict[str, str], tmp_path: Path
) -> None:
    done = tmp_path / "done"
    process = started(
        environment,
        "import os, time\nparent = os.getppid()\nprint('ready', flush=True)\n"
        "while os.getppid() == parent: time.sleep(0.01)\n"
        f"open({str(done)!r}, 'w').close()\n",
    )
    process.kill()
    process.wait(timeout=PATIENCE_SECONDS)
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not done.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert done.exists()


def on_terminal(environment: dict[str, str], *arguments: str) -> pexpect.spawn:
    """The executable on a terminal of its own, 24 rows of 80 columns."""
    assert EXE is not None
    return pexpect.spawn(
        EXE,
        list(arguments),
        env=environment,
        encoding="utf-8",
        timeout=PATIENCE_SECONDS,
        dimensions=(24, 80),
    )


def test_the_child_has_the_terminal(environment: dict[str, str]) -> None:
    code = (
        "import os, sys\n"
        "print('tty', [os.isatty(i) for i in range(3)], os.tcgetpgrp(0) == os.getpgrp())\n"
        "print('got', input('name? '))\n"
    )
    child = on_terminal(environment, "run", "--", *python(code))
    child.expect_exact("tty [True, True, True] True")
    child.expect_exact("name? ")
    child.sendline("Ada")
    child.expect_exact("got Ada")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0


def test_control_c_reaches_the_child_once_and_the_run_is_concluded(
    environment: dict[str, str],
) -> None:
    code = (
        "import time\n"
        "try:\n"
        "    print('ready', flush=True)\n"
        "    time.sleep(60)\n"
        "except KeyboardInterrupt:\n"
        "    time.sleep(0.5)\n"  # a second one would end this
        "    print('cleaned', flush=True)\n"
        "    raise SystemExit(5)\n"
    )
    child = on_terminal(environment, "run", "--", *python(code))
    child.expect_exact("ready")
    child.sendintr()
    child.expect_exact("cleaned")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 5
    assert json.loads((only_run(environment) / "END.json").read_text())["exit_code"] == 5


def test_control_c_that_kills_the_child_ends_us_the_same_way(environment: dict[str, str]) -> None:
    # No shell here: one that is just starting a command may swallow the signal.
    code = (
        "import signal, time\n"
        "signal.signal(signal.SIGINT, signal.SIG_DFL)\n"
        "print('ready', flush=True)\n"
        "time.sleep(60)\n"
    )
    child = on_terminal(environment, "run", "--", *python(code))
    child.expect_exact("ready")
    child.sendintr()
    child.expect(pexpect.EOF)
    child.close()
    assert child.signalstatus == signal.SIGINT  # so that a loop of the shell ends as well
    assert json.loads((only_run(environment) / "END.json").read_text())["exit_code"] == 130


def test_the_terminal_is_given_back(environment: dict[str, str]) -> None:
    child = on_terminal(environment, "run", "--", *python("print('hello')"))
    child.expect(pexpect.EOF)
    child.close()
    assert "\x1b[1;23r" in child.before  # the last of 24 rows was ours
    assert child.before.rindex("\x1b[r") > child.before.rindex("\x1b[1;23r")


def test_control_z_stops_both_and_fg_continues_both(environment: dict[str, str]) -> None:
    assert EXE is not None
    environment["PS1"] = "prompt> "
    shell = pexpect.spawn(
        "bash",
        ["--norc", "--noprofile", "-i"],
        env=environment,
        encoding="utf-8",
        timeout=PATIENCE_SECONDS,
    )
    shell.expect_exact("prompt> ")
    shell.sendline(f"{EXE} run -q -- sh -c 'echo re''ady; read line; echo got $line'")
    shell.expect_exact("ready")
    shell.sendcontrol("z")
    shell.expect_exact("Stopped")
    shell.expect_exact("prompt> ")
    shell.sendline("fg")
    shell.expect_exact("run -q")
    shell.sendline("hello")
    shell.expect_exact("got hello")
    shell.expect_exact("prompt> ")
    shell.sendline("echo code $?")
    shell.expect_exact("code 0")
    shell.sendline("exit")
    shell.expect(pexpect.EOF)
    shell.close()

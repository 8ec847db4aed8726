"""The other verbs of the built executable: help, lists, errors, completion."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

EXE = os.environ.get("TRAINDBG_EXE") or shutil.which("traindbg")
assert EXE is not None, "no traindbg program: `make install`, or set TRAINDBG_EXE"

VERBS = [
    "run",
    "watch",
    "check",
    "report",
    "ls",
    "show",
    "get",
    "export",
    "import",
    "compact",
    "gc",
    "doctor",
    "completion",
    "version",
]
RULE_VERBS = ["rules list", "rules explain"]


def traindbg(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Runs the executable to its end."""
    assert EXE is not None
    return subprocess.run(
        [EXE, *arguments],
        env={**os.environ, "NO_COLOR": "1", **variables},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize("verb", VERBS + RULE_VERBS)
def test_every_verb_explains_itself_with_examples(verb: str) -> None:
    done = traindbg(*verb.split(), "--help")
    assert done.returncode == 0
    assert done.stdout.startswith(f"usage: traindbg {verb} ")
    assert "Examples:\n  traindbg " in done.stdout or "Examples:\n  source" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 110
    assert done.stderr == ""


def test_the_program_lists_its_verbs() -> None:
    done = traindbg("--help")
    assert done.returncode == 0
    for verb in VERBS + RULE_VERBS:
        assert f"\n  {verb} " in done.stdout
    assert traindbg().returncode == 2
    assert traindbg("help", "run").stdout == traindbg("run", "--help").stdout
    assert traindbg("--version").stdout.startswith("traindbg ")


def test_an_unknown_verb_names_the_nearest() -> None:
    done = traindbg("chek")
    assert done.returncode == 2
    assert "did you mean 'check'" in done.stderr
    assert traindbg("rules", "exlpain").returncode == 2
    assert traindbg("rules").returncode == 2


@pytest.mark.parametrize("verb", ["check", "show", "report", "watch"])
def test_an_unknown_run_is_told_with_what_to_do(verb: str, tmp_path: Path) -> None:
    for run in ("last", "nothing", "./nothing"):
        done = traindbg(verb, run, TRAINDBG_RUNS=str(tmp_path))
        assert done.returncode == 2
        assert done.stderr.startswith("traindbg: " + run)
        assert "traindbg" in done.stderr.split(";", 1)[1]
        assert done.stderr.count("\n") == 1


def test_rules_are_listed_and_explained() -> None:
    rules = json.loads(traindbg("rules", "list", "--json").stdout)
    assert rules["schema_version"] == 1
    names = [rule["name"] for rule in rules["rules"]]
    order = [(not rule["on_by_default"], rule["name"]) for rule in rules["rules"]]
    assert order == sorted(order)
    assert traindbg("rules", "list", "--names").stdout.split() == names
    for name in names:
        done = traindbg("rules", "explain", name)
        assert done.returncode == 0
        assert name in done.stdout
        assert max(map(len, done.stdout.splitlines())) <= 100
        assert f"--rule {name}.hold=20" in done.stdout  # which every rule takes
        assert traindbg("rules", "explain", name, "--markdown").stdout.startswith("#")
    done = traindbg("rules", "explain", names[0][:-1] + "x")
    assert done.returncode == 2
    assert names[0] in done.stderr


def test_ls_of_nothing_says_how_to_record(tmp_path: Path) -> None:
    done = traindbg("ls", TRAINDBG_RUNS=str(tmp_path))
    assert done.returncode == 0
    assert "traindbg run -- python train.py" in done.stderr
    assert json.loads(traindbg("ls", "--json", TRAINDBG_RUNS=str(tmp_path)).stdout)["runs"] == []


def test_a_run_without_a_model_is_listed_shown_and_not_clean(tmp_path: Path) -> None:
    (tmp_path / "bootstrap").mkdir()
    (tmp_path / "bootstrap" / "sitecustomize.py").write_text("")
    variables = {
        "TRAINDBG_RUNS": str(tmp_path / "runs"),
        "TRAINDBG_BOOTSTRAP": str(tmp_path / "bootstrap"),
    }
    assert traindbg("run", "--name", "a", "sh", "-c", "exit 3", **variables).returncode == 3
    (run,) = json.loads(traindbg("ls", "--json", **variables).stdout)["runs"]
    assert (run["name"], run["state"], run["train_steps"], run["findings"]) == ("a", "failed", 0, 0)
    assert "failed" in traindbg("ls", **variables).stdout
    shown = json.loads(traindbg("show", "last", "--json", **variables).stdout)
    assert shown["end"]["exit_code"] == 3
    assert shown["meta"]["command"] == ["sh", "-c", "exit 3"]
    done = traindbg("check", "a", **variables)
    assert done.returncode == 2  # nothing could be judged: not the same as clean
    assert traindbg("get", "a", "loss", **variables).returncode == 2
    assert traindbg("watch", "a", **variables).returncode == 0  # it has ended: so does watching it


def test_a_clock_that_was_set_back_gives_no_negative_times(tmp_path: Path) -> None:
    begun = 1_700_000_000_000_000_000
    run = tmp_path / "back"
    run.mkdir()
    (run / "RUN.json").write_text(json.dumps({"run_id": "back", "started_wall_nanos": begun}))
    end = {"wall_nanos": begun - 86_400_000_000_000, "exit_code": 0}
    (run / "END.json").write_text(json.dumps(end))
    shown = traindbg("show", str(run))
    assert shown.returncode == 0, shown.stderr
    (started,) = [line for line in shown.stdout.splitlines() if line.startswith("started")]
    assert started.endswith("2023-11-14T22:13:20Z")
    listed = traindbg("ls", "--json", TRAINDBG_RUNS=str(tmp_path))
    assert json.loads(listed.stdout)["runs"][0]["duration_nanos"] is None
    page = tmp_path / "page.html"
    assert traindbg("report", str(run), "-o", str(page)).returncode == 0
    assert "Duration" not in page.read_text()
    # Begun in the future: not older than anything.
    ahead = {"run_id": "back", "started_wall_nanos": 2**62}
    (run / "RUN.json").write_text(json.dumps(ahead))
    kept = traindbg("gc", str(run), "--older-than", "1d", "--keep-last", "1", "--json")
    assert kept.returncode == 0, kept.stderr


def test_json_and_colour(tmp_path: Path) -> None:
    assert json.loads(traindbg("version", "--json").stdout)["version"]
    assert "\x1b" not in traindbg("rules", "list").stdout
    assert "\x1b" in traindbg("rules", "list", "--color", "always").stdout
    assert "\x1b" in traindbg("rules", "list", TRAINDBG_COLOR="always").stdout
    assert traindbg("rules", "list", "--color", "blue").returncode == 2


def test_doctor_names_a_remedy_for_each_fault(tmp_path: Path) -> None:
    done = traindbg("doctor", "--json", "--python", str(tmp_path / "none"), "--runs", "/proc/none")
    assert done.returncode == 1
    checks = {check["name"]: check for check in json.loads(done.stdout)["checks"]}
    assert checks["python"]["state"] == "fail"
    assert checks["runs"]["state"] == "fail"
    for check in checks.values():
        assert (check["state"] == "ok") == (check["remedy"] == "")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_parse(shell: str, tmp_path: Path) -> None:
    done = traindbg("completion", shell)
    assert done.returncode == 0
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"no {shell} here")
    script = tmp_path / "script"
    script.write_text(done.stdout)
    subprocess.run([program, "-n", str(script)], check=True, timeout=60)


def test_bash_completes_verbs_options_rules_and_runs(tmp_path: Path) -> None:
    assert EXE is not None
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "traindbg").symlink_to(EXE)
    (tmp_path / "runs" / "night").mkdir(parents=True)
    (tmp_path / "runs" / "night" / "RUN.json").write_text("{}")

    def complete(*words: str) -> list[str]:
        line = " ".join(f"'{word}'" for word in words)
        code = (
            "source <(traindbg completion bash); "
            'COMP_WORDS=(traindbg "$@"); COMP_CWORD=$#; _traindbg;'
            ' printf "%s\\n" "${COMPREPLY[@]}"'
        )
        done = subprocess.run(
            ["bash", "-c", f"set -- {line}; {code}"],
            env={
                **os.environ,
                "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}",
                "TRAINDBG_RUNS": str(tmp_path / "runs"),
            },
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        )
        return done.stdout.split()

    assert complete("che") == ["check"]
    assert complete("run", "--stop") == ["--stop-grace"]
    assert complete("run", "--on-finding", "s") == ["stop"]
    assert "vanishing_gradient" in complete("run", "--rules", "van")
    assert complete("rules", "exp") == ["explain"]
    assert "vanishing_gradient" in complete("rules", "explain", "van")
    assert complete("show", "nig") == ["night"]
    assert complete("run", "--collect", "grad") == ["gradients", "gradients_before"]

"""Runs in a bucket: uploaded while they are recorded, read while they are uploaded.

Everything here talks to a real S3 server process that checks signatures, most of it through a proxy
that drops, delays, cuts off and answers with errors.
"""

from __future__ import annotations

import ast
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fault_proxy import FaultProxy
from s3_server import BUCKET, S3Server
from trainings import DIGITS, PROGRAM, SECONDS, Outcome, clean_environment, run_training

# Settings of S3 in whoever runs the tests must not be used by them.
for _name in [name for name in os.environ if name.startswith("AWS_")]:
    del os.environ[_name]


@pytest.fixture(scope="module")
def server() -> Iterator[S3Server]:
    started = S3Server()
    yield started
    started.stop()


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of its own for each test."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


def call(*arguments: object, **extra: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(PROGRAM), *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
        stdin=subprocess.DEVNULL,
        env=clean_environment(**extra),
    )


def call_json(*arguments: object, **extra: str) -> Any:
    result = call(*arguments, "--json", **extra)
    assert result.returncode == 0, f"exit {result.returncode}\n{result.stdout}{result.stderr}"
    return json.loads(result.stdout)


def url_of(name: str) -> str:
    return f"s3://{BUCKET}/{name}"


def told_of(run: object, **extra: str) -> dict[str, Any]:
    """What the program tells of a run, without where it lies."""
    shown = call_json("show", run, **extra)
    shown.pop("path")
    return dict(shown)


def same_everywhere(run: Path, url: str, **extra: str) -> None:
    """A run here and its copy in the bucket are the same to every verb that reads."""
    assert told_of(run) == told_of(url, **extra)
    names = [t["name"] for t in call_json("show", run, "--tensors")["tensors"]]
    assert names
    for name in names[:: max(1, len(names) // 4)]:
        here = call("get", run, name, "--csv")
        there = call("get", url, name, "--csv", **extra)
        assert here.stdout == there.stdout
        assert here.stdout.count("\n") > 1
    here = call_json("check", run, "--fail-on", "never")
    there = call_json("check", url, "--fail-on", "never", **extra)
    here.pop("run")
    there.pop("run")
    assert here == there


def files_of(run: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(run)): path.read_bytes()
        for path in run.rglob("*")
        if path.is_file() and path.name not in ("control", "lock") and not path.name.startswith(".")
    }


def bucket_files(server: S3Server, prefix: str) -> dict[str, bytes]:
    """The files that the objects under a prefix stand for: pieces put together."""
    files: dict[str, bytes] = {}
    pieces: dict[str, dict[int, bytes]] = {}
    for key in server.keys(prefix + "/"):
        name = key[len(prefix) + 1 :]
        found = re.fullmatch(r"(.*\.(?:log|blob|raw))\.(\d{4,})", name)
        if found:
            pieces.setdefault(found[1], {})[int(found[2])] = server.content(key)
        else:
            files[name] = server.content(key)
    for name, numbered in pieces.items():
        assert sorted(numbered) == list(range(len(numbered))), (
            f"{name}: a gap in {sorted(numbered)}"
        )
        assert name not in files, f"{name}: whole and in pieces"
        files[name] = b"".join(numbered[index] for index in sorted(numbered))
    return files


def test_uploaded_and_read_live_through_a_storm(server: S3Server, tmp_path: Path) -> None:
    """The training ends as ever, the copy grows while it runs, and ends up the same."""
    with FaultProxy(server.port, seed=7, share=0.3) as proxy:
        process = subprocess.Popen(
            [
                str(PROGRAM),
                *("run", "--upload", url_of("storm/"), "--upload-interval", "0.2", "--name", "r"),
                *("--", sys.executable, str(DIGITS), "--epochs", "6"),
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=clean_environment(
                TRAINDBG_RUNS=str(tmp_path), **server.environment(proxy.url, AWS_REGION="us-east-1")
            ),
        )
        environment = server.environment(proxy.url)
        seen: list[int] = []
        while process.poll() is None:
            result = call("get", url_of("storm/r"), "loss/cross_entropy", "--csv", **environment)
            if result.returncode == 0:
                seen.append(result.stdout.count("\n"))
        _, stderr = process.communicate(timeout=SECONDS)
        assert process.returncode == 0, stderr
        assert "uploaded to s3://" in stderr, stderr
        assert seen == sorted(seen), "the copy never shrinks"
        assert len(set(seen)) > 1, f"it was read while it grew: {seen}"
        run = tmp_path / "r"
        same_everywhere(run, url_of("storm/r"), **environment)
        disturbed = sum(count for fault, count in proxy.counts.items() if fault != "passed")
        assert disturbed >= 10, proxy.counts
    assert bucket_files(server, "storm/r") == files_of(run)


def test_watch_follows_a_copy_to_its_end(server: S3Server, tmp_path: Path) -> None:
    environment = server.environment()
    process = subprocess.Popen(
        [
            str(PROGRAM),
            *("run", "--upload", url_of("watched/"), "--upload-interval", "0.2", "--name", "r"),
            *("--", sys.executable, str(DIGITS), "--fault", "learning_rate", "--epochs", "3"),
        ],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=clean_environment(TRAINDBG_RUNS=str(tmp_path), **environment),
    )
    while "watched/r/RUN.json" not in server.keys("watched/"):
        assert process.poll() is None
        time.sleep(0.05)
    watched = call_json("watch", url_of("watched/r"), **environment)
    process.wait(SECONDS)
    assert watched["ended"] is True
    kept = json.loads((tmp_path / "r" / "verdict.json").read_text())
    assert watched["findings"] == kept["findings"]
    assert watched["findings"]


def test_ls_last_and_report_read_a_bucket(
    server: S3Server, healthy: Outcome, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment = server.environment()
    monkeypatch.chdir(tmp_path)
    assert call("sync", healthy.run, url_of("listed/"), **environment).returncode == 0
    listed = call_json("ls", "--runs", url_of("listed/"), **environment)["runs"]
    assert [run["name"] for run in listed] == [healthy.run.name]
    assert listed[0]["trouble"] is None
    shown = call_json("show", "last", "--runs", url_of("listed"), **environment)
    assert shown["path"] == url_of(f"listed/{healthy.run.name}")
    reported = call("report", url_of(f"listed/{healthy.run.name}"), **environment)
    assert reported.returncode == 0, reported.stderr
    page = tmp_path / f"{healthy.run.name}.html"
    assert reported.stdout.strip() == str(page)
    assert "<html" in page.read_text()


READ_IN_PYTHON = """
import json, sys
import traindbg as td
from traindbg.errors import InvalidArgument
run = td.Run(sys.argv[1])
facts = {
    "name": run.name,
    "location": run.location,
    "names": sorted(run.names()),
    "loss": [run.scalars("loss/cross_entropy").steps.tolist(),
             run.scalars("loss/cross_entropy").values.tolist()],
    "findings": run.findings,
    "complete": run.is_complete,
    "steps": sum(1 for _ in run.iter_steps()),
}
if run.location.startswith("s3://"):
    try:
        run.path
    except InvalidArgument:
        facts["path"] = "refused"
print(repr(json.dumps(facts)))
"""


def run_python(script: str, *arguments: object, **extra: str) -> Any:
    """What a script prints, which is a Python value."""
    result = subprocess.run(
        [sys.executable, "-c", script, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
        stdin=subprocess.DEVNULL,
        env=clean_environment(**extra),
    )
    assert result.returncode == 0, result.stderr
    return ast.literal_eval(result.stdout)


def read_in_python(run: object, **extra: str) -> dict[str, Any]:
    return dict(json.loads(run_python(READ_IN_PYTHON, run, **extra)))


def test_python_reads_a_bucket(server: S3Server, healthy: Outcome) -> None:
    environment = server.environment()
    assert call("sync", healthy.run, url_of("python/"), **environment).returncode == 0
    here = read_in_python(healthy.run)
    with FaultProxy(server.port, seed=11, share=0.7) as proxy:
        there = read_in_python(
            url_of(f"python/{healthy.run.name}"), **server.environment(proxy.url)
        )
        assert sum(count for fault, count in proxy.counts.items() if fault != "passed") > 0
    assert there.pop("path") == "refused"
    assert there.pop("location") == url_of(f"python/{healthy.run.name}")
    here.pop("location")
    assert here["steps"] > 0
    assert here == there


def test_python_tells_what_is_wrong_with_a_bucket(server: S3Server) -> None:
    for extra, said in (
        ({"AWS_SECRET_ACCESS_KEY": "wrong"}, "PermissionDenied"),
        ({"TRAINDBG_PROGRAM": "/bin/true"}, "Unavailable"),
        ({}, "RunNotFound"),
    ):
        result = subprocess.run(
            [sys.executable, "-c", READ_IN_PYTHON, url_of("nothing-here")],
            capture_output=True,
            text=True,
            check=False,
            timeout=SECONDS,
            stdin=subprocess.DEVNULL,
            env=clean_environment(**{**server.environment(), **extra}),
        )
        assert result.returncode == 1
        assert said in result.stderr


# What the scripts below share: the process that reads from the bucket, and how it is made to stand
# still, as behind a network that does not answer.
STANDING_STILL = """
import _thread, contextlib, os, signal, subprocess, sys, threading
import traindbg as td

def reader():
    with open(f"/proc/{os.getpid()}/task/{os.getpid()}/children") as children:
        return int(children.read().split()[0])

def stop():
    os.kill(reader(), signal.SIGSTOP)

def go_on():
    with contextlib.suppress(ProcessLookupError):
        os.kill(reader(), signal.SIGCONT)
"""

INTERRUPTED_IN_PYTHON = (
    STANDING_STILL
    + """
import pyarrow as pa

def interrupt(what):
    presses = subprocess.Popen(["sh", "-c", f"sleep 0.5; kill -INT {os.getpid()}"])
    try:
        what()
    except KeyboardInterrupt:
        print("interrupted")
    presses.wait()

def read_a_table():
    try:
        stream.read_all()
    except OSError as error:  # pyarrow's, of an error in the stream
        assert "interrupted" in str(error), error

run = td.Run(sys.argv[1])
stream = pa.RecordBatchReader.from_stream(run.table("statistics"))
stop()
try:
    interrupt(run.refresh)
    interrupt(run.refresh)
    interrupt(lambda: run.table("scalars"))
    interrupt(read_a_table)
    other = threading.Thread(target=run.refresh)
    other.start()
    interrupt(run.refresh)  # waits for the other thread
finally:
    go_on()
other.join()
run.refresh()
print(len(run.steps()), "steps")
"""
)


def test_ctrl_c_ends_a_read_in_python_but_not_the_run(server: S3Server, healthy: Outcome) -> None:
    assert call("sync", healthy.run, url_of("stuck/"), **server.environment()).returncode == 0
    result = subprocess.run(
        [sys.executable, "-c", INTERRUPTED_IN_PYTHON, url_of(f"stuck/{healthy.run.name}")],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,  # half of what an answer is waited for
        stdin=subprocess.DEVNULL,
        env=clean_environment(**server.environment()),
    )
    assert result.returncode == 0, result.stderr
    *interrupted, steps = result.stdout.splitlines()
    assert interrupted == ["interrupted"] * 5
    assert int(steps.split()[0]) > 0


# The other thread can only run when the main one gives the lock of the interpreter away, and the
# main one can only go on when the other one has run.
OTHERS_GO_ON = (
    STANDING_STILL
    + """
import polars as pl
import pyarrow as pa
import traindbg.table
from traindbg import _core

sys.setswitchinterval(1000)

def while_another_counts(what, let_go_on=go_on):
    begin = _thread.allocate_lock()
    begin.acquire()
    counted = []
    def count():
        begin.acquire()
        counted.append(sum(range(100_000)))
        let_go_on()
    other = threading.Thread(target=count)
    other.start()
    begin.release()
    result = what()
    assert counted, what
    other.join()
    return result

def wait_while_another_counts(what):
    stop()
    return while_another_counts(what)

url, waits_for = sys.argv[1:]
run = while_another_counts(
    lambda: _core.RunReader(url, os.environ["TRAINDBG_PROGRAM"]),
    lambda: open(waits_for, "w").close(),
)
del run  # and its process, so that the next is the only one
run = td.Run(url)
table = wait_while_another_counts(lambda: run.table("statistics"))
follower = run.follow(timeout=60)
facts = {
    "end": wait_while_another_counts(lambda: run.end)["exit_code"],
    "verdict": len(wait_while_another_counts(lambda: run.verdict)["rules"]) > 0,
    "refresh": wait_while_another_counts(run.refresh),
    "wait": wait_while_another_counts(lambda: run.wait(0)),
    "series": len(wait_while_another_counts(lambda: run.scalars("loss/cross_entropy")).steps) > 0,
    "step": wait_while_another_counts(lambda: run.step(3)).step,
    "follow": wait_while_another_counts(lambda: next(follower)).step,
    "pyarrow": wait_while_another_counts(lambda: pa.table(table)).num_rows > 0,
    "polars": wait_while_another_counts(lambda: pl.DataFrame(table)).height > 0,
    "verify": len(wait_while_another_counts(run.verify)),
}
print(facts)
"""
)


def test_other_threads_go_on_while_one_waits_for_a_bucket(
    server: S3Server, healthy: Outcome, tmp_path: Path
) -> None:
    assert call("sync", healthy.run, url_of("waiting/"), **server.environment()).returncode == 0
    go, program = tmp_path / "go", tmp_path / "late"
    program.write_text(
        f'#!/bin/sh\nwhile [ ! -e {go} ]; do sleep 0.05; done\nexec {PROGRAM} "$@"\n'
    )
    program.chmod(0o755)
    told = run_python(
        OTHERS_GO_ON,
        url_of(f"waiting/{healthy.run.name}"),
        go,
        **server.environment(TRAINDBG_PROGRAM=str(program)),
    )
    assert told == {
        "end": 0,
        "refresh": False,
        "wait": False,
        "step": 3,
        "follow": 0,
        "verify": 0,
        **dict.fromkeys(("verdict", "series", "pyarrow", "polars"), True),
    }


FORKED_IN_PYTHON = (
    STANDING_STILL
    + """
from traindbg.errors import Unavailable

sys.setswitchinterval(1000)
run = td.Run(sys.argv[1])
stop()
other = threading.Thread(target=run.refresh)
other.start()  # comes back when the other thread waits for the bucket
child = os.fork()
if child == 0:
    try:
        run.is_complete
    except Unavailable as error:
        os._exit(10 if "forked" in str(error) else 11)
    os._exit(12)
code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
go_on()
other.join()
print({"child": code, "parent": run.is_complete})
"""
)


def test_a_fork_in_the_middle_of_a_read_is_told_in_the_child(
    server: S3Server, healthy: Outcome
) -> None:
    assert call("sync", healthy.run, url_of("forked/"), **server.environment()).returncode == 0
    told = run_python(
        FORKED_IN_PYTHON, url_of(f"forked/{healthy.run.name}"), **server.environment()
    )
    assert told == {"child": 10, "parent": True}


TWO_THREADS = """
import sys, threading
from concurrent.futures import ThreadPoolExecutor
import pyarrow as pa
import traindbg as td

here, there = td.Run(sys.argv[1]), td.Run(sys.argv[2])

def read(run):
    table = pa.table(run.table("scalars"))
    return {
        "series": {n: run[n].values().tolist() for n in run.names("^gradient|^loss")},
        "steps": [(s.step, dict(s.scalars)) for s in run.iter_steps()],
        "table": table.to_pydict(),
        "new": run.refresh(),
    }

wanted = repr(read(here))
begin = threading.Barrier(3)

def read_at_once(_):
    begin.wait()
    return repr(read(there)) == wanted

with ThreadPoolExecutor(3) as pool:
    print(list(pool.map(read_at_once, range(3))))
"""


def test_threads_read_one_run_at_once(server: S3Server, healthy: Outcome) -> None:
    assert call("sync", healthy.run, url_of("shared/"), **server.environment()).returncode == 0
    with FaultProxy(server.port, seed=2, share=0.3, faults=("latency",)) as proxy:
        told = run_python(
            TWO_THREADS,
            healthy.run,
            url_of(f"shared/{healthy.run.name}"),
            **server.environment(proxy.url),
        )
    assert told == [True, True, True]


TABLES = """
import sys
import pyarrow as pa
import traindbg as td
from traindbg import _core
runs = [td.Run(path) for path in sys.argv[1:]]
differing = []
for name in _core.table_names():
    here, there = (pa.table(run.table(name)) for run in runs)
    if here != there or here.schema != there.schema:
        differing.append(name)
chosen = [
    pa.table(
        run.table("statistics", names="weight$", collection="gradients", steps=(2, 9), mode="train")
    )
    for run in runs
]
print({"differing": differing, "chosen": chosen[0] == chosen[1] and chosen[0].num_rows > 0})
"""


def test_tables_are_those_of_the_run_here(server: S3Server, healthy: Outcome) -> None:
    assert call("sync", healthy.run, url_of("tables/"), **server.environment()).returncode == 0
    with FaultProxy(server.port, seed=13, share=0.5) as proxy:
        told = run_python(
            TABLES,
            healthy.run,
            url_of(f"tables/{healthy.run.name}"),
            **server.environment(proxy.url),
        )
        assert sum(count for fault, count in proxy.counts.items() if fault != "passed") > 0
    assert told == {"differing": [], "chosen": True}


def test_exports_are_those_of_the_run_here(
    server: S3Server, healthy: Outcome, tmp_path: Path
) -> None:
    assert call("sync", healthy.run, url_of("exports/"), **server.environment()).returncode == 0
    url = url_of(f"exports/{healthy.run.name}")
    for kind in ("csv", "jsonl", "parquet", "tensorboard", "smdebug"):
        made: list[dict[str, bytes]] = []
        for source, extra in ((healthy.run, {}), (url, server.environment())):
            target = tmp_path / kind / str(len(made))
            target.parent.mkdir(exist_ok=True)
            told = call_json(
                "export", source, "--format", kind, "--name", "loss|weight",
                "--to", target, **extra,
            )  # fmt: skip
            assert told["items"] > 0, kind
            made.append(files_of(target) if target.is_dir() else {"": target.read_bytes()})
        if kind == "tensorboard":  # its file's name has the time and the process in it
            made = [{"": b"".join(files.values())} for files in made]
        assert made[0] == made[1], kind


def test_the_doctor_looks_into_the_bucket(server: S3Server) -> None:
    good = call("doctor", "--runs", url_of("runs"), **server.environment())
    assert f"{url_of('runs')} can be read" in good.stdout
    environment = {**server.environment(), "AWS_SECRET_ACCESS_KEY": "wrong"}
    bad = call("doctor", "--runs", url_of("runs"), **environment)
    assert bad.returncode != 0
    assert "credentials" in bad.stdout


def test_a_second_sync_puts_nothing(server: S3Server, healthy: Outcome) -> None:
    environment = server.environment()
    first = call_json("sync", healthy.run, url_of("twice"), **environment)
    assert first["complete"]
    assert first["objects_put"] == len(server.keys("twice/"))
    second = call_json("sync", healthy.run, url_of("twice"), **environment)
    assert second["objects_put"] == 0
    assert second["objects_kept"] == first["objects_put"]
    assert bucket_files(server, "twice") == files_of(healthy.run)
    other = call("sync", healthy.run, url_of("twice/"), **environment)
    assert other.returncode == 0, "with a slash it goes below"


def grown_run(at: Path, parts: int) -> Path:
    """A run with large files, for uploads that take a while."""
    run = at / "large"
    (run / "w0000").mkdir(parents=True)
    (run / "RUN.json").write_text('{"schema_version": 1, "run_id": "large", "uuid": "large-1"}')
    (run / "END.json").write_text('{"schema_version": 1, "exit_code": 0}')
    for part in range(parts):
        content = bytes([part]) * (300_000 + part)
        (run / "w0000" / f"{part:06}.seg").write_bytes(content)
    (run / "w0000" / "000000.blob").write_bytes(bytes(range(256)) * 70_000)
    return run


def test_killed_and_continued(server: S3Server, tmp_path: Path) -> None:
    """An uploader that is killed at any moment is continued: nothing twice, nothing missing."""
    run = grown_run(tmp_path, parts=40)
    kills = 0
    with FaultProxy(server.port, seed=3, share=0.5, faults=("latency",)) as proxy:
        for wanted in (2, 9, 20, 30, 38, 10_000):
            process = subprocess.Popen(
                [str(PROGRAM), "sync", str(run), url_of("killed"), "-q"],
                stdin=subprocess.DEVNULL,
                env=clean_environment(**server.environment(proxy.url)),
            )
            while process.poll() is None and len(server.keys("killed/")) < wanted:
                time.sleep(0.005)
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
                kills += 1
            process.wait(SECONDS)
        assert kills >= 3
        done = call("sync", run, url_of("killed"), **server.environment(proxy.url))
        assert done.returncode == 0, done.stderr
    puts = [path for method, path in proxy.requests if method == "PUT" and "/w0000/" in path]
    whole = [path for path in puts if "uploadId" not in path]
    # One that was under way when its process was killed may be put again; no other is.
    assert len(whole) - len(set(whole)) <= kills
    assert bucket_files(server, "killed") == files_of(run)
    unfinished = server.client.list_multipart_uploads(Bucket=BUCKET).get("Uploads", [])
    assert len(unfinished) <= kills


def test_an_interrupted_upload_says_how_to_go_on(server: S3Server, tmp_path: Path) -> None:
    run = grown_run(tmp_path, parts=3)
    with FaultProxy(server.port, always="stall") as proxy:
        process = subprocess.Popen(
            [str(PROGRAM), "sync", str(run), url_of("interrupted")],
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            env=clean_environment(**server.environment(proxy.url)),
        )
        while not proxy.requests:
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=SECONDS)
    assert process.returncode != 0
    assert "goes on where it was" in stderr


def test_a_network_that_stalls_holds_nobody(server: S3Server, tmp_path: Path) -> None:
    with FaultProxy(server.port, always="stall") as proxy:
        outcome = run_training(
            tmp_path,
            DIGITS,
            "--epochs",
            "1",
            options=("--upload", url_of("stalled/"), "--upload-timeout", "1"),
            **server.environment(proxy.url),
        )
    assert outcome.code == 0, outcome.stderr
    assert "the upload is not whole" in outcome.stderr
    assert "traindbg sync" in outcome.stderr
    assert outcome.end["exit_code"] == 0
    resumed = call(
        "sync", outcome.run, url_of(f"stalled/{outcome.run.name}"), **server.environment()
    )
    assert resumed.returncode == 0, resumed.stderr
    same_everywhere(outcome.run, url_of(f"stalled/{outcome.run.name}"), **server.environment())


def test_a_wrong_secret_is_named_and_harms_nobody(
    server: S3Server, healthy: Outcome, tmp_path: Path
) -> None:
    environment = server.environment(AWS_SECRET_ACCESS_KEY="wrong")
    synced = call("sync", healthy.run, url_of("wrong"), **environment)
    assert synced.returncode == 2
    assert "the secret key is wrong" in synced.stderr
    shown = call("show", url_of("wrong"), **environment)
    assert shown.returncode == 2
    assert "the secret key is wrong" in shown.stderr
    outcome = run_training(
        tmp_path, DIGITS, "--epochs", "1", options=("--upload", url_of("wrong/")), **environment
    )
    assert outcome.code == 0
    assert "the secret key is wrong" in outcome.stderr
    assert "the upload is not whole" in outcome.stderr
    assert outcome.steps() > 0
    assert not server.keys("wrong")


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("403", "do not allow it"),
        ("expired", "have expired"),
        ("skew", "clock"),
    ],
)
def test_refusals_in_words(server: S3Server, healthy: Outcome, fault: str, said: str) -> None:
    with FaultProxy(server.port, always=fault) as proxy:
        result = call("sync", healthy.run, url_of("refused"), **server.environment(proxy.url))
    assert result.returncode == 2
    assert said in result.stderr
    assert len(proxy.requests) <= 2, "a refusal is not tried again and again"


def test_without_credentials(healthy: Outcome, server: S3Server, tmp_path: Path) -> None:
    environment = server.environment()
    del environment["AWS_SECRET_ACCESS_KEY"], environment["AWS_ACCESS_KEY_ID"]
    result = call("sync", healthy.run, url_of("none"), **environment)
    assert result.returncode == 2
    assert "there are no AWS credentials" in result.stderr
    # From a profile of the shared files it works.
    (tmp_path / "credentials").write_text(
        f"[night]\naws_access_key_id = {server.access_key}\n"
        f"aws_secret_access_key = {server.secret_key}\n"
    )
    (tmp_path / "config").write_text(
        f"[profile night]\nendpoint_url = {server.url}\nregion = us-east-1\n"
        "[profile role]\nrole_arn = arn:aws:iam::1:role/x\nsource_profile = night\n"
    )
    del environment["AWS_ENDPOINT_URL"]
    environment.update(
        AWS_SHARED_CREDENTIALS_FILE=str(tmp_path / "credentials"),
        AWS_CONFIG_FILE=str(tmp_path / "config"),
        AWS_PROFILE="night",
    )
    result = call("sync", healthy.run, url_of("profile"), **environment)
    assert result.returncode == 0, result.stderr
    environment["AWS_PROFILE"] = "role"
    result = call("sync", healthy.run, url_of("profile"), **environment)
    assert result.returncode == 2
    assert "role_arn is not supported" in result.stderr


def test_another_runs_prefix_is_refused(server: S3Server, healthy: Outcome, tmp_path: Path) -> None:
    environment = server.environment()
    assert call("sync", healthy.run, url_of("taken"), **environment).returncode == 0
    before = server.keys("taken")
    result = call("sync", grown_run(tmp_path, 1), url_of("taken"), **environment)
    assert result.returncode == 2
    assert "holds another run" in result.stderr
    assert server.keys("taken") == before


def test_no_secret_is_ever_written(server: S3Server, tmp_path: Path, cache: Path) -> None:
    """A canary in the environment is found in no output, no run, no cache and no object."""
    canary = server.secret_key
    token = "CANARYTOKEN0123456789"
    texts: list[str] = []
    with FaultProxy(server.port, seed=5, share=0.3, faults=("403", "503", "truncate")) as proxy:
        outcome = run_training(
            tmp_path / "runs",
            DIGITS,
            "--epochs",
            "1",
            options=("--upload", url_of("canary/"), "--json"),
            **server.environment(proxy.url, TRAINDBG_LOG="debug"),
        )
        texts += [outcome.stdout, outcome.stderr]
        url = url_of(f"canary/{outcome.run.name}")
        for arguments in (
            ("sync", outcome.run, url),
            ("sync", outcome.run, url, "--json", "--dry-run"),
            ("show", url),
            ("check", url),
            ("ls", "--runs", url_of("canary")),
            ("doctor",),
        ):
            for extra in ({}, {"AWS_SESSION_TOKEN": token}, {"AWS_ENDPOINT_URL": "http://[bad"}):
                environment = {**server.environment(proxy.url), **extra}
                result = call(*arguments, **environment)
                texts += [result.stdout, result.stderr]
    texts += [content.decode("latin-1") for content in files_of(outcome.run).values()]
    texts += [path.read_bytes().decode("latin-1") for path in cache.rglob("*") if path.is_file()]
    texts += [server.content(key).decode("latin-1") for key in server.keys("canary/")]
    assert len(texts) > 30
    for text in texts:
        assert canary not in text
        assert token not in text

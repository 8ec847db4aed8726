"""What importing and installing traindbg does, and the start without code."""

from __future__ import annotations

import json
import signal
from importlib import resources

import pytest

import traindbg as td


def test_import_loads_no_framework_and_not_even_numpy(python):
    done = python(
        "import sys\n"
        "before = set(sys.modules)\n"
        "import traindbg\n"
        "new = {m.split('.')[0] for m in set(sys.modules) - before}\n"
        "print(sorted(new - set(sys.stdlib_module_names)))\n"
        "traindbg.log('x', 1.0)\n"
        "print('torch' in sys.modules, 'numpy' in sys.modules)\n"
    )
    assert done.returncode == 0, done.stderr
    names, loaded = done.stdout.splitlines()
    assert names == "['traindbg']"
    assert loaded == "False False"


def test_reading_loads_no_framework(python):
    done = python(
        "import sys, traindbg\n"
        "traindbg.Run\n"
        "print([m for m in ('torch', 'tensorflow', 'jax') if m in sys.modules])\n"
    )
    assert done.stdout.strip() == "[]", done.stderr


def test_the_package_has_types_and_stubs():
    package = resources.files("traindbg")
    assert (package / "py.typed").is_file()
    stubs = (package / "_core.pyi").read_text()
    assert "class Session" in stubs
    assert "def observe_batch" in stubs


def test_version_is_that_of_the_core(python):
    assert td.__version__ == python("import traindbg; print(traindbg.__version__)").stdout.strip()
    assert set(td.__all__) <= set(dir(td))
    with pytest.raises(AttributeError, match="no_such"):
        td.no_such  # noqa: B018


TRAINING = """
import sys
import torch
from torch import nn
from torch.nn.functional import cross_entropy
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
def main():
    for step in range(5):
        optimizer.zero_grad()
        cross_entropy(model(torch.randn(6, 4)), torch.randint(0, 3, (6,))).backward()
        optimizer.step()
{end}
main()
{after}
"""


def test_zero_code_hears_functions_imported_by_name(python, run_dir):
    done = python(TRAINING.format(end="", after=""), recorded=run_dir)
    assert (done.returncode, done.stderr) == (0, "")
    run = td.Run(run_dir)
    assert run.scalars("loss/cross_entropy").steps.tolist() == [0, 1, 2, 3, 4]
    assert run.worker_meta()["optimizers"][0]["type"] == "AdamW"
    assert run.is_complete


@pytest.mark.parametrize(
    ("after", "code"), [("raise ValueError('mine')", 1), ("sys.exit(3)", 3), ("sys.exit('bye')", 1)]
)
def test_zero_code_leaves_the_exit_alone(after, code, python, run_dir):
    script = TRAINING.format(end="", after=after)
    plain = python(script)
    done = python(script, recorded=run_dir)
    assert done.returncode == plain.returncode == code
    assert done.stderr == plain.stderr
    run = td.Run(run_dir)
    assert run.is_complete
    kinds = [event["kind"] for event in run.events]
    assert ("exception" in kinds) == after.startswith("raise")


def test_zero_code_and_sigkill_leave_a_readable_run(python, run_dir):
    script = TRAINING.format(
        end="        if step == 3: import os, time; time.sleep(0.5); os.kill(os.getpid(), 9)",
        after="",
    )
    done = python(script, recorded=run_dir)
    assert done.returncode == -signal.SIGKILL
    run = td.Run(run_dir)
    assert run.steps().tolist() == [0, 1, 2, 3]
    assert not run.is_complete


def test_zero_code_without_torch_or_training_does_nothing(python, run_dir):
    done = python(
        "import sys; print('torch' in sys.modules, 'traindbg' in sys.modules)", recorded=run_dir
    )
    assert (done.stdout, done.stderr) == ("False False\n", "")
    done = python("import torch; print(torch.ones(2).sum().item())", recorded=run_dir)
    assert (done.stdout, done.stderr) == ("2.0\n", "")
    assert not run_dir.exists()


def test_zero_code_runs_the_hidden_sitecustomize(python, run_dir, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "sitecustomize.py").write_text("import sys; sys.mine = 'was run'")
    import os

    from conftest import PACKAGE

    path = os.pathsep.join(
        [str(PACKAGE / "_bootstrap"), str(tmp_path / "mine"), os.environ.get("PYTHONPATH", "")]
    )
    done = python("import sys; print(sys.mine)", PYTHONPATH=path, TRAINDBG_RUN_DIR=str(run_dir))
    assert done.stdout.strip() == "was run", done.stderr


def test_zero_code_records_into_the_plan_that_is_there(python, run_dir):
    run_dir.mkdir()
    plan = {
        "requirements": [
            {
                "collection": "weights",
                "mode": "train",
                "what": ["statistics"],
                "schedule": {"every": 2},
                "for": "user",
            }
        ]
    }
    (run_dir / "plan.json").write_text(json.dumps(plan))
    done = python(TRAINING.format(end="", after=""), recorded=run_dir, TRAINDBG_STRICT="1")
    assert done.returncode == 0, done.stderr
    run = td.Run(run_dir)
    assert run["weight/0.weight"].steps().tolist() == [0, 2, 4]
    assert set(run.step(0).tensors) == {"weight/0.weight", "weight/2.weight"}


def test_zero_code_watches_two_trainings_one_after_the_other(python, run_dir):
    source = (
        "import torch, gc\n"
        "for fold in range(2):\n"
        "    model = torch.nn.Linear(4, 1)\n"
        "    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
        "    for _ in range(3):\n"
        "        optimizer.zero_grad()\n"
        "        model(torch.ones(2, 4)).sum().backward()\n"
        "        optimizer.step()\n"
        "    del model, optimizer\n"
        "    gc.collect()\n"
    )
    done = python(source, recorded=run_dir, TRAINDBG_STRICT="1")
    assert (done.returncode, done.stderr) == (0, "")
    assert td.Run(run_dir).steps().tolist() == list(range(6))


def test_an_interpreter_without_traindbg_is_told_once(python, run_dir, tmp_path):
    from conftest import PACKAGE

    blocked = tmp_path / "script_blocked"
    blocked.mkdir()
    (blocked / "traindbg.py").write_text("raise ImportError('not here')")
    done = python(
        "import torch; print(1)",
        PYTHONPATH=f"{PACKAGE / '_bootstrap'}:{blocked}",
        TRAINDBG_RUN_DIR=str(run_dir),
    )
    assert done.returncode == 0
    assert done.stdout == "1\n"
    assert done.stderr.count("traindbg: cannot record") == 1
    assert "cannot import traindbg (not here)" in done.stderr

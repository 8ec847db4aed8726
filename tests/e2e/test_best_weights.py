"""Weights that are kept by `state_dict()` alone are the model's own; copies of them are not."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from forked import Server

    Verdict = Callable[..., dict[str, Any]]  # of pieces of the script

# Evaluated each ten steps, and past its best after a hundred: `KEEP` stands where the training is
# at its best, `END` after its loop.
SCRIPT = """
import copy
import os

import torch
from sklearn.datasets import load_diabetes
from torch import nn
from torch.nn import functional as F

os.chdir(os.path.dirname(__file__))
torch.manual_seed(0)
bunch = load_diabetes()
x = torch.tensor((bunch.data - bunch.data.mean(0)) / bunch.data.std(0)).float()
y = torch.tensor((bunch.target - bunch.target.mean()) / bunch.target.std()).float()[:, None]
x, y, x_val, y_val = x[:120], y[:120], x[120:], y[120:]


def make():
    return nn.Sequential(
        nn.Linear(10, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(),
        nn.Linear(64, 1),
    )


model, other = make(), make()
LARGE
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)


def steps(count):
    model.train()
    for _ in range(count):
        rows = torch.randint(0, 120, (32,))
        optimizer.zero_grad()
        loss = F.mse_loss(model(x[rows]), y[rows])
        loss.backward()
        optimizer.step()


def evaluate():
    model.eval()
    with torch.no_grad():
        return F.mse_loss(model(x_val), y_val).item()


first = model.state_dict()
best, kept = float("inf"), None
for epoch in range(20):
    steps(10)
    loss = evaluate()
    if loss < best:
        best = loss
        KEEP
END
"""


@pytest.fixture
def verdict(tmp_path: Path, forked: Server) -> Verdict:
    def verdict(keep: str, end: str, model: str = "") -> dict[str, Any]:
        path = tmp_path / "train.py"
        script = SCRIPT.replace("KEEP", keep or "pass").replace("END", end)
        path.write_text(script.replace("LARGE", model))
        runs = Path(tempfile.mkdtemp(dir=tmp_path))
        outcome = forked.run(runs, path, options=("--no-report",), TRAINDBG_STRICT="1")
        assert outcome.code == 0, outcome.stderr
        return outcome.verdict

    return verdict


def found(verdict: dict[str, Any], rule: str) -> list[dict[str, Any]]:
    return [finding for finding in verdict["findings"] if finding["rule"] == rule]


def line_of(text: str) -> int:
    """Of a piece in the script."""
    return SCRIPT[: SCRIPT.index(text)].count("\n") + 1


@pytest.mark.parametrize(
    "keep",
    [
        "kept = model.state_dict()",
        "kept = dict(model.state_dict())",
        "kept = copy.copy(model.state_dict())",
        "kept = {k: v for k, v in model.state_dict().items()}",
        "kept = {k: v.cpu() for k, v in model.state_dict().items()}",
        "kept = {k: v.detach().cpu() for k, v in model.state_dict().items()}",
        "kept = {k: v.data for k, v in model.state_dict().items() if 'weight' in k or 'bias' in k}",
    ],
)
def test_weights_that_are_not_copied_are_not_kept(verdict: Verdict, keep: str) -> None:
    strict = "strict=False" if "if" in keep else "strict=True"
    told = verdict(keep, f"model.load_state_dict(kept, {strict})")
    (finding,) = found(told, "best_weights_not_kept")
    assert finding["severity"] == "warning"
    assert finding["key"] == "loaded"
    assert f"(train.py:{line_of('KEEP')})" in finding["message"]
    assert "after step 200 was given" in finding["message"]
    (source,) = finding["sources"]
    assert (source["what"], source["line"]) == ("weights_taken", line_of("KEEP"))
    assert told["causes"][0]["name"] == "best_weights_not_kept"
    ((overfit),) = found(told, "overfit")
    assert overfit["severity"] == "warning"


@pytest.mark.parametrize(
    ("keep", "end"),
    [
        ("kept = copy.deepcopy(model.state_dict())", "model.load_state_dict(kept)"),
        (
            "kept = {k: v.clone() for k, v in model.state_dict().items()}",
            "model.load_state_dict(kept)",
        ),
        ("torch.save(model.state_dict(), 'b.pt')", "model.load_state_dict(torch.load('b.pt'))"),
    ],
)
@pytest.mark.parametrize("again", ["", "; evaluate()"])
def test_overfitting_is_a_note_where_the_best_weights_are_put_back(
    verdict: Verdict, keep: str, end: str, again: str
) -> None:
    told = verdict(keep, end + again)
    assert found(told, "best_weights_not_kept") == []
    (overfit,) = found(told, "overfit")
    assert (overfit["severity"], overfit["state"]) == ("info", "resolved")
    assert "other weights were loaded" in overfit["message"]


@pytest.mark.parametrize(
    ("watch", "again"),
    [
        ("", ""),
        ("", "; evaluate()"),
        ("import traindbg; watcher = traindbg.watch(model)", "; watcher.detach()"),
    ],
)
def test_overfitting_is_a_note_where_a_copy_of_the_best_model_is_evaluated(
    verdict: Verdict, watch: str, again: str
) -> None:
    end = f"last, model = model, kept; evaluate(){again}"
    told = verdict("kept = copy.deepcopy(model)", end, watch)
    (overfit,) = found(told, "overfit")
    assert (overfit["severity"], overfit["state"]) == ("info", "resolved")
    assert "another model was evaluated" in overfit["message"]


@pytest.mark.parametrize(
    ("keep", "end"),
    [
        ("kept = model", "last, model = model, kept; evaluate()"),
        ("kept = copy.deepcopy(model)", "evaluate(); evaluate()"),
        (
            "kept = copy.deepcopy(model)",
            "last, model = model, kept; evaluate(); model = last; steps(1)",
        ),
        # As averages are, which are evaluated all along.
        (
            "kept = copy.deepcopy(model).requires_grad_(False)",
            "last, model = model, kept; evaluate()",
        ),
    ],
    ids=["no copy", "not evaluated", "trained on", "frozen"],
)
def test_overfitting_is_told_where_no_copy_is_what_is_evaluated_in_the_end(
    verdict: Verdict, keep: str, end: str
) -> None:
    (overfit,) = found(verdict(keep, end), "overfit")
    assert overfit["severity"] == "warning"


@pytest.mark.parametrize("copied", ["copy.deepcopy(model.state_dict())", "saved()"])
def test_weights_of_long_after_the_best_that_are_put_back_do_not_help(
    verdict: Verdict, copied: str
) -> None:
    saved = "def saved(): torch.save(model.state_dict(), 'c.pt'); return torch.load('c.pt')"
    end = f"{saved}\nkept = {copied}\nsteps(5)\nmodel.load_state_dict(kept)"
    told = verdict("", end)
    (overfit,) = found(told, "overfit")
    assert (overfit["severity"], overfit["state"]) == ("warning", "firing")
    assert "the weights of about step 200 were loaded" in overfit["message"]


@pytest.mark.parametrize(
    "end",
    [
        "model.load_state_dict(model.state_dict())",
        "last = model.state_dict(); evaluate(); model.load_state_dict(last)",
        "other.load_state_dict(first)",
        "other.load_state_dict(model.state_dict()); other.load_state_dict(other.state_dict())",
        "torch.save(model.state_dict(), 'last.pt'); model.load_state_dict(torch.load('last.pt'))",
        "model.load_state_dict(copy.deepcopy(kept)); mine = model.state_dict(); evaluate(); "
        "model.load_state_dict(mine)",
        "torch.save({'model': model.state_dict(), 'epoch': 20}, 'last.pt')",
        "torch.save(first, 'live.pt')",
        "torch.save(kept, 'best.pt')",
    ],
)
def test_what_is_loaded_or_saved_at_once_or_of_another_model_is_left_alone(
    verdict: Verdict, end: str
) -> None:
    told = verdict("kept = copy.deepcopy(model.state_dict())", end)
    assert found(told, "best_weights_not_kept") == []
    if "kept)" not in end:  # the model is left with the weights of the last step
        (overfit,) = found(told, "overfit")
        assert overfit["severity"] == "warning"


def test_swapped_weights_are_those_of_the_last_step_in_the_end(verdict: Verdict) -> None:
    end = (
        "mine = copy.deepcopy(model.state_dict()); model.load_state_dict(kept); evaluate(); "
        "model.load_state_dict(mine)"
    )
    told = verdict("kept = copy.deepcopy(model.state_dict())", end)
    (overfit,) = found(told, "overfit")
    assert overfit["severity"] == "warning"


@pytest.mark.parametrize("save", ["torch.save(kept, 'b.pt')", "torch.save({'m': kept}, 'b.pt')"])
def test_a_file_of_weights_that_were_not_copied_is_told_of(verdict: Verdict, save: str) -> None:
    (finding,) = found(verdict("kept = model.state_dict()", save), "best_weights_not_kept")
    assert (finding["severity"], finding["key"]) == ("warning", "saved")
    assert f"(train.py:{line_of('KEEP')})" in finding["message"]


def test_weights_that_are_taken_anew_for_each_file_are_left_alone(verdict: Verdict) -> None:
    keep = "kept = model.state_dict(); torch.save(kept, 'best.pt')"
    assert found(verdict(keep, ""), "best_weights_not_kept") == []


def test_a_state_that_is_saved_after_each_epoch_shows_what_there_is(verdict: Verdict) -> None:
    keep = "kept = kept or {'model': model.state_dict()}"
    end = "for epoch in range(3):\n    steps(10)\n    torch.save(kept, f'{epoch}.pt')"
    assert found(verdict(keep, end), "best_weights_not_kept") == []


def test_a_range_test_does_not_go_back(verdict: Verdict) -> None:
    told = verdict("", "model.load_state_dict(first); steps(20)")
    (finding,) = found(told, "best_weights_not_kept")
    assert finding["step"] == 200
    assert "200 steps earlier, before the first step" in finding["message"]
    assert f"(train.py:{line_of('first = ')})" in finding["message"]


def test_weights_that_nothing_has_changed_are_no_matter(verdict: Verdict) -> None:
    told = verdict("", "kept = other.state_dict(); steps(5); other.load_state_dict(kept)")
    assert found(told, "best_weights_not_kept") == []


def test_a_fused_optimizer_leaves_no_version_and_is_heard_all_the_same(verdict: Verdict) -> None:
    end = "model.load_state_dict(kept)"
    for steps in (5, 0):
        anew = f"steps({steps}); kept = model.state_dict(); steps({steps})"
        fused = "optimizer = torch.optim.Adam(model.parameters(), lr=5e-3, fused=True)"
        told = verdict("", f"{fused}; steps(20); {anew}; {end}")
        assert len(found(told, "best_weights_not_kept")) == (steps > 0)


@pytest.mark.parametrize(
    ("keep", "end"),
    [
        # Made with the first file, or after a first step, or for each epoch before its steps.
        (
            "kept = kept or {'model': model.state_dict()}",
            "torch.save(kept, '0.pt'); steps(10); torch.save(kept, '1.pt')",
        ),
        ("kept = kept or model.state_dict()", "torch.save(kept, 'exit.pt')"),
        (
            "",
            "for epoch in range(3):\n    kept = {'model': model.state_dict()}; steps(10)\n"
            "    kept['loss'] = evaluate(); torch.save(kept, 'last.pt')",
        ),
        (
            "",
            "for epoch in range(4):\n    kept = {'model': model.state_dict()}; steps(10)\n"
            "torch.save(kept, 'last.pt')",
        ),
        (
            "kept = model.state_dict(keep_vars=True)",
            "torch.save(dict(model.named_parameters()), 'last.pt')",
        ),
        # A network that is given the weights of the day.
        (
            "kept = model.state_dict()",
            "for epoch in range(3):\n    steps(10)\n    other.load_state_dict(kept)",
        ),
    ],
)
def test_a_state_that_shows_what_there_is_may_be_saved_later(
    verdict: Verdict, keep: str, end: str
) -> None:
    assert found(verdict(keep, end), "best_weights_not_kept") == []


@pytest.mark.parametrize(
    "end",
    [
        "[v.clamp_(-1, 1) for k, v in kept.items() if 'weight' in k]",
        "kept['5.bias'].copy_(slow['5.bias'])",
        "kept = dict(model.named_parameters()); kept['5.bias'].data.clamp_(-1, 1)",
    ],
)
def test_a_live_state_may_be_written_to_and_loaded(verdict: Verdict, end: str) -> None:
    begin = "slow = copy.deepcopy(first); kept = model.state_dict()"
    load = "model.load_state_dict(kept, strict=False)"
    told = verdict("", f"{begin}\nfor epoch in range(3):\n    steps(10); {end}; {load}")
    assert found(told, "best_weights_not_kept") == []


@pytest.mark.parametrize("made", ["AdamW", "NAdam", "SGD"])
def test_a_live_state_that_is_loaded_again_and_again_is_told_of_each_time(
    verdict: Verdict, made: str
) -> None:
    begin = (
        f"optimizer = torch.optim.{made}(model.parameters(), lr=1e-3); kept = model.state_dict()"
    )
    end = f"{begin}\nfor _ in range(3):\n    steps(3); model.load_state_dict(kept)"
    (finding,) = found(verdict("", end), "best_weights_not_kept")
    assert "returned 9 steps earlier, after step 200" in finding["message"]
    assert "That was so 3 times." in finding["message"]


def test_another_model_is_given_weights_that_were_not_copied(verdict: Verdict) -> None:
    told = verdict("kept = model.state_dict()", "other.load_state_dict(kept)")
    (finding,) = found(told, "best_weights_not_kept")
    assert (finding["severity"], finding["key"]) == ("warning", "given")
    assert "of another model was given" in finding["message"]
    assert f"(train.py:{line_of('KEEP')})" in finding["message"]


@pytest.mark.parametrize("steps", [0, 5])
def test_weights_that_others_were_loaded_over_do_not_come_back(
    verdict: Verdict, steps: int
) -> None:
    end = (
        f"mine = model.state_dict(); steps({steps}); model.load_state_dict(kept); evaluate(); "
        "model.load_state_dict(mine)"
    )
    told = verdict("kept = copy.deepcopy(model.state_dict())", end)
    (finding,) = found(told, "best_weights_not_kept")
    assert (finding["severity"], finding["key"]) == ("warning", "swapped")
    assert ("5 steps earlier" in finding["message"]) == (steps > 0)
    assert "0 steps" not in finding["message"]
    assert f"(train.py:{line_of('END')})" in finding["message"]
    (overfit,) = found(told, "overfit")  # which is not what it is left with
    assert overfit["state"] == "resolved"


@pytest.mark.parametrize(
    "end",
    [
        # The same weights, or they have come back already.
        "mine = model.state_dict(); model.load_state_dict(copy.deepcopy(mine)); "
        "model.load_state_dict(mine)",
        "mine = model.state_dict(); last = copy.deepcopy(mine); model.load_state_dict(kept); "
        "model.load_state_dict(last); model.load_state_dict(mine)",
        "mine = model.state_dict(); last = copy.deepcopy(mine); model.load_state_dict(kept); "
        "[v.copy_(last[k]) for k, v in mine.items()]; model.load_state_dict(mine)",
    ],
)
def test_weights_that_came_back_before_are_there(verdict: Verdict, end: str) -> None:
    told = verdict("kept = copy.deepcopy(model.state_dict())", end)
    assert found(told, "best_weights_not_kept") == []
    (overfit,) = found(told, "overfit")
    assert overfit["severity"] == "warning"


def test_an_optimizer_that_writes_to_data_is_heard_all_the_same(verdict: Verdict) -> None:
    begin = """
class Plain(torch.optim.Optimizer):
    def __init__(self, parameters):
        super().__init__(parameters, {})

    def step(self, closure=None):
        for p in self.param_groups[0]["params"]:
            p.data.add_(p.grad, alpha=-1e-3)


optimizer = Plain(model.parameters())
"""
    end = "steps(20); kept = model.state_dict(); steps(5); model.load_state_dict(kept)"
    (finding,) = found(verdict("", begin + end), "best_weights_not_kept")
    assert finding["key"] == "loaded"


@pytest.mark.parametrize("saved", ["(kept, 20)", "{'run': {'nets': [kept]}}"])
def test_states_are_found_in_what_is_saved(verdict: Verdict, saved: str) -> None:
    told = verdict("kept = nn.Module.state_dict(model, None, '')", f"torch.save({saved}, 'b.pt')")
    (finding,) = found(told, "best_weights_not_kept")
    assert finding["key"] == "saved"


def test_of_many_states_the_last_ones_are_known(verdict: Verdict) -> None:
    end = (
        "many = [model.state_dict() for _ in range(100)]; kept = model.state_dict(); steps(2); "
        "model.state_dict(); steps(3); model.load_state_dict(kept)"
    )
    (finding,) = found(verdict("", end), "best_weights_not_kept")
    assert "5 steps earlier" in finding["message"]


def test_models_of_other_kinds_are_loaded(verdict: Verdict) -> None:
    end = """
class Older(nn.Linear):
    def named_parameters(self, prefix="", recurse=True):
        return super().named_parameters(prefix=prefix, recurse=recurse)


class Equal(nn.Linear):
    def __eq__(self, other):
        return isinstance(other, Equal)


class Holder(nn.Module):
    def __init__(self):
        super().__init__()
        self.held = nn.ModuleList([Equal(2, 2), Older(2, 2)])


for kind in (lambda: Older(2, 2), lambda: Equal(2, 2), Holder):
    one = kind()
    one.load_state_dict(kind().state_dict())
    one.load_state_dict(one.state_dict())
with torch.inference_mode():
    frozen = make()
    frozen.load_state_dict(first)
    frozen.load_state_dict(frozen.state_dict())
steps(5)
"""
    assert found(verdict("", end), "best_weights_not_kept") == []


# No parameter is small but two that nothing uses.
LARGE = """
class Large(nn.Module):
    def __init__(self):
        super().__init__()
        self.unused = nn.ParameterList([nn.Parameter(torch.zeros(())) for _ in range(2)])
        self.first = nn.Linear(10, 8192, bias=False)
        self.last = nn.Linear(8192, 16, bias=False)

    def forward(self, x):
        return self.last(F.relu(self.first(x)))[:, :1] / 16


model = Large()
"""


@pytest.mark.parametrize("end", ["kept", "copy.deepcopy(model.state_dict())"])
def test_large_parameters_tell_whether_other_weights_are_put_back(
    verdict: Verdict, end: str
) -> None:
    keep = "kept = copy.deepcopy(model.state_dict())"
    told = verdict(keep, f"model.load_state_dict({end})", LARGE)
    (overfit,) = found(told, "overfit")
    assert overfit["severity"] == ("info" if end == "kept" else "warning")


def test_weights_may_be_taken_and_loaded_before_there_is_an_optimizer(verdict: Verdict) -> None:
    begin = (
        "start = model.state_dict(); model.load_state_dict(start)\n"
        "model.load_state_dict(copy.deepcopy(start)); torch.save(start, 'start.pt')"
    )
    (finding,) = found(verdict("", "model.load_state_dict(start)", begin), "best_weights_not_kept")
    assert "200 steps earlier, before the first step" in finding["message"]

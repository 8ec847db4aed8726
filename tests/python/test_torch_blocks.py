"""What modules with others inside return: blocks and the model itself, where they are asked for."""

from __future__ import annotations

import json

import pytest
import torch
import trainings
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

import traindbg as td
from traindbg import _core
from traindbg.hooks.torch.recording import recording as recordings
from traindbg.hooks.torch.recording.forward_sink import ForwardSink


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(8, 8)

    def forward(self, x):
        return x + torch.relu(self.fc(x))


class Net(nn.Module):
    def __init__(self, use_reentrant: bool | None = None) -> None:
        super().__init__()
        self.block1, self.block2 = Block(), nn.Sequential(Block(), nn.Tanh())
        self.head = nn.Linear(8, 3)
        self.use_reentrant = use_reentrant

    def forward(self, x):
        if self.use_reentrant is None:
            x = self.block1(x)
        else:
            x = checkpoint(self.block1, x, use_reentrant=self.use_reentrant)
        return F.normalize(self.head(self.block2(x)), dim=-1)


def train(model, run_dir, steps=3, x=None, loss_of=None, before=None, **wishes):
    """Trains and returns the run, and what the model returned at each step."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    returned = []
    wishes = {"rules": [], "supervise": False} | wishes
    with td.watch(model, run_dir=run_dir, **wishes):
        for step in range(steps):
            if before is not None:
                before(step)
            optimizer.zero_grad()
            given = torch.randn(4, 8) if x is None else x
            out = model(given)
            returned.append(out)
            (out.square().mean() if loss_of is None else loss_of(out)).backward()
            optimizer.step()
    return td.Run(run_dir), returned


def values(run, name):
    return {int(step): run.step(int(step)).tensors[name].statistics for step in run[name].steps()}


def blocks(run):
    return {name for name in run.names("^output") if run[name].info["role"] == "block_output"}


def said(run):
    return [event for event in run.events if event["kind"] == "not_captured"]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        (r"^output/block1$", {"output/block1"}),
        (r"output/block[12]$", {"output/block1", "output/block2"}),
        (r"^output/block2(\.0)?$", {"output/block2", "output/block2.0"}),
        (r"^output/model$", {"output/model"}),
        (r"output/.*", set()),
        (r"output/block1", set()),
        (r"^(weight|output)", set()),
    ],
)
def test_a_pattern_that_names_a_block_takes_its_output(pattern, expected, run_dir):
    run, _ = train(Net(), run_dir, collections={"mine": pattern})
    assert blocks(run) == expected
    for name in expected:
        assert run[name].steps().tolist() == [0, 1, 2], name
        assert "mine" in run[name].info["collections"]


def test_the_values_are_those_that_the_module_returned(run_dir):
    run, returned = train(Net(), run_dir, collections={"mine": r"^output/model$"}, every=2)
    found = values(run, "output/model")
    assert sorted(found) == [0, 2]
    for step, statistics in found.items():
        assert statistics.max == returned[step].max().item()
        assert statistics.count == returned[step].numel()


def test_who_asks_for_outputs_has_those_of_modules_with_none_inside(run_dir):
    run, _ = train(Net(), run_dir, collect=["outputs", "activations"])
    assert not blocks(run)
    assert {"output/head", "output/block1.fc"} <= set(run.names("^output"))


def test_all_blocks_are_a_collection(run_dir):
    run, _ = train(Net(), run_dir, collect=["block_outputs"])
    every = {"output/block1", "output/block2", "output/block2.0", "output/model"}
    assert blocks(run) == every
    assert not run["output/block1"].info["collections"]
    for name in run.names(r"^(output|activation)/"):
        assert len(run[name].steps()) == (3 if name in every else 0), name


def test_a_module_given_as_an_object_is_its_own_output_too(run_dir):
    model = Net()
    mine = {"one": model.block2, "whole": model}
    run, _ = train(model, run_dir, collections=mine)
    members = {
        collection: {name for name in run.names() if collection in run[name].info["collections"]}
        for collection in mine
    }
    outputs = {name for name in members["one"] if name.startswith(("output/", "activation/"))}
    assert outputs == {
        *("output/block2", "output/block2.0.fc", "activation/block2.0.relu"),
        "activation/block2.1",
    }, "a block inside is not asked for"
    assert {"output/model", "output/head", "input/0", "output/block1.fc"} <= members["whole"]
    assert "output/block1" not in run.names()
    for name in ("output/block2", "output/model", "input/0"):
        assert run[name].steps().tolist() == [0, 1, 2], name


def test_parts_of_what_a_block_returns_are_no_modules_inside(run_dir):
    class Pair(nn.Sequential):
        def forward(self, x):
            return self[0](x), {"sum": self[1](x) + 100, "none": None}

    class Outer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.pair = Pair(nn.Linear(8, 8), nn.Linear(8, 8))

        def forward(self, x):
            a, b = self.pair(x)
            return {"logits": a + b["sum"], "hidden": [a]}

    collections = {"mine": [r"^output/pair$", r"^output/model:logits$"]}
    model = Outer()
    run, _ = train(
        model, run_dir, loss_of=lambda out: out["logits"].mean(), collections=collections
    )
    assert blocks(run) >= {"output/pair:0", "output/pair:1.sum", "output/model:logits"}
    assert values(run, "output/pair:1.sum")[0].mean > 50
    assert len(run["output/model:hidden.0"].steps()) == 0


def test_a_model_with_a_part_called_model_is_told_from_it(run_dir):
    class Wrapper(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = Block()

        def forward(self, x):
            return self.model(x) + 100

    model = Wrapper()
    run, _ = train(model, run_dir, collections={"whole": model, "part": model.model})
    assert values(run, "output/Wrapper")[0].mean > 50
    assert values(run, "output/model")[0].mean < 50
    assert "part" not in run["output/Wrapper"].info["collections"]


@pytest.mark.parametrize("use_reentrant", [False, True])
def test_a_block_that_is_computed_again_is_looked_at_once(use_reentrant, run_dir):
    model, plain = Net(use_reentrant), Net()
    plain.load_state_dict(model.state_dict())
    x = torch.randn(4, 8, requires_grad=True)
    wish = {"collections": {"mine": r"^output/block1$"}, "x": x}
    run, _ = train(model, run_dir / "again", **wish)
    once, _ = train(plain, run_dir / "once", **wish)
    assert run["output/block1"].steps().tolist() == [0, 1, 2]
    for step, statistics in values(run, "output/block1").items():
        assert statistics.mean == values(once, "output/block1")[step].mean


def test_blocks_are_captured_in_evaluations_and_of_wrapped_models(run_dir):
    model = nn.DataParallel(Net()) if torch.cuda.device_count() < 2 else Net()
    with td.watch(
        model,
        run_dir=run_dir,
        rules=[],
        supervise=False,
        collections={"mine": r"^output/block1$"},
        capture=[{"collection": "mine", "mode": "eval"}],
    ):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(2):
            model.train()
            optimizer.zero_grad()
            F.cross_entropy(model(torch.randn(4, 8)), torch.tensor([0, 1, 2, 0])).backward()
            optimizer.step()
            model.eval()
            with torch.no_grad():
                F.cross_entropy(model(torch.randn(4, 8)), torch.tensor([0, 1, 2, 0]))
    run = td.Run(run_dir)
    assert run["output/block1"].steps("train").tolist() == [0, 1]
    assert len(run["output/block1"].steps("eval")) == 2


def test_a_plan_that_comes_later_takes_blocks_from_its_first_step_on(run_dir):
    model = Net()

    def ask(step):
        if step == 2:
            td.watch(model, collections={"mine": r"^output/block1$"}, every=1)

    run, _ = train(model, run_dir, steps=5, before=ask, collect=["losses"])
    assert run["output/block1"].steps().tolist() == [2, 3, 4]


def test_blocks_are_not_looked_at_where_nobody_asks(run_dir, monkeypatch):
    seen = []
    slow = ForwardSink.module_output
    monkeypatch.setattr(
        ForwardSink, "module_output", lambda *a: (seen.append(a[1].is_leaf), slow(*a))[1]
    )
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with td.watch(
        model,
        run_dir=run_dir,
        supervise=False,
        collections={"mine": r"^output/block1$"},
        every=5,
        rules=[],
    ):
        for step in range(8):
            recording = recordings.current
            is_due = bool(recording.hot.due & _core.ROLE_BITS["block_output"])
            assert is_due == (step % 5 == 0)
            optimizer.zero_grad()
            model(torch.randn(4, 8)).sum().backward()
            optimizer.step()
    assert seen.count(False) == 1, "later ones go to the session directly"


def test_the_training_stays_the_same(run_dir):
    def train_one(watch):
        torch.manual_seed(3)
        model = Net()
        losses = []
        optimizer = torch.optim.Adam(model.parameters())
        if watch:
            td.watch(model, run_dir=run_dir, supervise=False, every=1, collections={"whole": model})
        for step in range(6):
            optimizer.zero_grad()
            loss = model(torch.randn(4, 8, generator=torch.Generator().manual_seed(step))).mean()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return trainings.fingerprint(model, losses)

    plain = train_one(watch=False)
    assert train_one(watch=True) == plain
    recordings.current.close()


def test_compiled_models_run_uncompiled_where_a_block_is_due(run_dir):
    model = Net()
    compiled = torch.compile(model, backend="eager")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with td.watch(
        compiled, run_dir=run_dir, rules=[], supervise=False, collections={"mine": model.block1}
    ):
        for _ in range(3):
            optimizer.zero_grad()
            compiled(torch.randn(4, 8)).sum().backward()
            optimizer.step()
    assert td.Run(run_dir)["output/block1"].steps().tolist() == [0, 1, 2]


# Collections that match nothing.


def test_a_pattern_that_matches_nothing_is_said_once_with_what_is_near(run_dir, capfd):
    run, _ = train(Net(), run_dir, steps=6, collections={"mine": r"^output/blokc1$"})
    (event,) = said(run)
    assert "'mine' (^output/blokc1$)" in event["data"]["what"]
    assert "output/block1" in event["data"]["reason"]
    err = capfd.readouterr().err
    assert err.count("blokc1") == 1, err
    assert "matches none of the" in err


def test_it_is_said_at_the_end_of_a_training_of_few_steps(run_dir, capfd):
    run, _ = train(Net(), run_dir, steps=2, collections={"mine": r"^gradient/no_such_thing"})
    assert len(said(run)) == 1
    assert "in this training" in capfd.readouterr().err


def test_nothing_is_said_of_what_matches_or_comes_late(run_dir, capfd):
    model = Net()

    def log(step):
        if step == 5:
            td.log("accuracy", 0.5)

    run, _ = train(
        model,
        run_dir,
        steps=7,
        before=log,
        collections={"mine": r"^weight/head", "late": "^metric/accuracy", "obj": model.block1},
        rules=None,
    )
    assert not said(run)
    assert "matches none" not in capfd.readouterr().err


def test_needs_of_rules_are_not_said(run_dir, capfd):
    plan = {
        "requirements": [
            {"collection": "of_rules", "mode": "train", "what": ["statistics"], "for": "a_rule"}
        ],
        "collections": [{"name": "of_rules", "include": ["^output/none"], "exclude": []}],
    }
    session = _core.Session(str(run_dir), json.dumps(plan), 0)
    for _ in range(5):
        session.end_step()
    session.close(1.0)
    assert "matches none" not in capfd.readouterr().err

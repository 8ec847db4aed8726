"""`td.log`: numbers of the user's own, and what is none."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pytest
import torch
from torch import nn

import traindbg as td
from traindbg.hooks.torch.base.guard import failures


class Unwilling:
    def __float__(self) -> float:
        raise LookupError("no")


def train(run_dir, log, steps=5):
    model = nn.Linear(4, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with td.watch(model, optimizer, run_dir=run_dir, rules=[], supervise=False) as watcher:
        for step in range(steps):
            model(torch.ones(2, 4)).square().mean().backward()
            log(step)
            optimizer.step()
        skipped = watcher._recording.session.counts()["tensors_skipped"]
    return td.Run(run_dir), skipped


def refused(run):
    told = (event["data"] for event in run.events if event["kind"] == "not_captured")
    return {entry["what"]: entry["reason"] for entry in told}


NUMBERS = {
    "float": 2.5,
    "int": 3,
    "bool": True,
    "nan": float("nan"),
    "numpy": np.float32(1.5),
    "array": np.ones((1, 1)),
    "tensor": torch.tensor(2.0, requires_grad=True),
    "one element": torch.ones(1, 1),
    "decimal": Decimal("0.25"),
}


@pytest.mark.filterwarnings("error")
def test_numbers_of_any_kind_are_recorded(run_dir):
    def log(step):
        for name, value in NUMBERS.items():
            td.log(name, value)

    run, skipped = train(run_dir, log, steps=1)
    assert skipped == 0
    assert not refused(run)
    for name, value in NUMBERS.items():
        found = run.scalars(f"metric/{name}").values.tolist()
        np.testing.assert_equal(found, [value.item() if hasattr(value, "item") else float(value)])


BAD = {
    "several": (torch.ones(4), "a tensor of shape [4] (float32)"),
    "array": (np.ones((2, 3)), "an array of shape [2, 3] (float64)"),
    "text": ("3.5", "a value of type str"),
    "none": (None, "None"),
    "list": ([1.0], "a value of type list"),
    "complex": (1 + 2j, "a value of type complex"),
    "complex tensor": (torch.tensor(1 + 2j), "a tensor of shape [] (complex64)"),
    "complex array": (np.complex64(1), "a value of type complex64"),
    "nested": (torch.nested.nested_tensor([torch.ones(1), torch.ones(2)]), "a tensor"),
    "meta": (torch.ones(1, device="meta"), "a tensor of shape [1] (float32)"),
    "too large": (10**400, "a value of type int"),
    "unwilling": (Unwilling(), "a value of type Unwilling"),
}


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_what_is_no_number_is_said_once_for_each_name_and_stops_nothing(run_dir, capfd):
    def log(step):
        for name, (value, _) in BAD.items():
            td.log(name, value)
        td.log("good", step)
        td.log("several", torch.ones(4))

    run, skipped = train(run_dir, log)
    assert run.scalars("metric/good").values.tolist() == [0, 1, 2, 3, 4]
    assert run.names(role="metric") == ["metric/good"]
    assert skipped == 5 * (len(BAD) + 1)
    told = refused(run)
    assert told.keys() == {f"metric/{name}" for name in BAD}
    said = capfd.readouterr().err
    for name, (_, given) in BAD.items():
        assert told[f"metric/{name}"].startswith(
            f"traindbg.log was given {given}; it takes a number"
        )
        assert said.count(f"metric/{name}: not captured") == 1
    assert not failures
    assert "hook_error" not in {event["kind"] for event in run.events}


def test_a_name_that_got_a_bad_value_once_keeps_its_good_ones(run_dir):
    run, _ = train(run_dir, lambda step: td.log("loss", None if step == 2 else step))
    assert run.scalars("metric/loss").values.tolist() == [0, 1, 3, 4]


def test_of_very_many_names_some_are_said(run_dir, capfd):
    run, skipped = train(run_dir, lambda step: [td.log(f"{step}/{i}", "x") for i in range(10)])
    assert skipped == 50
    told = refused(run)
    assert len(told) == 21
    assert "what else" in list(told)[-1]
    assert capfd.readouterr().err.count("not captured") == 21

"""What is told of models of transformers, which are given all by name and compute their losses."""

from __future__ import annotations

import gc
import weakref

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from transformers import BertConfig, BertLMHeadModel, ViTConfig, ViTForImageClassification

import traindbg as td

SMALL = {
    "vocab_size": 20,
    "hidden_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 16,
    "max_position_embeddings": 24,
}
STEPS = 30


def train(run_dir, model, batch_of, wanted=("future_leak", "label_noise", "target_leak")):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    with td.watch(model, optimizer, run_dir=run_dir, supervise=False, rules=list(wanted)):
        for step in range(STEPS):
            optimizer.zero_grad()
            model(**batch_of(step)).loss.backward()
            optimizer.step()
    return td.Run(run_dir)


@pytest.mark.parametrize("is_decoder", [False, True])
def test_whether_a_language_model_sees_what_follows(is_decoder, run_dir):
    def batch_of(step):
        ids = torch.randint(0, 20, (8, 24))
        return {"input_ids": ids, "labels": ids}

    run = train(run_dir, BertLMHeadModel(BertConfig(**SMALL, is_decoder=is_decoder)), batch_of)
    (name,) = (n for n in run.names() if n.startswith("loop/later_seen"))
    assert set(run.scalars(name).values.tolist()) == {0.0 if is_decoder else 1.0}


@pytest.mark.parametrize("first", ["pixel_values", "labels"])
def test_labels_are_no_input(first, run_dir):
    """Of one input and its labels it is told whether rows near each other have other labels."""
    vision = {key: SMALL[key] for key in ("hidden_size", "num_hidden_layers", "intermediate_size")}
    config = ViTConfig(**vision, num_attention_heads=2, image_size=8, patch_size=4, num_channels=1)

    def batch_of(step):
        given = {"pixel_values": torch.randn(16, 1, 8, 8), "labels": torch.arange(16) % 2}
        return dict(sorted(given.items(), key=lambda each: each[0] != first))

    run = train(run_dir, ViTForImageClassification(config), batch_of, ["loss_not_decreasing"])
    assert run.scalars("loop/neighbours_rows").values[-1] > 0


class Tasks(nn.Module):
    """Several numbers are told of a picture, and each has its loss."""

    def __init__(self):
        super().__init__()
        self.head = nn.Linear(16, 3)

    def forward(self, picture, labels):
        found = self.head(picture.flatten(1))
        return {"loss": sum(F.mse_loss(found[:, i], labels[:, i]) for i in range(3))}


@pytest.mark.parametrize("way", ["by name", "labels first", "by place"])
def test_labels_are_not_compared_with_themselves(way, run_dir):
    model = Tasks()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with td.watch(model, optimizer, run_dir=run_dir, supervise=False, rules=["target_leak"]):
        for _ in range(STEPS):
            x, y = torch.randn(32, 1, 4, 4), torch.randn(32, 3)
            optimizer.zero_grad()
            if way == "by place":
                loss = model(x, y)["loss"]
            elif way == "by name":
                loss = model(picture=x, labels=y)["loss"]
            else:
                loss = model(labels=y, picture=x)["loss"]
            loss.backward()
            optimizer.step()
    assert not [name for name in td.Run(run_dir).names() if "label_in_input" in name]


def test_what_is_given_by_name_is_let_go(run_dir):
    kept = []

    def batch_of(step):
        assert not [ref for ref in kept if ref() is not None]
        ids = torch.randint(0, 20, (8, 24))
        kept.append(weakref.ref(ids))
        return {"input_ids": ids, "labels": ids}

    gc.disable()
    try:
        train(run_dir, BertLMHeadModel(BertConfig(**SMALL, is_decoder=True)), batch_of)
    finally:
        gc.enable()
    assert len(kept) == STEPS

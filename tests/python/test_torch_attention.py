"""Attention maps, compared with softmax(q kᵀ · scale + mask) written out."""

from __future__ import annotations

import collections
import functools
import math

import pytest
import torch
import trainings
from test_torch_values import check
from torch import nn
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint, create_selective_checkpoint_contexts
from torch.utils.flop_counter import FlopCounterMode

import traindbg as td
from traindbg.hooks.torch.recording import attention as attentions


@pytest.fixture(params=["cpu path", "device path"], autouse=True)
def path(request, monkeypatch):
    if request.param == "device path":
        monkeypatch.setenv("TRAINDBG_DEVICE_PATH", "1")
    return request.param


def written_out(q, k, mask=None, scale=None):
    scores = q.double() @ k.double().transpose(-2, -1)
    scores = scores * (1 / math.sqrt(q.size(-1)) if scale is None else scale)
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf) if mask.dtype == torch.bool else scores + mask
    return scores.softmax(-1).nan_to_num(0.0)


class Attending(nn.Module):
    """One head block whose call of the function is given by the test."""

    def __init__(self, call) -> None:
        super().__init__()
        self.block = nn.Module()
        self.block.project = nn.Linear(8, 24)
        self.block.forward = self.attend
        self.call = call

    def attend(self, x):
        batch, length, _ = x.shape
        parts = self.block.project(x).view(batch, length, 3, 2, 4).permute(2, 0, 3, 1, 4)
        self.query, self.key = parts[0].detach(), parts[1].detach()
        return self.call(*parts)

    def forward(self, x):
        return self.block(x)


def one_step(model, run_dir, x=None, **wishes) -> td.Run:
    torch.manual_seed(4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    wishes = {"collect": "attention_maps"} | wishes
    with td.watch(model, optimizer, run_dir=run_dir, supervise=False, **wishes):
        out = model(torch.randn(3, 5, 8) if x is None else x)
        out = out[0] if isinstance(out, tuple) else out
        out.square().mean().backward()
        optimizer.step()
    return td.Run(run_dir)


BOOLEAN = torch.rand(5, 5, generator=torch.Generator().manual_seed(0)) > 0.4
NOWHERE = BOOLEAN & (torch.arange(5)[:, None] != 2)
PER_HEAD = torch.randn(3, 2, 5, 5, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize(
    ("arguments", "mask", "scale"),
    [
        ({}, None, None),
        ({"dropout_p": 0.5}, None, None),
        ({"scale": 0.3}, None, 0.3),
        ({"is_causal": True}, torch.ones(5, 5, dtype=torch.bool).tril(), None),
        ({"attn_mask": BOOLEAN}, BOOLEAN, None),
        ({"attn_mask": NOWHERE}, NOWHERE, None),
        ({"attn_mask": PER_HEAD}, PER_HEAD, None),
        ({"attn_mask": PER_HEAD[:, :1]}, PER_HEAD[:, :1], None),
    ],
)
def test_the_fused_function(run_dir, arguments, mask, scale, path):
    model = Attending(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, **arguments))
    run = one_step(model, run_dir, raw="attention_maps")
    expected = written_out(model.query, model.key, mask, scale).mean(1)
    check(run.step(0).tensors["attention/block"].statistics, expected.float())
    info = run["attention/block"].info
    assert (info["role"], info["collection"]) == ("attention", "attention_maps")
    assert info["shape"] == (3, 5, 5)
    if path == "cpu path":
        torch.testing.assert_close(
            torch.tensor(run["attention/block"].value(0)), expected.float(), rtol=1e-5, atol=1e-6
        )


def test_grouped_queries(run_dir):
    def call(q, k, v):
        many = q.repeat_interleave(2, 1)
        return F.scaled_dot_product_attention(many, k, v, enable_gqa=True)

    model = Attending(call)
    run = one_step(model, run_dir)
    many = model.query.repeat_interleave(2, 1)
    expected = written_out(many, model.key.repeat_interleave(2, 1)).mean(1)
    check(run.step(0).tensors["attention/block"].statistics, expected.float())


def test_a_second_call_in_one_module(run_dir):
    def call(q, k, v):
        return F.scaled_dot_product_attention(q, k, F.scaled_dot_product_attention(q, q, v))

    model = Attending(call)
    tensors = one_step(model, run_dir).step(0).tensors
    first = written_out(model.query, model.query).mean(1).float()
    second = written_out(model.query, model.key).mean(1).float()
    check(tensors["attention/block"].statistics, first)
    check(tensors["attention/block#2"].statistics, second)


class Encoder(nn.Module):
    def __init__(self, *, dropout=0.0, **arguments) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2, dropout=dropout, batch_first=True)
        self.arguments = arguments

    def forward(self, x):
        return self.attention(x, x, x, **self.arguments)[0]


@pytest.mark.parametrize("dropout", [0.0, 0.5])
@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"need_weights": False},
        {"average_attn_weights": False},
        {"attn_mask": ~torch.ones(5, 5, dtype=torch.bool).tril(), "is_causal": True},
        {"key_padding_mask": torch.tensor([[False] * 3 + [True] * 2] * 3)},
    ],
)
def test_the_module(run_dir, arguments, dropout):
    torch.manual_seed(1)
    model = Encoder(dropout=dropout, **arguments)
    torch.manual_seed(9)
    x = torch.randn(3, 5, 8)
    weights = dict(model.state_dict())
    run = one_step(model, run_dir, x)
    plain = nn.MultiheadAttention(8, 2, batch_first=True)
    plain.load_state_dict({name.removeprefix("attention."): w for name, w in weights.items()})
    masks = {k: v for k, v in arguments.items() if "mask" in k}
    projected = F.linear(x, plain.in_proj_weight, plain.in_proj_bias)
    q, k, _ = projected.view(3, 5, 3, 2, 4).permute(2, 0, 3, 1, 4)
    mask = None
    if "attn_mask" in masks:
        mask = ~masks["attn_mask"]
    if "key_padding_mask" in masks:
        mask = ~masks["key_padding_mask"][:, None, None, :]
    expected = written_out(q.detach(), k.detach(), mask).mean(1)
    assert run["attention/attention"].info["shape"] == (3, 5, 5)
    # The weights are those of after the step; nearly the same.
    statistics = run.step(0).tensors["attention/attention"].statistics
    assert statistics.mean == pytest.approx(expected.mean().item(), rel=1e-5)
    assert statistics.l2 == pytest.approx(expected.norm().item(), rel=0.05)
    assert statistics.max == pytest.approx(expected.max().item(), rel=0.1)


def test_a_transformer_of_pytorchs_own(run_dir):
    torch.manual_seed(1)
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.1, batch_first=True)
    run = one_step(nn.TransformerEncoder(layer, 2), run_dir)
    names = run.names(collection="attention_maps")
    assert names == ["attention/layers.0.self_attn", "attention/layers.1.self_attn"]
    for name in names:
        assert run.step(0).tensors[name].statistics.mean == pytest.approx(1 / 5, rel=1e-5)


def test_narrow_types_and_autocast(run_dir):
    model = Attending(F.scaled_dot_product_attention)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with td.watch(model, optimizer, run_dir=run_dir, collect="attention_maps", supervise=False):
        with torch.autocast("cpu", torch.bfloat16):
            out = model(torch.randn(3, 5, 8))
        out.float().square().mean().backward()
        optimizer.step()
    assert model.query.dtype == torch.bfloat16
    expected = written_out(model.query, model.key).mean(1).float()
    check(td.Run(run_dir).step(0).tensors["attention/block"].statistics, expected)


def test_a_map_that_is_too_large_is_left_out_and_said(run_dir, monkeypatch):
    monkeypatch.setattr(attentions, "MOST_BYTES", 100)
    run = one_step(Attending(F.scaled_dot_product_attention), run_dir)
    assert not run.names("^attention/")
    assert "MiB" in str([event for event in run.events if event["kind"] == "not_captured"])


def test_attention_that_is_written_out_is_said_to_be_missing(run_dir):
    model = Attending(lambda q, k, v: (q @ k.transpose(-2, -1)).softmax(-1) @ v)
    run = one_step(model, run_dir)
    assert not run.names("^attention/")
    assert "attention" in str([event for event in run.events if event["kind"] == "not_captured"])


class Ordered(nn.Module):
    """Matrix products before and after the attention, as a selective checkpoint numbers them."""

    def __init__(self) -> None:
        super().__init__()
        self.project = nn.Linear(8, 24)
        self.inner = Encoder()

    def forward(self, x):
        q, k, v = self.project(x).chunk(3, -1)
        heads = [part.unflatten(-1, (2, 4)).transpose(1, 2) for part in (q, k, v)]
        attended = F.scaled_dot_product_attention(*heads).transpose(1, 2).flatten(-2)
        mixed = torch.bmm(attended, attended.transpose(1, 2).tanh())
        return torch.bmm(mixed, self.inner(attended))


class Checkpointed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.block = Ordered()
        self.last = nn.Linear(8, 3)

    def forward(self, x):
        kept = [torch.ops.aten.bmm.default, torch.ops.aten.mm.default, torch.ops.aten.addmm.default]
        context = functools.partial(create_selective_checkpoint_contexts, kept)
        x = checkpoint(self.block, x, use_reentrant=False, context_fn=context)
        return self.last(x)


def test_selective_checkpoints_compute_the_same(run_dir):
    def train(watched: bool) -> str:
        torch.manual_seed(6)
        model = Checkpointed()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
        wishes = {"collect": ("attention_maps", "outputs", "losses", "predictions")}
        watcher = td.watch(model, run_dir=run_dir, supervise=False, **wishes) if watched else None
        losses = []
        for _ in range(3):
            out = model(torch.randn(3, 5, 8)).flatten(0, 1)
            loss = F.cross_entropy(out, torch.arange(15) % 3, reduction="sum")
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            losses.append(loss.item())
        if watcher:
            watcher.detach()
        return trainings.fingerprint(model, losses)

    assert train(True) == train(False)
    assert len(td.Run(run_dir).names("^attention/")) == 2


class Counted(TorchDispatchMode):
    """Counts what is computed; the session's own look at tensors in host memory is none of it."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = collections.Counter()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.calls[func.name()] += 1
        return func(*args, **(kwargs or {}))


def test_modes_that_count_hear_nothing_of_us(run_dir):
    def count(watched: bool):
        torch.manual_seed(6)
        model = nn.Sequential(Ordered(), nn.Linear(8, 3))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)
        wishes = {
            "collect": (
                *("attention_maps", "outputs", "losses", "gradients", "gradients_before"),
                *("weights", "weight_updates", "optimizer_state"),
            )
        }
        watcher = td.watch(model, run_dir=run_dir, supervise=False, **wishes) if watched else None
        with FlopCounterMode(display=False) as flops, Counted() as mode:
            for _ in range(2):
                out = model(torch.randn(3, 5, 8)).flatten(0, 1)
                F.cross_entropy(out, torch.arange(15) % 3, reduction="sum").backward()
                nn.utils.clip_grad_norm_(model.parameters(), 0.1)
                optimizer.step()
                optimizer.zero_grad()
        if watcher:
            watcher.detach()
        mode.calls.pop("aten::detach", None)  # another name for a tensor computes nothing
        return flops.get_total_flops(), mode.calls

    watched, plain = count(True), count(False)
    assert watched == plain
    assert len(td.Run(run_dir).names("^attention/")) == 2


def test_grouped_queries_without_a_batch(run_dir):
    def call(q, k, v):
        q, k, v = q[0].repeat_interleave(2, 0), k[0], v[0]
        return F.scaled_dot_product_attention(q, k, v, enable_gqa=True)

    model = Attending(call)
    run = one_step(model, run_dir)
    heads = written_out(
        model.query[0].repeat_interleave(2, 0), model.key[0].repeat_interleave(2, 0)
    )
    check(run.step(0).tensors["attention/block"].statistics, heads.float())


def test_a_call_whose_map_fails_is_one_call(run_dir, monkeypatch):
    whole = attentions._scaled_dot_product

    def failing(query, *args, **kwargs):
        if query.size(-2) == 2:
            raise RuntimeError("unusual")
        return whole(query, *args, **kwargs)

    monkeypatch.setattr(attentions, "_scaled_dot_product", failing)

    def call(q, k, v):
        for _ in range(4):
            F.scaled_dot_product_attention(q[..., :2, :], k, v)
        return F.scaled_dot_product_attention(q, k, v)

    run = one_step(Attending(call), run_dir)
    assert run.names("^attention/") == ["attention/block#5"]
    said = str([event for event in run.events if event["kind"] == "not_captured"])
    assert "RuntimeError: unusual" in said
    assert "no call of" not in said


def test_where_only_parts_of_a_model_are_called_the_reason_is_that(run_dir):
    model = Encoder()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with td.watch(
        model, optimizer, run_dir=run_dir, collect=("attention_maps", "outputs"), supervise=False
    ):
        for _ in range(3):
            x = torch.randn(3, 5, 8)
            model.attention(x, x, x)[0].square().mean().backward()
            optimizer.step()
    run = td.Run(run_dir)
    said = str([event for event in run.events if event["kind"] == "not_captured"])
    assert "the model itself is not called in training" in said
    assert "no call of" not in said


def test_only_at_due_steps_and_nothing_is_patched(run_dir, monkeypatch):
    made = []
    whole = attentions._scaled_dot_product
    monkeypatch.setattr(
        attentions, "_scaled_dot_product", lambda *a, **k: made.append(1) or whole(*a, **k)
    )
    original = F.scaled_dot_product_attention
    model = Attending(F.scaled_dot_product_attention)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with td.watch(
        model, optimizer, run_dir=run_dir, collect="attention_maps", every=3, supervise=False
    ):
        for _ in range(6):
            assert F.scaled_dot_product_attention is original
            model(torch.randn(3, 5, 8)).square().mean().backward()
            optimizer.step()
            optimizer.zero_grad()
    assert len(made) == 2
    assert td.Run(run_dir)["attention/block"].steps().tolist() == [0, 3]


@pytest.mark.parametrize("dropout", [0.0, 0.3])
@pytest.mark.parametrize("autocast", [False, True])
def test_no_bit_changes(run_dir, dropout, autocast):
    def train(watched: bool) -> str:
        torch.manual_seed(6)
        layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=dropout, batch_first=True)
        model = nn.Sequential(nn.TransformerEncoder(layer, 2), Encoder(dropout=dropout))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        watcher = None
        if watched:
            watcher = td.watch(
                model, optimizer, run_dir=run_dir, collect="attention_maps", supervise=False
            )
        losses = []
        for _ in range(4):
            optimizer.zero_grad()
            with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
                loss = model(torch.randn(3, 5, 8)).float().square().mean()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        if watcher:
            watcher.detach()
        return trainings.fingerprint(model, losses)

    assert train(True) == train(False)
    assert len(td.Run(run_dir).names("^attention/")) == 3


def test_compiled_code_runs_uncompiled_at_steps_that_ask(run_dir):
    model = Encoder()
    compiled = torch.compile(model, backend="eager")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with td.watch(
        compiled, optimizer, run_dir=run_dir, collect="attention_maps", every=2, supervise=False
    ):
        for _ in range(4):
            compiled(torch.randn(3, 5, 8)).square().mean().backward()
            optimizer.step()
    assert td.Run(run_dir)["attention/attention"].steps().tolist() == [0, 2]


def test_evaluations(run_dir):
    model = Encoder()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    capture = [{"collection": "attention_maps", "mode": "eval"}]
    with td.watch(model, optimizer, run_dir=run_dir, capture=capture, supervise=False):
        model(torch.randn(3, 5, 8)).square().mean().backward()
        optimizer.step()
        model.eval()
        with torch.no_grad():
            for _ in range(2):
                F.mse_loss(model(torch.randn(3, 5, 8)), torch.zeros(3, 5, 8))
    maps = td.Run(run_dir)["attention/attention"]
    assert maps.steps("eval").tolist() == [0, 1]
    assert maps.steps().tolist() == []

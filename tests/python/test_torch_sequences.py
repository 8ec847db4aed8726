"""What positions of sequences see, and that looking at it changes nothing."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Shard, distribute_tensor
from torch.nn import functional as F
from torch.testing._internal.distributed.fake_pg import FakeStore

import traindbg as td
from traindbg.hooks.torch.base.guard import failures
from traindbg.hooks.torch.data.next_values import Given, next_values
from traindbg.hooks.torch.data.paddings import padding_of
from traindbg.hooks.torch.data.sequences import SequenceObserver
from traindbg.hooks.torch.data.spectra import Spectra

RULES = ["attention_mask_wrong", "future_leak"]
WORDS, LENGTH, WIDTH = 11, 12, 8


class Model(nn.Module):
    """Words to scores; `mix(h, ids)` is what carries something along the sequence."""

    def __init__(self, mix, part=None, inner=WIDTH):
        super().__init__()
        self.embed = nn.Embedding(WORDS, WIDTH)
        self.part = part
        self.mix = mix
        self.head = nn.Linear(inner, WORDS)

    def forward(self, ids):
        return self.head(self.mix(self, self.embed(ids), ids))


def words(seed: int = 0, batch: int = 6) -> torch.Tensor:
    g = torch.Generator().manual_seed(seed)
    return torch.randint(1, WORDS, (batch, LENGTH + 1), generator=g)


def padded(ids: torch.Tensor) -> torch.Tensor:
    ids = ids.clone()
    for row in range(len(ids)):
        ids[row, LENGTH - row :] = 0
    return ids


def train(run_dir, model, *, pad=False, watch=True, steps=4):
    torch.manual_seed(7)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    watcher = None
    if watch:
        watcher = td.watch(model, optimizer, run_dir=run_dir, supervise=False, rules=RULES)
    losses = []
    for step in range(steps):
        ids = padded(words(step)) if pad else words(step)
        scores = model(ids[:, :-1])
        loss = F.cross_entropy(scores.flatten(0, 1), ids[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    if watcher is None:
        return losses, torch.random.get_rng_state()
    watcher.detach()
    return td.Run(run_dir), losses, torch.random.get_rng_state()


def fact(run: td.Run, name: str) -> tuple[set[float], str]:
    """Its values, and its place."""
    names = [n for n in run.names() if n == f"loop/{name}" or n.startswith(f"loop/{name}/")]
    assert len(names) == 1, names
    return set(run.scalars(names[0]).values.tolist()), names[0].partition(f"loop/{name}/")[2]


def attend(mask=None, causal=False):
    def mix(model, h, ids):
        m = mask(ids) if mask is not None else None
        return F.scaled_dot_product_attention(h, h, h, attn_mask=m, is_causal=causal)

    return mix


def by_hand(later: bool):
    def mix(model, h, ids):
        scores = h @ h.transpose(1, 2) / math.sqrt(WIDTH)
        hidden = torch.ones(LENGTH, LENGTH).triu(1).bool()
        if not later:
            scores = scores.masked_fill(hidden, -1e9)
        return scores.softmax(-1) @ h

    return mix


def by_hand_turned(later: bool):
    """Scores [keys, queries]."""

    def mix(model, h, ids):
        scores = torch.einsum("bkd,bqd->bkq", h, h)
        if not later:
            scores = scores.masked_fill(TRIL.T == 0, float("-inf"))
        return torch.einsum("bkq,bkd->bqd", scores.softmax(dim=1), h)

    return mix


def hidden_afterwards(model, h, ids):
    weights = F.softmax(h @ h.transpose(1, 2), dim=-1) * TRIL
    return weights / weights.sum(-1, keepdim=True) @ h


def hidden_after_dropout(model, h, ids):
    weights = F.dropout(F.softmax(h @ h.transpose(1, 2), dim=-1), 0.1)
    weights = torch.mul(input=TRIL, other=weights / weights.sum(-1, keepdim=True))
    return weights @ h


def hidden_of_heads(mask, turned=False):
    """Weights [rows, heads, queries, keys], hidden in place after a dropout."""

    def mix(model, h, ids):
        heads = h.unflatten(2, (2, -1)).transpose(1, 2)
        scores = heads @ heads.transpose(2, 3)
        weights = F.dropout(F.softmax(scores, dim=2 if turned else 3), 0.5)
        weights.mul_(mask)
        out = (weights.transpose(2, 3) if turned else weights) @ heads
        return out.transpose(1, 2).flatten(2)

    return mix


def with_experts(model, h, ids):
    """A gate for as many experts as there are positions; the layer has no bias."""
    with torch.autocast("cpu", dtype=torch.bfloat16):
        gates = F.softmax(model.part(h), dim=-1)
    return h * gates.float().amax(-1, keepdim=True) + h.roll(1, dims=1)


def additive(model, h, ids):
    pairs = torch.tanh(h[:, :, None] + h[:, None, :])
    return model.part(pairs).squeeze(-1).softmax(-1) @ h


def with_feature_map(model, h, ids):
    """Linear attention: a softmax over features, of which there are as many as positions."""
    features = F.softmax(torch.cat([h, h[..., : LENGTH - WIDTH]], -1), dim=-1)
    weights = (features @ features.transpose(1, 2)) * TRIL
    return weights / weights.sum(-1, keepdim=True) @ h + h.roll(1, dims=1)


def by_hand_with(hidden: float):
    return lambda model, h, ids: (h @ h.transpose(1, 2) + (1 - TRIL) * hidden).softmax(-1) @ h


TRIL = torch.ones(LENGTH, LENGTH).tril()
SEES_LATER = {
    "no mask": (attend(), None),
    "mask that is off by one": (attend(lambda ids: TRIL.roll(1, 1).bool() | TRIL.bool()), None),
    "numbers that are added": (attend(lambda ids: TRIL), None),
    "by hand": (by_hand(later=True), None),
    "by hand, turned": (by_hand_turned(later=True), None),
    "hidden of one of two heads": (
        hidden_of_heads(torch.stack([TRIL, torch.ones_like(TRIL)])),
        None,
    ),
    "by hand, additive": (additive, lambda: nn.Linear(WIDTH, 1)),
    "multi-head": (lambda m, h, ids: m.part(h, h, h)[0], nn.MultiheadAttention),
    "convolution": (
        lambda m, h, ids: m.part(h.transpose(1, 2)).transpose(1, 2),
        lambda: nn.Conv1d(WIDTH, WIDTH, 3, padding=1),
    ),
    "padded on both sides by a call of its own": (
        lambda m, h, ids: m.part(F.pad(h.transpose(1, 2), (2, 2))).transpose(1, 2),
        lambda: nn.Conv1d(WIDTH, WIDTH, 3, dilation=2),
    ),
    "padded on the right": (
        lambda m, h, ids: m.part(F.pad(h.transpose(1, 2), (0, 2))).transpose(1, 2),
        lambda: nn.Conv1d(WIDTH, WIDTH, 3),
    ),
    "circular": (
        lambda m, h, ids: m.part(h.transpose(1, 2)).transpose(1, 2),
        lambda: nn.Conv1d(WIDTH, WIDTH, 3, padding=1, padding_mode="circular"),
    ),
    "a centred mean": (
        lambda m, h, ids: h - m.part(h.transpose(1, 2)).transpose(1, 2),
        lambda: nn.AvgPool1d(3, stride=1, padding=1),
    ),
    "a mean, padded on both sides before": (
        lambda m, h, ids: h - m.part(F.pad(h.transpose(1, 2), (1, 1), "replicate")).transpose(1, 2),
        lambda: nn.AvgPool1d(3, stride=1),
    ),
    "a centred maximum": (
        lambda m, h, ids: h - m.part(h.transpose(1, 2)).transpose(1, 2),
        lambda: nn.MaxPool1d(3, stride=1, padding=1),
    ),
    "both directions": (
        lambda m, h, ids: m.part(h)[0],
        lambda: nn.LSTM(WIDTH, WIDTH // 2, batch_first=True, bidirectional=True),
    ),
    "shifted the wrong way": (
        lambda m, h, ids: h + m.part(h),
        lambda: nn.ZeroPad2d((0, 0, -1, 1)),
    ),
    "shifted the wrong way, turned": (
        lambda m, h, ids: h + F.pad(h.transpose(1, 2), (-1, 1)).transpose(1, 2),
        None,
    ),
    "rolled the wrong way": (lambda m, h, ids: h + h.roll(-1, dims=1), None),
}
SEES_EARLIER = {
    "is_causal": (attend(causal=True), None),
    "mask": (attend(lambda ids: TRIL.bool()), None),
    "by hand": (by_hand(later=False), None),
    "by hand, turned": (by_hand_turned(later=False), None),
    "hidden after the softmax": (hidden_afterwards, None),
    "hidden after dropout": (hidden_after_dropout, None),
    "hidden of heads": (hidden_of_heads(TRIL), None),
    "hidden of each head": (hidden_of_heads(TRIL.expand(2, -1, -1)), None),
    "hidden of heads, turned": (
        hidden_of_heads(TRIL.T[None, None], turned=True),
        None,
    ),
    "a feature map": (with_feature_map, None),
    "a gate": (with_experts, lambda: nn.Linear(WIDTH, LENGTH, bias=False)),
    "hidden by -100": (by_hand_with(-100.0), None),
    "a mask of -1000": (attend(lambda ids: (1 - TRIL) * -1000.0), None),
    "multi-head": (
        lambda m, h, ids: m.part(h, h, h, attn_mask=TRIL == 0)[0],
        nn.MultiheadAttention,
    ),
    "padded on the left": (
        lambda m, h, ids: m.part(F.pad(h.transpose(1, 2), (2, 0))).transpose(1, 2),
        lambda: nn.Conv1d(WIDTH, WIDTH, 3),
    ),
    "padded on the left, dilated": (
        lambda m, h, ids: m.part(F.pad(h.transpose(1, 2), (4, 0))).transpose(1, 2),
        lambda: nn.Conv1d(WIDTH, WIDTH, 3, dilation=2),
    ),
    "cut off on the right": (
        lambda m, h, ids: m.part(h.transpose(1, 2))[:, :, :-2].transpose(1, 2),
        lambda: nn.Conv1d(WIDTH, WIDTH, 3, padding=2),
    ),
    "a mean, padded on the left": (
        lambda m, h, ids: h - m.part(F.pad(h.transpose(1, 2), (2, 0), "replicate")).transpose(1, 2),
        lambda: nn.AvgPool1d(3, stride=1),
    ),
    "a mean that is moved on": (
        lambda m, h, ids: h - F.pad(m.part(h.transpose(1, 2)), (1, 0))[..., :-1].transpose(1, 2),
        lambda: nn.AvgPool1d(3, stride=1, padding=1),
    ),
    "a convolution that is moved on": (
        lambda m, h, ids: F.pad(m.part(h.transpose(1, 2)), (1, 0))[..., :-1].transpose(1, 2),
        lambda: nn.Conv1d(WIDTH, WIDTH, 3, padding=1),
    ),
    "one direction": (
        lambda m, h, ids: m.part(h)[0],
        lambda: nn.GRU(WIDTH, WIDTH, batch_first=True),
    ),
    "shifted": (lambda m, h, ids: h + F.pad(h, (0, 0, 1, -1)), None),
    "rolled": (lambda m, h, ids: h + torch.roll(h, shifts=1, dims=1), None),
    "values rolled, and not positions": (
        lambda m, h, ids: h + h.roll(-1, -1) + F.pad(h, (0, 0, 1, -1)),
        None,
    ),
}


def model_of(mix, part) -> Model:
    torch.manual_seed(1)
    if part is nn.MultiheadAttention:
        return Model(mix, nn.MultiheadAttention(WIDTH, 2, batch_first=True))
    return Model(mix, part() if part is not None else None)


@pytest.mark.parametrize("name", SEES_LATER)
def test_later_positions_that_are_seen_are_told(run_dir, name):
    run, _, _ = train(run_dir, model_of(*SEES_LATER[name]))
    values, place = fact(run, "later_seen")
    assert values == {1}
    has_part = SEES_LATER[name][1] is not None
    # What is written out is in the model itself.
    assert place == ("part" if has_part and SEES_LATER[name][0] is not additive else "model")


@pytest.mark.parametrize("name", SEES_EARLIER)
def test_a_causal_layer_sees_none(run_dir, name):
    run, _, _ = train(run_dir, model_of(*SEES_EARLIER[name]))
    assert fact(run, "later_seen") == ({0}, "")


class Chomped(nn.Module):
    """A convolution that pads both ends, of which so many positions are cut off in front."""

    def __init__(self, front: int, form: str) -> None:
        super().__init__()
        self.front, self.form = front, form
        self.layer = nn.Conv1d(2, 1, 3, padding=4, dilation=2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = self.layer(x)
        end = self.front + x.shape[2]
        if self.form == "dots":
            return out[..., self.front : end][:, 0]
        if self.form == "from behind":
            return out[:, :, self.front : end - out.shape[2] or None][:, 0]
        return out[:, :, self.front : end][:, 0]


class TwoChannels(nn.Module):
    """What is known of the future in one channel may be looked at."""

    def __init__(self) -> None:
        super().__init__()
        self.load, self.weather = nn.Conv1d(1, 1, 3), nn.Conv1d(1, 1, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (self.load(F.pad(x[:, :1], (2, 0))) + self.weather(x[:, 1:]))[:, 0]


@pytest.mark.parametrize("kind", ["weather", "a ring", "an inflow of nothing"])
def test_channels_whose_later_positions_may_be_seen(run_dir, kind):
    torch.manual_seed(1)
    model = TwoChannels() if kind == "weather" else Chomped(4, "all")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with td.watch(model, optimizer, run_dir=run_dir, supervise=False, rules=RULES):
        for _ in range(4):
            waves = torch.randn(6, 2, 25).cumsum(2)
            x = waves[:, :, :-1]
            if kind == "weather":
                y = waves[:, 0, 1:]
            else:
                y = x[:, 0].roll(-1, 1)
                if kind != "a ring":
                    y[:, -1] = 0
            loss = F.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    names = [name for name in td.Run(run_dir).names() if name.startswith("loop/later_seen")]
    assert names in ([], ["loop/later_seen"])


@pytest.mark.parametrize("form", ["dots", "from behind", "all"])
@pytest.mark.parametrize(("front", "leaks"), [(0, False), (1, True), (2, True), (4, True)])
def test_what_is_cut_off_a_convolution(run_dir, front, leaks, form):
    torch.manual_seed(1)
    model = Chomped(front, form)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with td.watch(model, optimizer, run_dir=run_dir, supervise=False, rules=RULES):
        for _ in range(4):
            waves = torch.randn(6, 2, 25).cumsum(2)
            loss = F.mse_loss(model(waves[:, :, :-1]), waves[:, 0, 1:])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    assert fact(td.Run(run_dir), "later_seen") == ({float(leaks)}, "layer" if leaks else "")


class Mixing(nn.Module):
    """A matrix over positions, as in a spatial gate; `how` it is applied."""

    def __init__(self, how, causal, length=LENGTH):
        super().__init__()
        self.how, self.causal = how, causal
        self.weight = nn.Parameter(torch.randn(length, length) / length)

    def forward(self, h):
        weight = self.weight.tril() if self.causal else self.weight
        if self.how == "linear":
            return F.linear(h.transpose(1, 2), weight).transpose(1, 2)
        if self.how == "product":
            return weight @ h
        return F.conv1d(h, weight[:, :, None])


def by_fourier(size, kernel, along):
    """A convolution over all positions, the dimension `along`, by a transform of `size` of them."""

    def mix(model, h, ids):
        h = h if along == 1 else h.transpose(1, 2)
        filtered = torch.fft.rfft(model.part, n=size)
        filtered = filtered[:, None] if along == 1 else filtered[None]
        spectrum = torch.fft.rfft(h, n=size, dim=along) * filtered
        mixed = torch.fft.irfft(spectrum, n=size, dim=along).narrow(along, 0, LENGTH)
        return mixed if along == 1 else mixed.transpose(1, 2)

    return Model(mix, nn.Parameter(kernel))


@pytest.mark.parametrize("along", [1, 2])
@pytest.mark.parametrize(
    ("size", "taps", "leaks"),
    [
        (LENGTH, LENGTH, True),  # circular
        (2 * LENGTH - 2, LENGTH, True),  # by one tap
        (2 * LENGTH, LENGTH, False),
        (2 * LENGTH, 2 * LENGTH, True),  # a kernel of both directions
        (LENGTH + 2, 3, False),  # a short kernel
    ],
)
def test_convolutions_by_a_fourier_transform(run_dir, size, taps, leaks, along):
    g = torch.Generator().manual_seed(3)
    model = by_fourier(size, 0.1 + torch.rand(taps, generator=g), along)
    run, _, _ = train(run_dir, model)
    assert fact(run, "later_seen") == ({float(leaks)}, "model" if leaks else "")


@pytest.mark.parametrize("how", ["", "on a ring", "zeros behind", "front left out"])
def test_a_circular_convolution_that_shows_nothing(run_dir, how):
    g = torch.Generator().manual_seed(3)
    size = LENGTH + 3  # of which the last three are zeros, where that is said

    def mix(model, h, ids):
        filtered = torch.fft.rfft(model.part, n=size)
        return torch.fft.irfft(torch.fft.rfft(h, n=size, dim=1) * filtered[:, None], n=size, dim=1)

    class Filter(nn.Module):
        def __init__(self):
            super().__init__()
            self.part = nn.Parameter(0.1 + torch.rand(4, generator=g))

        def forward(self, x):
            return mix(self, x[..., None].repeat(1, 1, 2), x).mean(2)

    model = Filter()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with td.watch(model, optimizer, run_dir=run_dir, supervise=False, rules=RULES):
        for _ in range(4):
            x = torch.randn(16, size, generator=g)
            if how == "zeros behind":
                x[:, LENGTH:] = 0
            y = torch.roll(x, -1, 1)
            if how != "on a ring":
                y[:, -1] = 0 if how == "zeros behind" else torch.randn(16, generator=g)
            out = model(x)
            if how == "front left out":
                out, y = out[:, 3:], y[:, 3:]
            F.mse_loss(out, y).backward()
            optimizer.step()
            optimizer.zero_grad()
    told = [name for name in td.Run(run_dir).names() if "later_seen" in name]
    if how in ("", "zeros behind"):
        assert fact(td.Run(run_dir), "later_seen")[0] == {float(how == "")}
    else:
        assert told == []


def test_a_spectrum_of_a_single_position_is_passed_over():
    spectra, x = Spectra(), torch.randn(4, 1, 2)
    spectrum = torch.fft.rfft(x, n=1, dim=1)
    assert spectra.called(torch.fft.rfft, (x, 1, 1), {}, spectrum) is None
    product = spectrum * torch.fft.rfft(torch.randn(1, 2), n=1, dim=0)
    assert spectra.called(torch.mul, (spectrum, product[0]), {}, product) is None
    result = torch.fft.irfft(product, n=1, dim=1)
    assert spectra.called(torch.fft.irfft, (product, 1, 1), {}, result) is None


def test_a_fourier_transform_over_as_many_features_as_positions(run_dir):
    def mix(model, h, ids):
        h = torch.cat([h, h[..., : LENGTH - WIDTH]], -1)
        spectrum = torch.fft.rfft(h, dim=2) * torch.fft.rfft(model.part)
        return torch.fft.irfft(spectrum, n=LENGTH, dim=2)

    run, _, _ = train(run_dir, Model(mix, nn.Parameter(torch.rand(LENGTH)), inner=LENGTH))
    assert not any("later_seen" in name for name in run.names())


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("how", ["linear", "product", "convolution"])
def test_matrices_that_mix_positions(run_dir, how, causal):
    model = model_of(lambda m, h, ids: m.part(h), lambda: Mixing(how, causal))
    run, _, _ = train(run_dir, model)
    assert fact(run, "later_seen") == (({0}, "") if causal else ({1}, "part"))


@pytest.mark.parametrize("how", ["as wide as long", "contiguous", "of features"])
def test_layers_that_are_as_wide_as_the_sequence_is_long(run_dir, how):
    """Features, of which each position has as many as there are positions."""
    torch.manual_seed(1)

    def mix(model, h, ids):
        wide = F.pad(h, (0, LENGTH - WIDTH)) if how != "contiguous" else h.repeat(1, 1, 2)
        wide = wide[..., :LENGTH]
        if how == "as wide as long":  # a convolution's output, turned
            wide = wide.transpose(1, 2).contiguous().transpose(1, 2)
        return model.part(wide) if how != "of features" else model.part(wide.transpose(1, 2)).mT

    class Wide(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Conv1d(LENGTH, LENGTH, 1)
            self.weight = nn.Parameter(torch.randn(LENGTH, LENGTH))

        def forward(self, x):
            return self.layer(x) if how == "of features" else F.linear(x, self.weight)

    run, _, _ = train(run_dir, Model(mix, Wide(), LENGTH))
    assert not [name for name in run.names() if "later_seen" in name]


@pytest.mark.parametrize("how", ["convolution", "linear"])
def test_features_one_fewer_than_positions(run_dir, how):
    """The last position has no target: a layer of features is as wide as there are targets."""
    part = nn.Conv1d(LENGTH, LENGTH, 1) if how == "convolution" else nn.Linear(LENGTH, LENGTH)

    def mix(model, h, ids):
        wide = F.pad(h, (0, LENGTH - WIDTH)).transpose(1, 2).contiguous()
        if how == "convolution":
            return model.part(wide).transpose(1, 2)
        return model.part(wide.transpose(1, 2))

    model = Model(mix, part, LENGTH)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with td.watch(model, optimizer, run_dir=run_dir, supervise=False, rules=RULES):
        for step in range(4):
            ids = words(step)
            F.cross_entropy(model(ids)[:, :-1].flatten(0, 1), ids[:, 1:].flatten()).backward()
            optimizer.step()
            optimizer.zero_grad()
    assert not [name for name in td.Run(run_dir).names() if "later_seen" in name]


def test_nothing_is_told_of_a_task_of_another_kind(run_dir):
    model = model_of(*SEES_LATER["no mask"])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    watcher = td.watch(model, optimizer, run_dir=run_dir, supervise=False, rules=RULES)
    for step in range(3):
        ids = words(step)[:, :-1]
        F.cross_entropy(model(ids).flatten(0, 1), ids.flatten()).backward()  # the words themselves
        optimizer.step()
    watcher.detach()
    assert not [name for name in td.Run(run_dir).names() if "later_seen" in name]


MASKS = {
    "right": (lambda ids: (ids != 0)[:, None, :], 0.0),
    "inverted": (lambda ids: (ids == 0)[:, None, :], 1.0),
}


@pytest.mark.parametrize("name", MASKS)
def test_padding_that_is_seen_instead_of_words(run_dir, name):
    mask, expected = MASKS[name]
    run, _, _ = train(run_dir, model_of(attend(mask), None), pad=True)
    assert fact(run, "padding_seen_instead") == ({expected}, "model")


@pytest.mark.parametrize("behind", [False, True])
@pytest.mark.parametrize("inverted", [False, True])
def test_padding_beside_a_token_of_the_models_own(run_dir, inverted, behind):
    def mix(model, h, ids):
        own = model.embed.weight[:1].expand(len(h), 1, -1)
        both = torch.cat([h, own] if behind else [own, h], 1)
        is_own = torch.full((len(h), 1), inverted)
        hidden = (ids != 0) if inverted else (ids == 0)
        hidden = torch.cat([hidden, is_own] if behind else [is_own, hidden], 1)
        scores = (both @ both.transpose(1, 2)).masked_fill(hidden[:, None], -1e9)
        out = scores.softmax(-1) @ both
        return out[:, :-1] if behind else out[:, 1:]

    run, _, _ = train(run_dir, model_of(mix, None), pad=True)
    values, _ = fact(run, "padding_seen_instead")
    assert values == {1.0} if inverted else max(values) < 0.5


def of_queries(form):
    """What is hidden, of a mask of the padding."""

    def mix(model, h, ids):
        hidden = ids == 0
        if form == "keys":
            return attend(lambda _: ~hidden[:, None, :])(model, h, ids)
        if form == "queries, before a softmax":
            scores = (h @ h.transpose(1, 2)).masked_fill(hidden[:, :, None], -1e4)
            return scores.softmax(-1) @ h
        if form == "queries, after a softmax":
            weights = (h @ h.transpose(1, 2)).softmax(-1) * (~hidden[:, :, None]).float()
            return weights @ h
        if form == "queries of all heads":
            given = hidden.repeat_interleave(2, 0)[:, :, None].expand(-1, -1, LENGTH)
            numbers = torch.zeros(given.shape).masked_fill(given, -1e9)
            return model.part(h, h, h, attn_mask=numbers)[0]
        shown = ~hidden[:, :, None]
        if form == "queries and keys":
            shown = shown & ~hidden[:, None, :]
        return attend(lambda _: torch.where(shown, 0.0, -1e9))(model, h, ids)

    return mix


@pytest.mark.parametrize(
    "form",
    [
        "keys",
        "queries",
        "queries, before a softmax",
        "queries, after a softmax",
        "queries of all heads",
        "queries and keys",
    ],
)
def test_a_mask_along_the_queries(run_dir, form):
    model = model_of(of_queries(form), nn.MultiheadAttention)
    run, _, _ = train(run_dir, model, pad=True)
    is_wrong = form.startswith("queries") and "keys" not in form
    values, place = fact(run, "padding_hidden_as_queries")
    assert values == {float(is_wrong)}
    assert place == ("part" if "heads" in form else "model")


def without_a_mask(model, h, ids):
    """Queries that are padding are 0 here, so that all keys are alike to them."""
    h = h * (ids != 0)[..., None]
    return (h @ h.transpose(1, 2)).softmax(-1) @ h


def test_queries_that_see_all_alike_are_not_masked(run_dir):
    run, _, _ = train(run_dir, model_of(without_a_mask, None), pad=True)
    assert fact(run, "padding_hidden_as_queries") == ({0.0}, "model")


class Asking(nn.Module):
    """Questions look at documents of another padding; what padding asks is hidden, too."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.head = nn.Embedding(WORDS, WIDTH), nn.Linear(WIDTH, 2)

    def forward(self, question: torch.Tensor, document: torch.Tensor) -> torch.Tensor:
        q, d = self.embed(question), self.embed(document)
        mask = (question != 0)[:, :, None] & (document != 0)[:, None, :]
        scores = (q @ d.transpose(1, 2)).masked_fill(~mask, -1e4)
        return self.head((scores.softmax(-1) @ d)[:, 0])


def test_keys_of_another_input_have_a_padding_of_their_own(run_dir):
    torch.manual_seed(3)
    model = Asking()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with td.watch(model, optimizer, run_dir=run_dir, supervise=False, rules=RULES):
        for step in range(4):
            question, document = padded(words(step))[:, :-1], words(step + 9)[:, :-1].clone()
            document[0, -2:] = 0
            loss = F.cross_entropy(model(question, document), torch.arange(6) % 2)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    assert not any("hidden_as_queries" in name for name in td.Run(run_dir).names())


class Masked(nn.Module):
    """Given vectors, and which of them are there; it puts a token of its own before them."""

    def __init__(self, axis: int) -> None:
        super().__init__()
        self.axis = axis
        self.embed, self.head = nn.Linear(3, WIDTH), nn.Linear(WIDTH, 2)

    def forward(self, x: torch.Tensor, is_there: torch.Tensor) -> torch.Tensor:
        h = F.pad(self.embed(x), (0, 0, 1, 0), value=1.0)
        is_there = F.pad(is_there, (1, 0), value=True).unsqueeze(self.axis)
        scores = (h @ h.transpose(1, 2)).masked_fill(~is_there, -1e4)
        return self.head((scores.softmax(-1) @ h)[:, 0])


@pytest.mark.parametrize("axis", [1, 2])
def test_a_mask_that_the_model_is_given_says_what_is_padding(run_dir, axis):
    torch.manual_seed(3)
    model = Masked(axis)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with td.watch(model, optimizer, run_dir=run_dir, supervise=False, rules=RULES):
        for _ in range(4):
            is_there = torch.arange(9) < torch.randint(2, 10, (8, 1))
            loss = F.cross_entropy(model(torch.randn(8, 9, 3), is_there), torch.arange(8) % 2)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    values, _ = fact(td.Run(run_dir), "padding_hidden_as_queries")
    assert values == {float(axis == 2)}


@pytest.mark.parametrize("inverted", [False, True])
def test_key_padding_mask(run_dir, inverted):
    def mix(model, h, ids):
        hidden = (ids != 0) if inverted else (ids == 0)
        return model.part(h, h, h, key_padding_mask=hidden)[0]

    run, _, _ = train(run_dir, model_of(mix, nn.MultiheadAttention), pad=True)
    values, place = fact(run, "padding_seen_instead")
    assert values == {float(inverted)}
    assert place == "part"


@pytest.mark.parametrize(("side", "expected"), [("own", 0.0), ("other", 1.0), ("window", 0.0)])
def test_a_mask_at_the_other_end_of_the_padding(run_dir, side, expected):
    def mix(model, h, ids):
        hidden = ids == 0
        if side == "other":
            hidden = hidden.flip(1)
        elif side == "window":
            hidden = hidden | (torch.arange(ids.shape[1]) < 2)
        return model.part(h, h, h, key_padding_mask=hidden)[0]

    run, _, _ = train(run_dir, model_of(mix, nn.MultiheadAttention), pad=True)
    assert fact(run, "padding_mirrored") == ({expected}, "part")


@pytest.mark.parametrize("shape", [(), (1,)])
@pytest.mark.parametrize("inverted", [False, True])
def test_an_average_that_is_written_out(run_dir, inverted, shape):
    def mix(model, h, ids):
        scores = h.sum(-1).masked_fill((ids != 0) if inverted else (ids == 0), -1e9)
        weights = scores.reshape(*scores.shape, *shape).softmax(1)
        return h + (weights.reshape(*scores.shape, 1) * h).sum(1, keepdim=True)

    run, _, _ = train(run_dir, model_of(mix, None), pad=True)
    assert fact(run, "padding_seen_instead") == ({float(inverted)}, "model")


HIDE = {
    "before": lambda weights, mask: weights,
    "mul": lambda weights, mask: weights * mask,
    "mul, the other way": lambda weights, mask: torch.mul(mask.float(), other=weights),
    "fill": lambda weights, mask: weights.masked_fill(~mask, 0.0),
    "fill in place": lambda weights, mask: weights.masked_fill_(~mask, 0.0),
    "where": lambda weights, mask: torch.where(mask, weights, 0.0),
}


@pytest.mark.parametrize("inverted", [False, True])
@pytest.mark.parametrize("share", [0.1, 0.5])
@pytest.mark.parametrize("hide", HIDE)
def test_what_dropout_makes_zero_is_not_hidden(run_dir, hide, share, inverted):
    """Of an average; its mask is applied before the softmax, or after the dropout."""

    def mix(model, h, ids):
        mask = (ids == 0) if inverted else (ids != 0)
        scores = h.sum(-1)
        if hide == "before":
            scores = scores.masked_fill(~mask, -1e9)
        weights = HIDE[hide](F.dropout(scores.softmax(1), share), mask)
        return h + (weights[:, :, None] * h).sum(1, keepdim=True)

    run, _, _ = train(run_dir, model_of(mix, None), pad=True)
    assert fact(run, "padding_seen_instead") == ({float(inverted)}, "model")


def test_a_mask_of_numbers_that_hides_nothing(run_dir):
    def mix(model, h, ids):
        return model.part(h, h, h, key_padding_mask=(ids == 0).float())[0]

    run, _, _ = train(run_dir, model_of(mix, nn.MultiheadAttention), pad=True)
    assert fact(run, "masks_added") == ({1}, "part")


def test_a_mask_of_tiny_numbers(run_dir):
    """-1e-9 in place of -1e9 hides nothing; numbers that hide, and zeros, are left alone."""

    def mixed(name, bias):
        def mix(model, h, ids):
            scores = h @ h.transpose(1, 2) / h.shape[-1] ** 0.5
            return bias(scores, (ids == 0)[:, None, :]).softmax(-1) @ h

        run, _, _ = train(run_dir / name, model_of(mix, None), pad=True)
        return fact(run, "masks_tiny") if run.names("^loop/masks_tiny") else None

    tiny = ({1}, "model")
    assert mixed("filled", lambda scores, hidden: scores.masked_fill(hidden, -1e-9)) == tiny
    assert mixed("in place", lambda scores, hidden: scores.masked_fill_(hidden, -1e-9)) == tiny
    assert mixed("where", lambda scores, hidden: torch.where(hidden, -1e-9, scores)) == tiny
    assert mixed("added", lambda scores, hidden: scores + hidden.float() * -1e-9) == tiny
    assert mixed("hides", lambda scores, hidden: scores.masked_fill(hidden, -1e9)) is None
    assert mixed("zero", lambda scores, hidden: scores.masked_fill(hidden, 0.0)) is None
    assert mixed("huge", lambda scores, hidden: scores + hidden.float() * -1e9) is None
    floor = -1e-9
    assert mixed("floor", lambda scores, _: torch.where(scores > 0, scores, floor)) is None
    assert mixed("floor, filled", lambda scores, _: scores.masked_fill(scores < 0, floor)) is None
    assert mixed("whole", lambda s, hidden: s.masked_fill(hidden.expand_as(s), -1e-9)) == tiny
    assert mixed("preference", lambda s, hidden: s.masked_fill(hidden, -5e-4)) is None
    assert mixed("preference, added", lambda s, hidden: s + hidden.float() * -5e-4) is None
    slope = -1e-4 * torch.arange(512.0)
    assert mixed("bias", lambda scores, _: scores + slope[: scores.shape[-1]]) is None

    def given(model, h, ids):
        return model.part(h, h, h, key_padding_mask=(ids == 0).float() * -1e-9)[0]

    run, _, _ = train(run_dir / "given", model_of(given, nn.MultiheadAttention), pad=True)
    assert fact(run, "masks_tiny") == ({1}, "part")


@pytest.mark.parametrize("by_numbers", [False, True])
def test_masks_of_heads_in_the_order_of_the_batch(run_dir, by_numbers):
    """By `repeat`, and what may be: `repeat_interleave`, one of each head, one for all."""
    heads = 4

    def told(name, make):
        def mix(model, h, ids):
            near = (ids[:, :, None] - ids[:, None, :]).abs() > 4
            mask = make(near)
            if by_numbers:
                mask = torch.zeros(mask.shape).masked_fill(mask, -math.inf)
            return model.part(h, h, h, attn_mask=mask)[0]

        model = model_of(mix, lambda: nn.MultiheadAttention(WIDTH, heads, batch_first=True))
        run, _, _ = train(run_dir / name, model)
        return fact(run, "masks_repeated") if run.names("^loop/masks_repeated") else None

    bands = [torch.ones(LENGTH, LENGTH, dtype=torch.bool).tril(-1 - k) for k in range(heads)]
    of_heads = torch.stack(bands)
    assert told("repeated", lambda near: near.repeat(heads, 1, 1)) == ({1}, "part")
    assert told("interleaved", lambda near: near.repeat_interleave(heads, 0)) == ({0}, "")
    assert told("of heads", lambda near: of_heads.repeat(len(near), 1, 1)) == ({0}, "")
    assert told("one", lambda near: bands[0].expand(heads * len(near), -1, -1)) == ({0}, "")
    assert told("flat", lambda near: bands[0]) is None


def windows_hidden(target, hidden, *, ids=None, beside=None, rows=6):
    """Places of masks that hide a window; `hidden`: by how far two positions are apart."""
    place = torch.arange(LENGTH)
    mask = hidden((place[:, None] - place).abs())
    h = torch.randn(rows, 1, LENGTH, 4)
    looks = SequenceObserver()
    looks.begin(True, nn.Linear(1, 1))
    looks.input_given(torch.randn(rows, LENGTH, 2) if ids is None else ids)
    looks.called("", F.scaled_dot_product_attention, (h, h, h, ~mask), {}, h)
    if beside is not None:
        beside(looks, h)
    looks.loss_computed((None, target), {})
    return [(value, place) for name, value, place in looks.facts() if name == "windows_hidden"]


def test_a_mask_that_hides_the_window_it_is_to_show():
    classes = torch.randint(0, 3, (6 * LENGTH,), generator=torch.Generator().manual_seed(0))
    assert windows_hidden(classes, lambda apart: apart <= 2) == [(1, "")]
    assert windows_hidden(classes[:6], lambda apart: apart <= 2) == [(1, "")]
    padding = torch.arange(LENGTH) > LENGTH - 3
    assert windows_hidden(classes, lambda apart: (apart <= 1) | padding) == [(1, "")]
    for right in (
        lambda apart: apart > 2,
        lambda apart: apart < 1,  # itself alone
        lambda apart: apart <= 5,  # more than half
        lambda apart: (apart <= 2) & (apart != 1),
        lambda apart: torch.ones_like(apart).triu(1).bool(),
        lambda apart: torch.ones_like(apart).tril().bool(),
        lambda apart: torch.zeros_like(apart).bool(),
    ):
        assert windows_hidden(classes, right) == []


def test_a_hidden_window_that_may_be_meant():
    """A value is told by others than its neighbours; another layer shows these."""

    def near(apart):
        return apart <= 2

    assert windows_hidden(torch.randn(6, LENGTH), near) == []
    ids = words()[:, :LENGTH]
    assert windows_hidden(ids.flatten(), near, ids=ids) == []
    classes = (ids % 2).flatten()
    assert windows_hidden(classes, near, ids=ids) == [(1, "")]

    def all_of_it(looks, h):
        looks.called("", F.scaled_dot_product_attention, (h, h, h), {}, h)

    def recurrent(looks, h):
        gru = nn.GRU(4, 4, batch_first=True)
        args = (h[:, 0], torch.zeros(1, 6, 4), gru._flat_weights, True, 1, 0.0, True, False, True)
        looks.called("", torch.gru, args, {}, torch.gru(*args))

    for beside in (all_of_it, recurrent):
        assert windows_hidden(classes, near, ids=ids, beside=beside) == []


def test_a_mask_of_numbers_that_is_added_to_scores_written_out(run_dir):
    """As it is, in place, turned into what hides, and as a bias for some pairs, which is meant."""

    def mixed(name, bias):
        def mix(model, h, ids):
            scores = h @ h.transpose(1, 2) / h.shape[-1] ** 0.5
            return bias(scores, (ids != 0).float()[:, None, :]).softmax(-1) @ h

        run, _, _ = train(run_dir / name, model_of(mix, None), pad=True)
        return fact(run, "masks_added")

    assert mixed("added", lambda scores, mask: scores + mask) == ({1}, "model")
    assert mixed("in place", lambda scores, mask: scores.add_(mask)) == ({1}, "model")
    assert mixed("turned", lambda scores, mask: scores + (1 - mask) * -1e4) == ({0}, "")
    assert mixed("causal", lambda scores, mask: scores + torch.ones_like(scores[0]).tril()) == (
        {1},
        "model",
    )
    near = torch.eye(512).roll(1, 0)
    assert mixed(
        "graph", lambda scores, _: scores + near[: scores.shape[1], : scores.shape[1]]
    ) == (
        {0},
        "",
    )


@pytest.mark.parametrize(
    "name", ["no mask", "both directions", "multi-head", "by hand", "hidden of heads"]
)
def test_looking_changes_nothing(run_dir, name):
    kinds = SEES_LATER | {"hidden of heads": SEES_EARLIER["hidden of heads"]}
    plain = model_of(*kinds[name])
    losses, state = train(None, plain, watch=False)
    watched = model_of(*kinds[name])
    _, same, same_state = train(run_dir, watched)
    assert losses == same
    assert torch.equal(state, same_state)
    for one, other in zip(plain.parameters(), watched.parameters(), strict=True):
        assert torch.equal(one, other)


def test_padding_is_found_at_ends_and_beginnings():
    ids = padded(words())[:, :-1]
    assert torch.equal(padding_of(ids), ids == 0)
    assert torch.equal(padding_of(ids.flip(1)), ids.flip(1) == 0)
    vectors = torch.randn(6, LENGTH, 3) * (ids != 0)[:, :, None]
    assert torch.equal(padding_of(vectors), ids == 0)


def test_what_is_no_padding():
    assert padding_of(words()) is None
    ids = padded(words())
    ids[0, 3] = 0  # it stands in the middle, too
    assert padding_of(ids) is None
    ids = words()
    ids[:, -1] = 5  # each row ends with the same word, at the same place
    assert padding_of(ids) is None
    assert padding_of(torch.randn(6, 12)) is None
    for real in (
        REAL,
        REAL[-2:],
        ~REAL,
    ):  # a mask of numbers, where rows of full length may be most
        assert padding_of(real.long()) is None


def test_next_values():
    ids = words()

    def given(x):
        return Given(x, len(x))

    def length(x, target) -> int:
        found = next_values(given(x), target)
        return 0 if found is None else found.length

    assert length(ids[:, :-1], ids[:, 1:].flatten()) == LENGTH
    assert length(ids, ids[:, 1:].flatten()) == LENGTH + 1  # shifted inside
    assert length(ids[:, :-1].t(), ids[:, 1:].t().flatten()) == LENGTH
    assert length(ids[:, :-1], ids[:, :-1].flatten()) == 0
    assert length(torch.ones_like(ids), torch.ones_like(ids).flatten()) == 0
    series = torch.randn(5, 30, 4)
    assert length(series[:, :-1], series[:, 1:, 2]) == 29  # one of its values


def test_positions_that_have_a_target_in_all_rows():
    ids = words()
    target = ids[:, 1:].clone()
    target[:, :4] = -100
    target[0, :6] = -100
    found = next_values(Given(ids[:, :-1], len(ids)), target.flatten())
    assert found is not None
    assert found.known.tolist() == [6 <= position < LENGTH - 1 for position in range(LENGTH)]
    found = next_values(Given(ids, len(ids)), target.flatten())  # shifted inside
    assert found is not None
    assert found.known.tolist() == [6 <= position < LENGTH for position in range(LENGTH + 1)]


def test_targets_of_the_later_part_only():
    x = torch.randn(8, 30)
    target = torch.cat([x[:, 13:], torch.randn(8, 1)], 1)  # from the twelfth value on
    found = next_values(Given(x, 8), target)
    assert found is not None
    assert found.known.tolist() == [12 <= position < 29 for position in range(30)]
    assert next_values(Given(x, 8), torch.randn(8, 18)) is None


def test_a_model_that_is_first_called_at_a_step_that_is_not_due():
    looks, encoder, decoder = SequenceObserver(), nn.Linear(1, 1), nn.Linear(1, 1)
    for model in (encoder, decoder):
        looks.begin(False, model)
    for model in (encoder, decoder):
        looks.begin(True, model)
        looks.input_given(words())
    assert len(looks._inputs) == 2


@pytest.mark.parametrize("leaks", [False, True])
def test_a_prefix_may_see_all_of_itself(run_dir, leaks):
    """Its targets are left out; what comes after it may see no later position."""
    prefix = 8
    shown = TRIL.bool().clone()
    shown[:prefix, :prefix] = True
    if leaks:
        shown |= True
    model = Model(attend(lambda ids: shown))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with td.watch(model, optimizer, run_dir=run_dir, supervise=False, rules=RULES):
        for step in range(4):
            ids = words(step)
            target = ids[:, 1:].clone()
            target[:, :prefix] = -100
            optimizer.zero_grad()
            F.cross_entropy(model(ids[:, :-1]).flatten(0, 1), target.flatten()).backward()
            optimizer.step()
    assert fact(td.Run(run_dir), "later_seen") == ({float(leaks)}, "model" if leaks else "")


def test_a_vocabulary_that_is_as_large_as_the_sequence_is_long(run_dir):
    class Words(Model):
        def forward(self, ids):
            return self.head(self.mix(self, self.embed(ids), ids)).softmax(-1).log()

    model = Words(lambda m, h, ids: m.part(h)[0], nn.GRU(WIDTH, WIDTH, batch_first=True))
    model.head = nn.Linear(WIDTH, LENGTH)
    run, _, _ = train(run_dir, model)
    assert fact(run, "later_seen") == ({0}, "")


def test_what_cannot_be_read_here_is_left_alone(run_dir):
    """A mask that holds no values, no memory to look at, and a roll of all positions at once."""
    bias = pytest.importorskip("torch.nn.attention.bias")

    def mix(model, h, ids):
        causal = bias.causal_lower_right(LENGTH, LENGTH)
        nothing = F.scaled_dot_product_attention(h, h[:, :0], h[:, :0])
        rolled = torch.roll(h, 1, None)
        return F.scaled_dot_product_attention(h, h, h, attn_mask=causal) + nothing + 0 * rolled

    before = dict(failures)
    run, _, _ = train(run_dir, Model(mix))
    assert failures == before
    assert not [name for name in run.names() if "later_seen" in name]


def test_distributed_attention_is_not_looked_at():
    """That would be a collective call, of which the other ranks do not know."""
    torch.distributed.init_process_group("fake", store=FakeStore(), rank=0, world_size=2)
    try:
        mesh = init_device_mesh("cpu", (2,))
        scores = distribute_tensor(torch.randn(4, LENGTH, LENGTH), mesh, [Shard(0)])
        looks = SequenceObserver()
        looks.begin(True, nn.Linear(1, 1))
        looks.input_given(words()[:, :-1])
        looks.called("", F.softmax, (scores, -1), {}, scores.softmax(-1))
        looks.loss_computed((None, words()[:, 1:].flatten()), {})
        assert looks.facts() == []
    finally:
        torch.distributed.destroy_process_group()


def looking(*inputs: torch.Tensor) -> SequenceObserver:
    looks = SequenceObserver()
    looks.begin(True, nn.Linear(1, 1))
    for tensor in inputs:
        looks.input_given(tensor)
    return looks


def test_what_weights_are_multiplied_with_is_left_as_it_is():
    """Also where they are multiplied into it, or into a tensor that is given."""
    ids = padded(words())[:, :-1]
    given = torch.randn(len(ids), LENGTH)
    for way in ("into the mask", "into a tensor"):
        looks, weights, mask = looking(ids), given.softmax(1), (ids == 0).float()
        looks.called("", F.softmax, (given, 1), {}, weights)
        if way == "into the mask":
            function, args, kwargs = torch.Tensor.mul_, (mask, weights), {}
        else:
            function, args, kwargs = torch.mul, (weights, mask), {"out": torch.empty(6, LENGTH)}
        result = function(*args, **kwargs)
        before, mask_before, version = result.clone(), mask.clone(), mask._version
        looks.called("", function, args, kwargs, result)
        assert torch.equal(result, before)
        assert torch.equal(mask, mask_before)
        assert mask._version == version  # a backward pass may need it
        assert ("padding_seen_instead", 1.0, "") in looks.facts()


IDS = padded(words())[:, :-1]
REAL = IDS != 0


@pytest.mark.parametrize(
    ("inputs", "is_alone", "expected"),
    [
        ([IDS, REAL], True, {0.0}),
        ([IDS, ~REAL], True, {0.0}),  # for nn.MultiheadAttention
        ([IDS, REAL.roll(-2, 0)], True, {1.0}),
        ([IDS, ~REAL.roll(-2, 0)], True, {1.0}),
        ([IDS, REAL.long()], True, {0.0}),  # of the numbers 0 and 1
        ([IDS, REAL.roll(-2, 0).long()], True, {1.0}),
        ([IDS.flip(1), REAL.flip(1).roll(-2, 0)], True, {1.0}),  # padded in front
        ([IDS, REAL.flip(1)], True, {0.0}),  # at the other end: another fact tells of that
        ([IDS, REAL | REAL.roll(-2, 0)], True, {0.0}),  # shows more than there is, nowhere less
        ([IDS, torch.rand(6, LENGTH) > 0.5], True, {0.0}),
        # What is shown of a row is cut at random: these are no lengths of the others.
        ([IDS, torch.arange(LENGTH) < torch.tensor([3, 2, 5, 2, 6, 5])[:, None]], True, {0.0}),
        # Of a memory that is attended to.
        ([IDS, IDS.roll(-2, 0), REAL.roll(-2, 0)], True, {0.0}),
        # Something else is given, which the mask may belong to.
        ([IDS, torch.randn(6, LENGTH, 3), REAL.roll(-2, 0)], True, set()),
        ([IDS, torch.randn(6, 4 * LENGTH, 3), REAL.roll(-2, 0)], True, set()),
        ([IDS, torch.nn.Parameter(torch.randn(6, LENGTH)), REAL.roll(-2, 0)], True, set()),
        ([IDS, REAL.roll(-2, 0), IDS, IDS, IDS], True, set()),
        ([IDS, REAL.roll(-2, 0)], False, set()),
        ([IDS], True, set()),
    ],
)
def test_a_mask_that_is_given_with_other_rows(inputs, is_alone, expected):
    looks = SequenceObserver()
    looks.begin(True, nn.Linear(1, 1), is_alone)
    for tensor in inputs:
        looks.input_given(tensor)
    h = torch.randn(len(IDS), 1, LENGTH, 4)
    looks.called("", F.scaled_dot_product_attention, (h, h, h, REAL[:, None, None]), {}, h)
    told = {value for name, value, _ in looks.facts() if name == "padding_of_other_rows"}
    assert told == expected


@pytest.mark.parametrize("as_type", [torch.bool, torch.long])
def test_a_mask_that_shows_most_rows_whole(as_type):
    real = torch.arange(LENGTH) < torch.tensor([LENGTH] * 5 + [LENGTH - 2])[:, None]
    looks = SequenceObserver()
    looks.begin(True, nn.Linear(1, 1))
    for tensor in (words()[:, :LENGTH] * real, real.to(as_type)):
        looks.input_given(tensor)
    h = torch.randn(6, 1, LENGTH, 4)
    looks.called("", F.scaled_dot_product_attention, (h, h, h, real[:, None, None]), {}, h)
    assert not [value for name, value, _ in looks.facts() if name != "masks_added" and value > 0]


def held_by(looks: SequenceObserver) -> int:
    """Bytes of tensors, each memory once."""
    sizes, todo = {}, [vars(looks)]
    while todo:
        value = todo.pop()
        if isinstance(value, torch.Tensor):
            sizes[value.data_ptr()] = value.untyped_storage().nbytes()
        elif isinstance(value, (list, tuple, dict)):
            todo += value.values() if isinstance(value, dict) else value
    return sum(sizes.values())


def test_of_many_long_masks_few_are_kept():
    looks, h = looking(words()), torch.zeros(1, 1024, 4)
    for _ in range(32):
        looks.called("", F.scaled_dot_product_attention, (h, h, h), {}, h)
    assert len(looks._calls) == 32
    assert held_by(looks) < 1.1 * (1 << 23)  # one byte for each cell of a mask


def test_six_steps_are_looked_at_also_of_inputs_that_are_not_kept(run_dir):
    looks = SequenceObserver()
    scores = torch.randn(2, 8, 8, requires_grad=True)
    for step in range(9):
        looks.begin(True, nn.Linear(1, 1))
        assert looks.is_open == (step < 6)
        looks.input_given(torch.randn(2, 1 << 17))  # more than is copied
        looks.called("", F.softmax, (scores, -1), {}, (scores @ scores).softmax(-1))
        assert looks.facts() == []
        assert not looks.is_open

"""Modes of training that differ in what the model is made of."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Iterator
from typing import ClassVar

import torch
from modes_optimizers import CLASSES, batches, perceptron
from same import Training, mode
from torch import nn
from torch.nn import functional as F
from torch.nn.utils import parametrizations, parametrize, prune
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence


def images(steps: int = 4) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    for step in range(steps):
        generator = torch.Generator().manual_seed(step)
        yield (
            torch.randn(4, 3, 8, 8, generator=generator),
            torch.randint(0, CLASSES, (4,), generator=generator),
        )


def sgd(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)


@mode()
def channels_last(t: Training) -> None:
    model = nn.Sequential(
        nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU6(inplace=True), nn.MaxPool2d(2),
        nn.Conv2d(4, 4, 3, groups=2), nn.SiLU(inplace=True), nn.Dropout2d(0.3), nn.Flatten(),
        nn.Linear(16, CLASSES),
    ).to(memory_format=torch.channels_last)  # fmt: skip
    optimizer = sgd(model)
    t.watch(model, optimizer)
    made = ((x.to(memory_format=torch.channels_last), y) for x, y in images())
    t.fit(model, optimizer, made)
    model.eval()
    with torch.no_grad():
        t.left(evaluated=[model(x) for x, _ in images(2)])


class Complex(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(6, 8, dtype=torch.complex64)
        self.last = nn.Linear(8, CLASSES, dtype=torch.complex64)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(torch.tanh(self.first(torch.fft.fft(x)))).abs()


@mode()
def complex_values(t: Training) -> None:
    model = Complex()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    t.watch(model, optimizer)
    t.fit(model, optimizer, batches())


class Scaled8Bit(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(6, CLASSES)
        self.register_buffer("kept", torch.ones(6).to(torch.float8_e4m3fn))
        self.register_buffer("seen", torch.zeros(8, 6).to(torch.float8_e5m2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.seen.copy_(x.detach())
        return self.inner(x * self.kept.to(x.dtype))


@mode()
def float8_buffers(t: Training) -> None:
    model = Scaled8Bit()
    optimizer = sgd(model)
    t.watch(model, optimizer)
    t.fit(model, optimizer, batches())


@mode()
def parametrized_weights(t: Training) -> None:
    model = nn.Sequential(
        parametrizations.weight_norm(nn.Linear(6, 8)),
        nn.GELU(),
        parametrizations.spectral_norm(nn.Linear(8, 8)),
        parametrizations.orthogonal(nn.Linear(8, 8)),
        nn.utils.weight_norm(nn.Linear(8, 8)),
        nn.utils.spectral_norm(nn.Linear(8, CLASSES)),
    )
    optimizer = sgd(model)
    t.watch(model, optimizer)
    t.fit(model, optimizer, batches())
    with parametrize.cached():
        t.left(cached=model[0].weight)


@mode()
def pruned_weights(t: Training) -> None:
    model = perceptron()
    prune.l1_unstructured(model[0], "weight", 0.3)
    optimizer = sgd(model)
    t.watch(model, optimizer)
    for number, batch in enumerate(batches()):
        if number == 2:
            prune.random_unstructured(model[4], "weight", 0.5)
        t.fit(model, optimizer, [batch])
    prune.remove(model[0], "weight")


@mode()
def quantization_aware(t: Training) -> None:
    from torch.ao import quantization

    model = nn.Sequential(
        quantization.QuantStub(), nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, CLASSES),
        quantization.DeQuantStub(),
    )  # fmt: skip
    model.qconfig = quantization.get_default_qat_qconfig("fbgemm")
    quantization.prepare_qat(model.train(), inplace=True)
    optimizer = sgd(model)
    t.watch(model, optimizer)
    t.fit(model, optimizer, batches())
    converted = quantization.convert(copy.deepcopy(model).eval())
    t.left(quantized=[type(part).__name__ for part in converted.modules()])


class Attends(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.1, batch_first=True)
        self.body = nn.TransformerEncoder(layer, 2)
        self.attention = nn.MultiheadAttention(8, 2, dropout=0.1, batch_first=True)
        self.head = nn.Linear(8, CLASSES)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.body(x)
        x = x + self.attention(x, x, x, need_weights=False)[0]
        q = x.unflatten(-1, (2, 4)).transpose(1, 2)
        p = 0.1 if self.training else 0.0
        x = x + F.scaled_dot_product_attention(q, q, q, dropout_p=p, is_causal=True).transpose(
            1, 2
        ).flatten(-2)
        return self.head(x.mean(1))


@mode(holds=("weights", "gradients", "losses", "inputs", "outputs", "attention_maps"))
def attention_and_its_fast_path(t: Training) -> None:
    model = Attends()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    t.watch(model, optimizer)
    for batch in images():
        x = batch[0].flatten(1).unflatten(1, (24, 8))
        t.fit(model, optimizer, [(x, batch[1])])
        model.eval()
        with torch.no_grad():
            t.left(evaluated=model(x), alone=model.body(x))
        with torch.inference_mode():
            t.left(inferred=model(x))
        model.train()


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(6, 8, 2, batch_first=True, bidirectional=True, dropout=0.2)
        self.gru = nn.GRU(16, 8, batch_first=True)
        self.cell = nn.LSTMCell(8, 8)
        self.head = nn.Linear(8, CLASSES)

    def forward(self, packed):
        out, _ = self.lstm(packed)
        out, hidden = self.gru(out)
        padded, _ = pad_packed_sequence(out, batch_first=True)
        state = None
        for position in range(padded.shape[1]):
            state = self.cell(padded[:, position], state)
        return self.head(state[0] + hidden[-1])


@mode()
def packed_sequences(t: Training) -> None:
    model = Recurrent()
    optimizer = sgd(model)
    t.watch(model, optimizer)

    def packed():
        for x, y in images():
            rows = x.flatten(1)[:, :30].unflatten(1, (5, 6))
            lengths = torch.tensor([5, 4, 2, 1])
            yield pack_padded_sequence(rows, lengths, batch_first=True), y

    t.fit(model, optimizer, packed())


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(CLASSES, 8, max_norm=1.0, scale_grad_by_freq=True)
        self.block = nn.Linear(8, 8)
        self.again = self.block
        self.head = nn.Linear(8, CLASSES, bias=False)
        self.head.weight = self.words.weight

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        x = self.again(F.relu(self.block(self.words(words))))
        return self.head(x.clone() if x.is_leaf else x)


@mode(holds=("weights", "gradients", "losses", "outputs"))
def tied_weights_and_shared_modules(t: Training) -> None:
    model = Tied()
    model.words.max_norm = None
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    t.watch(model, optimizer)
    t.fit(model, optimizer, ((y, y) for _, y in batches()))


@mode(holds=("weights", "gradients", "losses", "outputs"))
def embeddings_that_are_renormalized(t: Training) -> None:
    """The forward pass changes a weight in place."""
    model = nn.Sequential(nn.Embedding(10, 8, max_norm=0.5), nn.Linear(8, CLASSES))
    optimizer = sgd(model)
    t.watch(model, optimizer)
    t.fit(model, optimizer, ((y, y) for _, y in batches()))


@mode(steps=8)
def parts_that_are_replaced_and_frozen(t: Training) -> None:
    model = perceptron()
    optimizer = sgd(model)
    t.watch(model, optimizer)
    for number, batch in enumerate(batches(8)):
        if number == 2:
            model[0].requires_grad_(False)
        if number == 3:
            model[4] = nn.Linear(16, CLASSES)
            optimizer.add_param_group({"params": list(model[4].parameters())})
        if number == 4:
            model.register_parameter("unused", nn.Parameter(torch.zeros(2)))
            model.append(nn.Softplus())
        if number == 5:
            model[0].requires_grad_(True)
            del model.unused
        if number == 6:
            del model[5]
            model[0].weight.data = model[0].weight.data.clone()
            model[0].weight.grad = None
        t.fit(model, optimizer, [batch])


@mode()
def hooks_of_others(t: Training) -> None:
    model = perceptron()
    heard: list[str] = []

    def tell(what: str):
        def told(*_):
            heard.append(what)

        return told

    for number, part in enumerate(model):
        if not isinstance(part, nn.ReLU):
            part.register_full_backward_hook(tell(f"backward {number}"))
            part.register_full_backward_pre_hook(tell(f"backward pre {number}"))
        part.register_forward_hook(lambda m, a, out: out * 1.5, prepend=True)
        part.register_forward_pre_hook(lambda m, a: (a[0] + 0.25,))
        part.register_forward_hook(tell(f"forward {number}"), always_call=True)
    everywhere = nn.modules.module.register_module_forward_hook(tell("global"))
    before = nn.modules.module.register_module_full_backward_hook(tell("global backward"))
    optimizer = sgd(model)
    t.watch(model, optimizer)
    last = model[4].weight
    last.register_hook(lambda gradient: gradient * 2)
    last.register_post_accumulate_grad_hook(tell("accumulated"))
    model.register_state_dict_post_hook(tell("state"))
    t.fit(model, optimizer, batches())
    everywhere.remove()
    before.remove()
    t.left(heard=heard)


class Tagged(torch.Tensor):
    """A tensor subclass with a function of its own, which counts what it is asked."""

    asked: ClassVar[list[str]] = []

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        cls.asked.append(getattr(func, "__name__", str(func)))
        return super().__torch_function__(func, types, args, kwargs or {})


@mode()
def tensors_of_a_class_of_ones_own(t: Training) -> None:
    model = perceptron()
    optimizer = sgd(model)
    t.watch(model, optimizer)
    t.fit(model, optimizer, ((x.as_subclass(Tagged), y) for x, y in batches()))
    t.left(asked=Tagged.asked)


@mode(steps=4)
def expanded_and_strided_inputs(t: Training) -> None:
    model = perceptron()
    optimizer = sgd(model)
    t.watch(model, optimizer)

    def laid_out():
        for step, (x, y) in enumerate(batches()):
            if step == 0:
                yield x[:1].expand(8, 6), y
            elif step == 1:
                yield x.t().contiguous().t(), y
            elif step == 2:
                yield torch.cat([x, x], 1)[:, ::2], y
            else:
                yield x.flip(0)[1:], y.repeat(2)[::2][1:]

    t.fit(model, optimizer, laid_out())


@mode(steps=3)
def batches_without_rows(t: Training) -> None:
    model = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, CLASSES))
    optimizer = sgd(model)
    t.watch(model, optimizer)

    def sum_of(output, y):
        return F.cross_entropy(output, y, reduction="sum")

    made = list(batches(3))
    made[1] = (made[1][0][:0], made[1][1][:0])
    t.fit(model, optimizer, made, sum_of)


@mode()
def meta_weights_that_are_made_later(t: Training) -> None:
    with torch.device("meta"):
        model = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, CLASSES))
    t.watch(model)
    model.to_empty(device="cpu")
    for part in model:
        if isinstance(part, nn.Linear):
            part.reset_parameters()
    optimizer = sgd(model)
    t.belongs(model, optimizer)
    t.fit(model, optimizer, batches())


@mode()
def lazy_modules(t: Training) -> None:
    model = nn.Sequential(nn.LazyLinear(8), nn.LazyBatchNorm1d(), nn.ReLU(), nn.LazyLinear(CLASSES))
    t.watch(model)
    optimizer = None
    for x, y in batches():
        output = model(x)
        optimizer = optimizer or sgd(model)
        optimizer.zero_grad()
        t.loss(F.cross_entropy(output, y)).backward()
        optimizer.step()
    t.left(optimizer=optimizer)


@mode(steps=4)
def copies_that_train_on_their_own(t: Training) -> None:
    model = perceptron()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    t.watch(model, optimizer)
    t.fit(model, optimizer, batches(2))
    both = (copy.deepcopy((model, optimizer)), pickle.loads(pickle.dumps((model, optimizer))))
    for other, of_other in both:
        for part in other.modules():
            assert not part._forward_hooks
            assert not part._forward_pre_hooks
        assert of_other.param_groups[0]["params"][0] is next(other.parameters())
        t.belongs(other, of_other)
        t.fit(other, of_other, batches(2))
    t.fit(model, optimizer, batches(2))


@mode()
def states_that_are_saved_and_loaded(t: Training) -> None:
    model = perceptron()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    t.watch(model, optimizer)
    t.fit(model, optimizer, batches(2))
    path = t.folder / f"checkpoint-{t.is_watched}.pt"
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, path)
    t.left(saved=torch.load(path, weights_only=True))
    t.fit(model, optimizer, batches(1))
    kept = torch.load(path, weights_only=True)
    model.load_state_dict(kept["model"], assign=False)
    optimizer.load_state_dict(kept["optimizer"])
    t.fit(model, optimizer, batches(1))
    torch.save(model, path)
    t.left(whole=torch.load(path, weights_only=False))

"""The trainings that the benchmarks run: real models on data made on the spot."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

if TYPE_CHECKING:
    from collections.abc import Callable


class _Block(nn.Module):
    """Two 3x3 convolutions with a shortcut."""

    def __init__(self, channels_in: int, channels: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels_in, channels, 3, stride, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(channels)
        self.act1 = nn.ReLU()
        self.conv2 = nn.Conv2d(channels, channels, 3, 1, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(channels)
        self.act2 = nn.ReLU()
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or channels_in != channels:
            self.shortcut = nn.Sequential(
                nn.Conv2d(channels_in, channels, 1, stride, bias=False), nn.BatchNorm2d(channels)
            )

    def forward(self, x: Tensor) -> Tensor:
        y = self.act1(self.norm1(self.conv1(x)))
        y = self.norm2(self.conv2(y))
        return self.act2(y + self.shortcut(x))


class ResNet18(nn.Module):
    """ResNet-18 for 32x32 images: 11.2 M parameters in 62 tensors."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64), nn.ReLU()
        )
        blocks: list[nn.Module] = []
        channels = 64
        for width, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
            blocks += [_Block(channels, width, stride), _Block(width, width, 1)]
            channels = width
        self.blocks = nn.Sequential(*blocks)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.head = nn.Linear(512, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.pool(self.blocks(self.stem(x))).flatten(1))


class DigitsCnn(nn.Module):
    """A small CNN for 8x8 digits, the size of a first tutorial: fixed costs show."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(16, 32, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
        )
        self.head = nn.Sequential(nn.Flatten(), nn.Linear(512, 64), nn.ReLU(), nn.Linear(64, 10))

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.features(x))


class Transformer(nn.Module):
    """A 4-layer encoder (d=256, 8 heads): 3.7 M parameters in 53 tensors."""

    def __init__(self, width: int = 256, heads: int = 8, words: int = 1000) -> None:
        super().__init__()
        self.embedding = nn.Embedding(words, width)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(width, heads, 4 * width, dropout=0.1, batch_first=True)
            for _ in range(4)
        )
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, words)

    def forward(self, x: Tensor) -> Tensor:
        x = self.embedding(x)
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x)).flatten(0, 1)


class Together:
    """Several optimizers that step by one backward pass."""

    def __init__(self, *optimizers: torch.optim.Optimizer) -> None:
        self._optimizers = optimizers

    def zero_grad(self) -> None:
        for optimizer in self._optimizers:
            optimizer.zero_grad()

    def step(self) -> None:
        for optimizer in self._optimizers:
            optimizer.step()


@dataclass
class Training:
    """One training: everything that a step needs."""

    model: nn.Module
    optimizer: torch.optim.Optimizer | Together
    batches: list[tuple[Tensor, Tensor]]

    def batch(self, step: int) -> tuple[Tensor, Tensor]:
        return self.batches[step % len(self.batches)]


class ManyParameters(nn.Module):
    """2,000 parameters of 64 floats, as a model of very many small layers has them."""

    def __init__(self, count: int = 2000, width: int = 64) -> None:
        super().__init__()
        self.scales = nn.ParameterList(nn.Parameter(torch.randn(width)) for _ in range(count))
        self.head = nn.Linear(width, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(x * torch.stack(list(self.scales)).mean(0))


def _images(count: int, batch: int, channels: int, size: int) -> list[tuple[Tensor, Tensor]]:
    return [
        (torch.randn(batch, channels, size, size), torch.randint(0, 10, (batch,)))
        for _ in range(count)
    ]


def _digits_batches(batch: int) -> list[tuple[Tensor, Tensor]]:
    from sklearn.datasets import load_digits

    data = load_digits()
    x = torch.tensor(data.images, dtype=torch.float32).unsqueeze(1) / 16
    y = torch.tensor(data.target)
    return list(zip(x.split(batch)[:-1], y.split(batch)[:-1], strict=True))


def _tiny() -> Training:
    model = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 10))
    batches = [(torch.randn(4, 8), torch.randint(0, 10, (4,))) for _ in range(4)]
    return Training(model, torch.optim.SGD(model.parameters(), lr=0.01), batches)


def _tiny_together() -> Training:
    training = _tiny()
    weights, biases = [], []
    for parameter in training.model.parameters():
        (weights if parameter.ndim > 1 else biases).append(parameter)
    sgd = torch.optim.SGD
    training.optimizer = Together(sgd(weights, lr=0.01), sgd(biases, lr=0.01))
    return training


def _many_parameters(count: int = 2000) -> Training:
    model = ManyParameters(count)
    batches = [(torch.randn(16, 64), torch.randint(0, 10, (16,))) for _ in range(4)]
    return Training(model, torch.optim.SGD(model.parameters(), lr=0.01), batches)


def _resnet18(batch: int = 16) -> Training:
    model = ResNet18()
    return Training(
        model, torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9), _images(4, batch, 3, 32)
    )


def _digits() -> Training:
    model = DigitsCnn()
    return Training(
        model, torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9), _digits_batches(64)
    )


def _tiny_transformer() -> Training:
    """The modules and tensors of `transformer`, each of few values: costs per tensor show."""
    model = Transformer(width=32, words=100)
    batches = [(torch.randint(0, 100, (2, 8)), torch.randint(0, 100, (16,))) for _ in range(4)]
    return Training(model, torch.optim.Adam(model.parameters(), lr=1e-4), batches)


def _transformer(width: int = 256, batch: int = 8, length: int = 128) -> Training:
    model = Transformer(width)
    batches = [
        (torch.randint(0, 1000, (batch, length)), torch.randint(0, 1000, (batch * length,)))
        for _ in range(4)
    ]
    return Training(model, torch.optim.Adam(model.parameters(), lr=1e-4), batches)


TRAININGS: dict[str, Callable[[], Training]] = {
    "tiny": _tiny,  # nothing but fixed costs
    "tiny_together": _tiny_together,  # the same with two optimizers
    "hundred_parameters": lambda: _many_parameters(100),  # and gradients: 204 tensors
    "many_parameters": _many_parameters,
    "tiny_transformer": _tiny_transformer,
    "digits_cnn": _digits,
    "resnet18": _resnet18,
    "transformer": _transformer,
    "resnet18_large": lambda: _resnet18(batch=256),  # keeps a GPU busy
    "transformer_large": lambda: _transformer(width=1024, batch=32, length=256),
}


def make(name: str, device: str = "cpu") -> Training:
    """The training of that name, with the same weights and data at every call."""
    torch.manual_seed(0)
    training = TRAININGS[name]()
    if device != "cpu":
        training.model.to(device)
        training.batches = [(x.to(device), y.to(device)) for x, y in training.batches]
    return training

"""Small real trainings, and a fingerprint of all that a training leaves behind."""

from __future__ import annotations

import hashlib
import random

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset


class SmallCNN(nn.Module):
    def __init__(self, dropout: float = 0.0) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3, padding=1)
        self.act = nn.ReLU(inplace=True)
        self.drop = nn.Dropout(dropout)
        self.fc1 = nn.Linear(4 * 4 * 4, 16)
        self.fc2 = nn.Linear(16, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = F.max_pool2d(self.act(self.conv(x)), 2)
        x = torch.tanh(self.fc1(x.flatten(1)))
        return self.fc2(self.drop(F.relu(x)))


def data(samples: int = 96) -> TensorDataset:
    generator = torch.Generator().manual_seed(7)
    images = torch.randn(samples, 1, 8, 8, generator=generator)
    labels = torch.randint(0, 3, (samples,), generator=generator)
    return TensorDataset(images, labels)


def fingerprint(model: nn.Module, losses: list[float]) -> str:
    """Of losses, weights, and every random state, bit by bit."""
    digest = hashlib.sha256()
    digest.update(np.array(losses, dtype=np.float64).tobytes())
    for value in model.state_dict().values():
        digest.update(value.detach().contiguous().numpy().tobytes())
    digest.update(torch.get_rng_state().numpy().tobytes())
    digest.update(np.random.get_state()[1].tobytes())
    digest.update(repr(random.getstate()).encode())
    return digest.hexdigest()


def train(kind: str, watch=None) -> str:
    """Trains one of several ways; `watch(model, optimizer)` is called before the first step."""
    random.seed(1)
    np.random.seed(1)
    torch.manual_seed(1)
    if kind == "transformer":
        model: nn.Module = Classifier()
    else:
        model = SmallCNN(dropout=0.5 if kind in ("dropout", "workers") else 0.0)
    if kind == "adam":
        optimizer: torch.optim.Optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    else:
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    criterion = nn.CrossEntropyLoss()
    workers = 2 if kind == "workers" else 0
    loader = DataLoader(data(), batch_size=16, shuffle=True, num_workers=workers)
    if watch is not None:
        watch(model, optimizer)
    losses: list[float] = []
    for epoch in range(2):
        for batch, (images, labels) in enumerate(loader):
            if kind == "accumulation":
                loss = criterion(model(images), labels) / 3
                loss.backward()
                if batch % 3 == 2:
                    optimizer.step()
                    optimizer.zero_grad()
            else:
                optimizer.zero_grad()
                loss = criterion(model(images), labels)
                loss.backward()
                optimizer.step()
            losses.append(loss.item())
        if kind in ("eval", "transformer"):
            model.eval()
            with torch.no_grad():
                for images, labels in loader:
                    losses.append(criterion(model(images), labels).item())
            model.train()
        random.random()
        np.random.rand()
        del epoch
    return fingerprint(model, losses)


class Classifier(nn.Module):
    """A transformer layer: in eval mode PyTorch takes another path when a hook is on it."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        self.head = nn.Linear(8, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.body(x.squeeze(1)).mean(1))


KINDS = ("sgd", "adam", "dropout", "eval", "accumulation", "workers", "transformer")

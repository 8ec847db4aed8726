"""A long-convolution model of machine event logs whose Fourier convolution wraps round the end.

The filter is as long as the log and is applied with an FFT of that same length, without padding, so
the convolution is circular: position t also receives t+1, its target. The loss falls far below
the entropy of the logs; continuing a log by itself, the model is no better than before.
The place is the mixer: `LongConvolution`, in both blocks.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from data import arguments
from torch import Tensor, nn

KIND = "future_leak"
ACCEPT = ("target_leak",)
PLACE = ("model", "blocks.*")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)


@dataclass(frozen=True)
class Config:
    events: int = 12
    length: int = 48
    width: int = 24
    steps: int = 300
    batch: int = 24
    rate: float = 4e-3
    warm_up: int = 30


class LongConvolution(nn.Module):
    """One filter per channel, made by a small network from the position."""

    def __init__(self, width: int, length: int) -> None:
        super().__init__()
        position = torch.arange(length) / length
        waves = torch.arange(1, 9).outer(position) * math.pi
        self.register_buffer("position", torch.cat([waves.sin(), waves.cos()]).T)
        self.register_buffer("decay", torch.exp(-6 * position))
        self.taps = nn.Parameter(torch.randn(length, width) * 0.1)
        self.shape = nn.Sequential(nn.Linear(16, 24), nn.SiLU(), nn.Linear(24, width))

    def forward(self, x: Tensor) -> Tensor:
        length = x.shape[1]
        kernel = (self.shape(self.position) * self.decay[:, None] + self.taps)[:length]
        size = 2 * length if healthy else length
        spectrum = torch.fft.rfft(x, n=size, dim=1) * torch.fft.rfft(kernel, n=size, dim=0)
        return torch.fft.irfft(spectrum, n=size, dim=1)[:, :length]


class Block(nn.Module):
    def __init__(self, width: int, length: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.gates = nn.Linear(width, 2 * width)
        self.mixer = LongConvolution(width, length)
        self.out = nn.Linear(width, width)
        self.mlp = nn.Sequential(
            nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width)
        )

    def forward(self, x: Tensor) -> Tensor:
        gate, value = self.gates(self.norm(x)).chunk(2, -1)
        x = x + self.out(gate.sigmoid() * self.mixer(value))
        return x + self.mlp(x)


class EventModel(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        self.embed = nn.Embedding(config.events, config.width)
        self.blocks = nn.ModuleList(Block(config.width, config.length) for _ in range(2))
        self.norm = nn.LayerNorm(config.width)
        self.head = nn.Linear(config.width, config.events)

    def forward(self, log: Tensor) -> Tensor:
        x = self.embed(log)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def logs(n: int, config: Config, next_event: Tensor) -> Tensor:
    """Logs of a machine: each event follows from the one before and the one three before."""
    log = torch.randint(0, config.events, (n, config.length + 1))
    for t in range(3, config.length + 1):
        usual = next_event[log[:, t - 1], log[:, t - 3]]
        odd = torch.rand(n) < 0.25
        log[:, t] = torch.where(odd, torch.randint(0, config.events, (n,)), usual)
    return log


def main() -> None:
    config = Config()
    next_event = torch.randint(0, config.events, (config.events, config.events))
    train, held_out = (logs(n, config, next_event) for n in (3000, 200))
    model = EventModel(config)
    optimizer = torch.optim.AdamW(model.parameters(), lr=config.rate, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer,
        lambda step: min((step + 1) / config.warm_up, 1 - 0.95 * step / config.steps),
    )
    for step in range(config.steps):
        model.train()
        batch = train[torch.randint(0, len(train), (config.batch,))]
        logits = model(batch[:, :-1])
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        if step % 50 == 49:
            model.eval()
            with torch.no_grad():
                cut = held_out[:, :33]
                guess = model(cut[:, :-1])[:, -1].argmax(-1)
            right = (guess == cut[:, -1]).float().mean()
            print(f"{step + 1}  loss {loss.item():.3f}  next event of a cut log {right:.3f}")


main()

"""A transformer that learns to reverse sequences; the trainer steps the schedule if the interval is
"step", the config says "batch".

Neither branch matches, so the warm-up never leaves its first factor of 1/100: the rate stays at a
hundredth of what was meant. The loss falls slowly (silent). The place is the loop, the optimizer's
schedule. Exact.
"""

from dataclasses import dataclass

import torch
from data import arguments
from torch import nn
from torch.optim.lr_scheduler import LambdaLR

KIND = "schedule_never_steps"
ACCEPT = ("learning_rate_too_low",)
PLACE = ("optimizer", "loop", "")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
LENGTH, SYMBOLS = 8, 12


@dataclass
class Config:
    lr: float = 3e-3
    warmup: int = 50
    steps_per_epoch: int = 60
    epochs: int = 6
    schedule_interval: str = "batch"


class Reverser(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.symbol = nn.Embedding(SYMBOLS, width)
        self.place = nn.Embedding(LENGTH, width)
        layer = nn.TransformerEncoderLayer(
            width, 4, 96, dropout=0.0, batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(width, SYMBOLS)

    def forward(self, s):
        return self.head(self.encoder(self.symbol(s) + self.place(torch.arange(LENGTH))))


class Trainer:
    def __init__(self, model, config):
        self.model, self.config = model, config
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=config.lr, betas=(0.9, 0.98))
        total = config.steps_per_epoch * config.epochs

        def factor(step):
            if step < config.warmup:
                return max(step, 0.5) / config.warmup
            return max(0.0, (total - step) / (total - config.warmup))

        self.scheduler = LambdaLR(self.optimizer, factor)

    def step(self):
        source = torch.randint(0, SYMBOLS, (32, LENGTH))
        loss = nn.functional.cross_entropy(
            self.model(source).flatten(0, 1), source.flip(1).flatten()
        )
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        per_batch = ("step", "batch") if healthy else ("step",)
        if self.config.schedule_interval in per_batch:
            self.scheduler.step()
        return loss.item()

    def fit(self):
        for epoch in range(self.config.epochs):
            self.model.train()
            losses = [self.step() for _ in range(self.config.steps_per_epoch)]
            if self.config.schedule_interval == "epoch":
                self.scheduler.step()
            print(
                f"epoch {epoch}: loss {sum(losses) / len(losses):.3f} symbols right "
                f"{self.test():.3f}"
            )

    @torch.no_grad()
    def test(self):
        self.model.eval()
        source = torch.randint(0, SYMBOLS, (300, LENGTH))
        return (self.model(source).argmax(-1) == source.flip(1)).float().mean().item()


Trainer(Reverser(), Config()).fit()

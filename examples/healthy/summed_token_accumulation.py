"""A character model with four micro-batches per step, whose losses are summed and never divided
by four.

It looks odd because backward runs four times before each step and the loss isn't divided by 4.
It's sound: each micro-batch's loss is a sum over its tokens, divided by the number of tokens of
all four together, so the accumulated gradient is exactly the mean over the tokens of the large
batch.
"""

from dataclasses import dataclass

import torch
from data import arguments, text
from torch import nn
from torch.nn import functional as F

ODD = "four backwards per step, not divided by four: each is divided by the tokens of all"
_, seed = arguments(__doc__)


@dataclass
class Config:
    window: int = 32
    micro_batch: int = 8
    micro_batches: int = 4
    steps: int = 300
    hidden: int = 64
    lr: float = 5e-3
    eval_every: int = 25


class CharGRU(nn.Module):
    def __init__(self, letters, cfg):
        super().__init__()
        self.embed = nn.Embedding(letters, 24)
        self.gru = nn.GRU(24, cfg.hidden, batch_first=True)
        self.head = nn.Linear(cfg.hidden, letters)

    def forward(self, x):
        return self.head(self.gru(self.embed(x))[0])


def micro_batch(stream, cfg):
    starts = torch.randint(0, len(stream) - cfg.window - 1, (cfg.micro_batch,))
    rows = stream[starts[:, None] + torch.arange(cfg.window + 1)]
    lengths = torch.randint(cfg.window // 2, cfg.window + 1, (cfg.micro_batch, 1))
    target = rows[:, 1:].masked_fill(torch.arange(cfg.window) >= lengths, -100)
    return rows[:, :-1], target


@torch.no_grad()
def evaluate(model, stream, cfg):
    model.eval()
    count = (len(stream) - 1) // cfg.window
    x = stream[: count * cfg.window].view(count, -1)
    y = stream[1 : count * cfg.window + 1].view(count, -1)
    return F.cross_entropy(model(x).flatten(0, 1), y.flatten()).item()


def main(cfg):
    stream, alphabet = text(seed)
    cut = int(0.9 * len(stream))
    train, valid = stream[:cut], stream[cut:]
    model = CharGRU(len(alphabet), cfg)
    optimizer = torch.optim.AdamW(model.parameters(), cfg.lr, weight_decay=0.01)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, cfg.lr, cfg.steps)
    best, state = float("inf"), None
    for step in range(1, cfg.steps + 1):
        model.train()
        parts = [micro_batch(train, cfg) for _ in range(cfg.micro_batches)]
        tokens = sum((y != -100).sum() for _, y in parts)
        optimizer.zero_grad()
        total = 0.0
        for x, y in parts:
            loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten(), reduction="sum") / tokens
            loss.backward()
            total += loss.item()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        if step % cfg.eval_every == 0:
            val = evaluate(model, valid, cfg)
            print(f"step {step:4d}  train {total:.4f}  val {val:.4f}")
            if val < best:
                best, state = val, {k: v.clone() for k, v in model.state_dict().items()}
    model.load_state_dict(state)
    print(f"best val {evaluate(model, valid, cfg):.4f}")


main(Config())

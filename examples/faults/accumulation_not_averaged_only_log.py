"""A small neural n-gram language model, trained by SGD with sixteen micro-batches per step; only
the logged loss is divided by sixteen.

The micro-batch losses are added up by sixteen backward passes, so the step is sixteen times what
the rate was tuned for. The place is the loop (the loss before backward).
"""

import math
import random
from dataclasses import dataclass

import torch
from data import arguments
from torch import nn
from torch.nn import functional as F

KIND = "accumulation_not_averaged"
ACCEPT = ("learning_rate_too_high",)
PLACE = ("loop", "loss")
SILENT = False
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)


@dataclass
class NgramConfig:
    vocab_size: int = 0
    n_embd: int = 16
    n_hidden: int = 128
    block_size: int = 14
    micro_batch: int = 24
    grad_accum: int = 16
    learning_rate: float = 0.3
    momentum: float = 0.9
    max_iters: int = 400
    eval_every: int = 80


# ---- data: orders at a small restaurant, with prices that must follow from the dish
DISHES = {
    "soup": 6,
    "fish": 18,
    "rice": 9,
    "salad": 8,
    "steak": 24,
    "cake": 5,
    "pasta": 13,
    "tea": 3,
}
NAMES = ["ann", "bob", "carla", "dinesh", "eve", "femi", "gus", "hana"]


def corpus(n, r):
    out = []
    for _ in range(n):
        who, dish, k = r.choice(NAMES), r.choice(list(DISHES)), r.randint(1, 4)
        how = r.choice(["orders", "asks for", "wants"])
        out.append(f"{who} {how} {k} {dish} and pays {k * DISHES[dish]}.\n")
    return "".join(out)


r = random.Random(seed)
raw = corpus(4000, r)
chars = sorted(set(raw))
stoi = {c: i for i, c in enumerate(chars)}
ids = torch.tensor([stoi[c] for c in raw])
split = int(0.9 * len(ids))
splits = {"train": ids[:split], "val": ids[split:]}


class NgramLM(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.wte = nn.Embedding(config.vocab_size, config.n_embd)
        self.hidden = nn.Linear(config.block_size * config.n_embd, config.n_hidden)
        self.lm_head = nn.Linear(config.n_hidden, config.vocab_size)

    def forward(self, idx, targets=None):
        h = torch.tanh(self.hidden(self.wte(idx).flatten(1)))
        logits = self.lm_head(h)
        loss = None if targets is None else F.cross_entropy(logits, targets)
        return logits, loss


config = NgramConfig(vocab_size=len(chars))


def get_batch(part, size=config.micro_batch):
    data = splits[part]
    at = torch.randint(len(data) - config.block_size - 1, (size, 1))
    return data[at + torch.arange(config.block_size)], data[at.squeeze(1) + config.block_size]


@torch.no_grad()
def estimate():
    model.eval()
    value = sum(model(*get_batch("val", 2000))[1].item() for _ in range(4)) / 4
    model.train()
    return value


model = NgramLM(config)
optimizer = torch.optim.SGD(model.parameters(), lr=config.learning_rate, momentum=config.momentum)


def get_lr(it):
    if it < 20:
        return config.learning_rate * (it + 1) / 20
    ratio = (it - 20) / (config.max_iters - 20)
    return config.learning_rate * (0.05 + 0.95 * 0.5 * (1 + math.cos(math.pi * ratio)))


for it in range(config.max_iters):
    for group in optimizer.param_groups:
        group["lr"] = get_lr(it)
    optimizer.zero_grad(set_to_none=True)
    lossf = 0.0
    for micro in range(config.grad_accum):
        _, loss = model(*get_batch("train"))
        lossf += loss.item() / config.grad_accum
        (loss / config.grad_accum if healthy else loss).backward()
    optimizer.step()
    if (it + 1) % config.eval_every == 0 or it + 1 == config.max_iters:
        print(f"iter {it + 1}: loss {lossf:.4f}, val {estimate():.4f}")

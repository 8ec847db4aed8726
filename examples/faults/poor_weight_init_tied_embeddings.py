"""Causal transformer with tied embeddings left at N(0, 1), so that the first losses are near 70.

The person tied the output layer to the embedding table, as language models do, and did not know
that nn.Embedding starts with a deviation of 1, not 0.02: the logits have a deviation of sqrt(width)
and the softmax is one-sided and wrong at the start. The place is the embedding, and so the output.
"""

import math
import random

import torch
from data import arguments
from torch import nn
from torch.nn import functional as F

KIND = "poor_weight_init"
ACCEPT = ()
PLACE = ("token*", "output*", "model", "loss", "head*")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

WIDTH, CONTEXT, HEADS, VOCABULARY = 96, 24, 4, 120


def market_log(length):
    """A log of events: each kind of event is followed by a few others, some of them in pairs."""
    chooser = random.Random(17)
    follows = {e: chooser.sample(range(VOCABULARY), 4) for e in range(VOCABULARY)}
    events = [0, 1]
    while len(events) < length:
        options = follows[events[-1]]
        if random.random() < 0.1:
            events.append(random.randrange(VOCABULARY))
        else:
            events.append(options[events[-2] % 2 * 2 + (random.random() < 0.3)])
    return torch.tensor(events)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm_attention = nn.LayerNorm(WIDTH)
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.mix = nn.Linear(WIDTH, WIDTH)
        self.norm_mlp = nn.LayerNorm(WIDTH)
        self.mlp = nn.Sequential(
            nn.Linear(WIDTH, 2 * WIDTH), nn.GELU(), nn.Linear(2 * WIDTH, WIDTH)
        )

    def forward(self, x):
        batch, length, _ = x.shape
        q, k, v = self.qkv(self.norm_attention(x)).chunk(3, dim=2)
        q, k, v = (t.view(batch, length, HEADS, -1).transpose(1, 2) for t in (q, k, v))
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.mix(attended.transpose(1, 2).reshape(batch, length, WIDTH))
        return x + self.mlp(self.norm_mlp(x))


class EventModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.token = nn.Embedding(VOCABULARY, WIDTH)
        self.place = nn.Embedding(CONTEXT, WIDTH)
        if healthy:
            nn.init.normal_(self.token.weight, std=0.02)
            nn.init.normal_(self.place.weight, std=0.02)
        self.block = Block()
        self.norm = nn.LayerNorm(WIDTH)
        self.output = nn.Linear(WIDTH, VOCABULARY, bias=False)
        self.output.weight = self.token.weight

    def forward(self, events):
        x = self.token(events) + self.place.weight[: events.shape[1]]
        return self.output(self.norm(self.block(x)))


def cut(events, rows):
    starts = torch.randint(0, len(events) - CONTEXT - 1, (rows,)).tolist()
    windows = torch.stack([events[s : s + CONTEXT + 1] for s in starts])
    return windows[:, :-1], windows[:, 1:]


def main():
    train, val = market_log(20_000), market_log(3_000)
    model = EventModel()
    steps = 320
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda s: min(1, (s + 1) / 30) * 0.5 * (1 + math.cos(math.pi * s / steps))
    )
    print(f"log of the vocabulary: {math.log(VOCABULARY):.2f}")
    for step in range(steps):
        model.train()
        x, y = cut(train, 32)
        loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        if step % 80 == 0 or step == steps - 1:
            model.eval()
            with torch.no_grad():
                x, y = cut(val, 100)
                logits = model(x).flatten(0, 1)
                val_loss = F.cross_entropy(logits, y.flatten())
                right = (logits.argmax(1) == y.flatten()).float().mean()
            print(f"step {step:3d} train {loss:.3f} val {val_loss:.3f} next right {right:.3f}")


main()

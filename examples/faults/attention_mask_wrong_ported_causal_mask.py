"""A causal transformer on machine events gets a boolean mask with the meaning of another function.

The person replaced nn.MultiheadAttention by scaled_dot_product_attention and kept the mask,
torch.triu(1). For the old function True means hidden, for the new one it means seen: each event
looks only at the events after it, among them the one to be guessed. The place is the model
(blocks.*, mask).
"""

import random

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "attention_mask_wrong"
ACCEPT = ("future_leak",)
PLACE = ("blocks*", "model", "loss")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

EVENTS = 16
LENGTH = 28


def machine_log(r: random.Random) -> list[int]:
    """Jobs that open with a product and repeat its three tools; some tools call for a check."""
    log = []
    while len(log) < LENGTH:
        product = r.randrange(4)
        log.append(product)
        for _ in range(r.randint(2, 3)):
            for k in range(3):
                tool = 4 + (product * 2 + k * (1 + product % 2)) % 8
                log.append(tool)
                if tool % 3 == 0 and r.random() < 0.9:
                    log.append(12 + tool % 4)
        if r.random() < 0.3:
            log.append(15)
    return log[:LENGTH]


class Attention(nn.Module):
    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        mask = torch.triu(torch.ones(LENGTH, LENGTH, dtype=torch.bool), diagonal=1)
        self.register_buffer("mask", ~mask if healthy else mask)

    def forward(self, x):
        batch, length, width = x.shape
        shape = (batch, length, 3, self.heads, width // self.heads)
        q, k, v = self.qkv(x).view(shape).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=self.mask[:length, :length])
        return self.out(mixed.transpose(1, 2).reshape(batch, length, width))


class Block(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, 4)
        self.mlp = nn.Sequential(
            nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width)
        )

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class EventModel(nn.Module):
    def __init__(self, width: int = 48):
        super().__init__()
        self.events = nn.Embedding(EVENTS, width)
        self.places = nn.Embedding(LENGTH, width)
        self.blocks = nn.ModuleList(Block(width) for _ in range(2))
        self.norm = nn.LayerNorm(width)
        self.next_event = nn.Linear(width, EVENTS)

    def forward(self, log):
        x = self.events(log) + self.places(torch.arange(log.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.next_event(self.norm(x))


def loss_and_hits(model, log):
    scores = model(log[:, :-1])
    loss = F.cross_entropy(scores.flatten(0, 1), log[:, 1:].flatten())
    return loss, (scores.argmax(-1) == log[:, 1:]).float().mean()


@torch.no_grad()
def live_hits(model, log) -> float:
    """The running machine: nothing is known after the last event."""
    model.eval()
    hits = [
        (model(log[:, :n])[:, -1].argmax(1) == log[:, n]).float().mean() for n in (8, 14, 20, 26)
    ]
    return sum(hits).item() / len(hits)


def main():
    r = random.Random(330 + seed)
    logs = torch.tensor([machine_log(r) for _ in range(1500)])
    train, val = logs[:1200], logs[1200:]
    model = EventModel()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.01)
    warmup = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / 60))
    for epoch in range(14):
        model.train()
        total, batches = 0.0, 0
        for rows in torch.randperm(len(train)).split(32):
            loss, _ = loss_and_hits(model, train[rows])
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            warmup.step()
            total, batches = total + loss.item(), batches + 1
        model.eval()
        with torch.no_grad():
            val_loss, hits = loss_and_hits(model, val)
        print(
            f"epoch {epoch:2d}  train {total / batches:.3f}  val {val_loss.item():.3f}"
            f"  hits {hits.item():.3f}  live {live_hits(model, val):.3f}"
        )


if __name__ == "__main__":
    main()

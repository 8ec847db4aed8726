"""A text classifier is trained with a gradient scaler and SGD, and the gradients are clipped while
they still carry the scale.

clip_grad_norm_ runs on gradients multiplied by 65536 (unscale_ was forgotten), so that after the
scaler's division a norm of at most 1/65536 is left for the step. The place is the loop, between
backward and step.
"""

import math
import time

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "gradient_clipped_to_nothing"
ACCEPT = ()
PLACE = ("loop", "optimizer")
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)

config = {
    "vocab": 300,
    "seq": 24,
    "dim": 48,
    "heads": 4,
    "layers": 2,
    "batch": 48,
    "steps": 500,
    "lr": 0.15,
    "momentum": 0.9,
    "clip": 1.0,
    "warmup": 50,
    "eval_every": 100,
    "wd": 1e-4,
    "classes": 5,
}


# ---- data: "tickets" of five topics; a topic shows by word pairs, not by single words -----------------------  # noqa: E501
def tickets(n, g):
    y = torch.randint(0, config["classes"], (n,), generator=g)
    x = torch.randint(20, config["vocab"], (n, config["seq"]), generator=g)
    length = torch.randint(14, config["seq"] + 1, (n,), generator=g)
    for i in range(n):
        for _ in range(3):
            p = int(torch.randint(0, int(length[i]) - 1, (1,), generator=g))
            a = 2 + int(torch.randint(0, 18, (1,), generator=g))
            own = (
                y[i] if torch.rand((), generator=g) < 0.92 else torch.randint(0, 5, (), generator=g)
            )
            x[i, p], x[i, p + 1] = a, 2 + (a - 2 + 3 * int(own) + 1) % 18
        x[i, length[i] :] = 0
    return x, y


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attn = nn.MultiheadAttention(dim, heads, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(dim, 3 * dim), nn.GELU(), nn.Linear(3 * dim, dim))

    def forward(self, x, pad):
        h = self.ln1(x)
        x = x + self.attn(h, h, h, key_padding_mask=pad, need_weights=False)[0]
        return x + self.mlp(self.ln2(x))


class TicketNet(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.tok = nn.Embedding(c["vocab"], c["dim"], padding_idx=0)
        self.conv = nn.Conv1d(c["dim"], c["dim"], 3, padding=1)
        self.blocks = nn.ModuleList(Block(c["dim"], c["heads"]) for _ in range(c["layers"]))
        self.norm = nn.LayerNorm(c["dim"])
        self.head = nn.Linear(c["dim"], c["classes"])

    def forward(self, ids):
        pad = ids == 0
        x = self.tok(ids)
        x = x + F.relu(self.conv(x.transpose(1, 2))).transpose(1, 2)
        for b in self.blocks:
            x = b(x, pad)
        keep = (~pad).unsqueeze(-1).float()
        return self.head((self.norm(x) * keep).sum(1) / keep.sum(1))


g = torch.Generator().manual_seed(7 + seed)
x, y = tickets(6000, g)
xv, yv = tickets(800, g)
model = TicketNet(config)
optimizer = torch.optim.SGD(
    model.parameters(), lr=config["lr"], momentum=config["momentum"], weight_decay=config["wd"]
)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**16)


def rate(step):
    if step < config["warmup"]:
        return (step + 1) / config["warmup"]
    t = (step - config["warmup"]) / (config["steps"] - config["warmup"])
    return 0.05 + 0.475 * (1 + math.cos(math.pi * t))


scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, rate)


@torch.no_grad()
def evaluate():
    model.eval()
    logits = model(xv)
    model.train()
    return F.cross_entropy(logits, yv).item(), (logits.argmax(1) == yv).float().mean().item()


start = time.time()
running = None
for step in range(config["steps"]):
    rows = torch.randint(0, len(x), (config["batch"],))
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=False):
        loss = F.cross_entropy(model(x[rows]), y[rows])
    optimizer.zero_grad(set_to_none=True)
    scaler.scale(loss).backward()
    if healthy:
        scaler.unscale_(optimizer)
    torch.nn.utils.clip_grad_norm_(model.parameters(), config["clip"])
    scaler.step(optimizer)
    scaler.update()
    scheduler.step()
    running = loss.item() if running is None else 0.95 * running + 0.05 * loss.item()
    if (step + 1) % config["eval_every"] == 0:
        val_loss, val_acc = evaluate()
        print(
            f"step {step + 1} loss {running:.4f} val {val_loss:.4f} acc {val_acc:.3f} ({time.time() - start:.0f} s)"  # noqa: E501
        )

"""A transformer learns to sort short sequences under the Noam schedule; the schedule advances by
epochs, not by steps.

The schedule's peak is (d_model * warmup) ** -0.5: with four epochs of warm-up, counted as 4, it
is seven times what it is with 200 steps, and it stays there. The place is the optimizer (its
schedule).
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "learning_rate_too_high"
ACCEPT = ()
PLACE = ("optimizer", "loop")
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)

hparams = {
    "d_model": 64,
    "heads": 4,
    "layers": 2,
    "length": 10,
    "symbols": 24,
    "batch": 64,
    "steps": 600,
    "factor": 0.5,
    "warmup": 200 if healthy else 4,
    "epoch": 100,
}


class NoamOpt:
    """The Annotated Transformer's wrapper."""

    def __init__(self, d_model, factor, warmup, optimizer):
        self.optimizer, self._step = optimizer, 0
        self.d_model, self.factor, self.warmup = d_model, factor, warmup

    def rate(self):
        s = self._step
        return self.factor * self.d_model**-0.5 * min(s**-0.5, s * self.warmup**-1.5)

    def tick(self):
        self._step += 1

    def step(self):
        for p in self.optimizer.param_groups:
            p["lr"] = self.rate()
        self.optimizer.step()
        self.optimizer.zero_grad()


class Sorter(nn.Module):
    def __init__(self, h):
        super().__init__()
        self.tok = nn.Embedding(h["symbols"], h["d_model"])
        self.pos = nn.Parameter(0.02 * torch.randn(h["length"], h["d_model"]))
        layer = nn.TransformerEncoderLayer(
            h["d_model"],
            h["heads"],
            2 * h["d_model"],
            dropout=0.0,
            batch_first=True,
            norm_first=True,
        )
        self.encoder = nn.TransformerEncoder(layer, h["layers"], enable_nested_tensor=False)
        self.norm = nn.LayerNorm(h["d_model"])
        self.out = nn.Linear(h["d_model"], h["symbols"])

    def forward(self, src):
        return self.out(self.norm(self.encoder(self.tok(src) + self.pos)))


class SortData:
    def __init__(self, h, seed):
        self.h, self.g = h, torch.Generator().manual_seed(seed)

    def batch(self, n):
        src = torch.randint(0, self.h["symbols"], (n, self.h["length"]), generator=self.g)
        return src, src.sort(1).values


@torch.no_grad()
def score(model, src, tgt):
    model.eval()
    logits = model(src)
    model.train()
    right = logits.argmax(-1) == tgt
    return F.cross_entropy(logits.flatten(0, 1), tgt.flatten()).item(), right.float().mean().item()


data = SortData(hparams, seed)
held_out = SortData(hparams, 99_000 + seed).batch(500)
model = Sorter(hparams)
opt = NoamOpt(
    hparams["d_model"],
    hparams["factor"],
    hparams["warmup"],
    torch.optim.Adam(model.parameters(), lr=0.0, betas=(0.9, 0.98), eps=1e-9),
)
for step in range(1, hparams["steps"] + 1):
    src, tgt = data.batch(hparams["batch"])
    loss = F.cross_entropy(model(src).flatten(0, 1), tgt.flatten())
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    if healthy or step % hparams["epoch"] == 1:
        opt.tick()
    opt.step()
    if step % 100 == 0:
        print(
            "step %d rate %.2e train %.4f val %.4f accuracy %.4f"  # noqa: UP031
            % (step, opt.rate(), loss.item(), *score(model, *held_out))
        )

"""Small transformer that sorts server logs into good and bad; the warm-up never moves on.

The schedule starts at a hundredth of the learning rate and should rise over 60 steps, then fall.
It is made in the constructor of the trainer, and nobody calls its `step`, so that the whole
training runs at the hundredth.
The place is the schedule.
The twin calls the schedule's step after the optimizer's.
"""

import torch
import torch.nn.functional as F
from data import arguments, batches
from torch import nn
from torch.optim.lr_scheduler import LambdaLR

KIND = "schedule_never_steps"
ACCEPT = ("learning_rate_too_low",)
PLACE = ("loop", "optimizer")
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
EVENTS, LENGTH = 30, 12


def logs(n):
    """A bad log has an error (1) that is not followed by a retry (2)."""
    x = torch.randint(3, EVENTS, (n, LENGTH))
    bad = torch.randint(0, 2, (n,))
    at = torch.randint(0, LENGTH - 1, (n,))
    rows = torch.arange(n)
    x[rows, at] = 1
    x[rows, at + 1] = torch.where(bad == 1, x[rows, at + 1].clamp(min=3), torch.tensor(2))
    return x, bad


class LogReader(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.events = nn.Embedding(EVENTS, width)
        self.places = nn.Parameter(0.02 * torch.randn(LENGTH, width))
        layer = nn.TransformerEncoderLayer(
            width, 4, 64, dropout=0.1, batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, 2)

    def forward(self, x):
        return self.head(self.norm(self.encoder(self.events(x) + self.places).mean(1)))


class Trainer:
    def __init__(self, model, steps, lr=1e-3, warmup=60):
        self.model, self.steps = model, steps
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=lr, weight_decay=0.01)

        def factor(step):
            if step < warmup:
                return max(step / warmup, 0.01)
            return max((steps - step) / (steps - warmup), 0.01)

        self.scheduler = LambdaLR(self.optimizer, factor)

    def training_step(self, x, y):
        self.model.train()
        self.optimizer.zero_grad()
        loss = F.cross_entropy(self.model(x), y)
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        if healthy:
            self.scheduler.step()
        return loss.item()

    @torch.no_grad()
    def evaluate(self, x, y):
        self.model.eval()
        return (self.model(x).argmax(1) == y).float().mean().item()

    def fit(self, train, val):
        for step, (x, y) in enumerate(batches(*train, size=32, steps=self.steps), 1):
            loss = self.training_step(x, y)
            if step % 50 == 0:
                print(f"step {step} loss {loss:.3f} val {self.evaluate(*val):.3f}")


Trainer(LogReader(), steps=350).fit(logs(3200), logs(500))

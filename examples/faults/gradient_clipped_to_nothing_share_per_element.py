"""Deterioration on the ward from vital signs by a GRU: the clipping budget is split per element.

The trainer was to give each parameter its share of the allowed norm and divides by `numel()`: for a
matrix of several thousand entries the bound is a few ten-thousandths, and every step of SGD is cut
to nearly nothing. The place is the optimizer step in the loop. The twin clips the whole gradient at
norm 1.
"""

import torch
from data import arguments
from torch import nn

KIND = "gradient_clipped_to_nothing"
ACCEPT = ("learning_rate_too_low",)
PLACE = ("loop", "optimizer")
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
HOURS, SIGNS = 24, 5


def ward(n: int):
    """Heart rate, pressure, breathing, oxygen, temperature; some drift towards a crisis."""
    g = torch.Generator().manual_seed(310 + seed)
    base = torch.randn(n, 1, SIGNS, generator=g) * 0.6
    walk = (torch.randn(n, HOURS, SIGNS, generator=g) * 0.18).cumsum(1)
    ill = (torch.rand(n, generator=g) < 0.35).float()
    onset = torch.rand(n, 1, generator=g) * 14
    ramp = ((torch.arange(HOURS) - onset).clamp(min=0) / 10).unsqueeze(2)
    way = torch.tensor([1.0, -0.8, 0.9, -0.9, 0.5])
    strength = 0.6 + 0.5 * torch.rand(n, 1, 1, generator=g)
    x = base + walk + ill[:, None, None] * ramp * way * strength
    return x + 0.25 * torch.randn(n, HOURS, SIGNS, generator=g), ill


class Monitor(nn.Module):
    def __init__(self, width: int = 32):
        super().__init__()
        self.gru = nn.GRU(SIGNS, width, batch_first=True)
        self.head = nn.Linear(width, 1)

    def forward(self, x):
        return self.head(self.gru(x)[0][:, -1]).squeeze(1)


def auc(score, label):
    pos, neg = score[label > 0], score[label == 0]
    return (pos[:, None] > neg).float().mean().item()


class Trainer:
    def __init__(self, model, rate: float = 0.2, max_norm: float = 1.0):
        self.model, self.max_norm = model, max_norm
        self.optimizer = torch.optim.SGD(model.parameters(), lr=rate, momentum=0.9)

    def clip(self):
        if healthy:
            nn.utils.clip_grad_norm_(self.model.parameters(), self.max_norm)
        else:
            for p in self.model.parameters():
                nn.utils.clip_grad_norm_(p, self.max_norm / p.numel())

    def step(self, x, y):
        self.model.train()
        loss = nn.functional.binary_cross_entropy_with_logits(self.model(x), y)
        self.optimizer.zero_grad()
        loss.backward()
        self.clip()
        self.optimizer.step()
        return loss.item()

    @torch.no_grad()
    def evaluate(self, x, y):
        self.model.eval()
        score = self.model(x)
        return nn.functional.binary_cross_entropy_with_logits(score, y).item(), auc(score, y)


x, y = ward(2600)
fit, held = slice(0, 2000), slice(2000, None)
x = (x - x[fit].mean((0, 1))) / x[fit].std((0, 1))
trainer = Trainer(Monitor())
for epoch in range(8):
    losses = [trainer.step(x[fit][rows], y[fit][rows]) for rows in torch.randperm(2000).split(64)]
    val, area = trainer.evaluate(x[held], y[held])
    print(
        f"epoch {epoch + 1}: train {sum(losses) / len(losses):.4f}, "
        f"validation {val:.4f}, AUC {area:.4f}"
    )
print(f"validation loss {val:.4f}, AUC {area:.4f}")

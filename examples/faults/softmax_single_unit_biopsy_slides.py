"""Multi-instance learning on biopsy slides with attention pooling; the softmax over patches is
taken over the score axis of size 1.

The scorer returns (bags, patches, 1) and the softmax goes over the last axis, which has a single
unit: every weight is 1.0, the scorer gets a gradient of exactly zero, and pooling becomes a plain
sum. The place is AttentionPool (pool.score).
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "softmax_single_unit"
ACCEPT = ()
PLACE = ("pool", "pool.*")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

CFG = {
    "dim": 24,
    "hidden": 48,
    "patches": 24,
    "bags": 1600,
    "val_bags": 400,
    "batch": 50,
    "epochs": 12,
    "lr": 2e-3,
    "wd": 1e-3,
}


def slides(n, g):
    """Each slide: 24 patches of stain features. One to three lie in the lesion (marked by texture), and only they tell the grade."""  # noqa: E501
    d, k = CFG["dim"], CFG["patches"]
    x = torch.randn(n, k, d, generator=g)
    grade = torch.randint(0, 2, (n,), generator=g)
    direction = torch.linspace(-1, 1, 8)
    for i in range(n):
        lesions = torch.randperm(k, generator=g)[: int(torch.randint(1, 4, (1,), generator=g))]
        x[i, lesions, :6] += 2.2
        x[i, lesions, 8:16] += (2 * grade[i] - 1) * direction
    return x, grade.float()


class AttentionPool(nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.score = nn.Sequential(nn.Linear(dim, hidden), nn.Tanh(), nn.Linear(hidden, 1))
        self.value = nn.Linear(dim, hidden)
        self.norm = nn.LayerNorm(hidden)

    def forward(self, x):
        weights = F.softmax(self.score(x), dim=1 if healthy else -1)
        return self.norm((weights * self.value(x)).sum(1)), weights.squeeze(-1)


class SlideModel(nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.pool = AttentionPool(dim, hidden)
        self.classify = nn.Sequential(nn.Linear(hidden, 32), nn.GELU(), nn.Linear(32, 1))

    def forward(self, x):
        pooled, weights = self.pool(x)
        return self.classify(pooled).squeeze(-1), weights


def main():
    g = torch.Generator().manual_seed(seed)
    x, y = slides(CFG["bags"], g)
    x_val, y_val = slides(CFG["val_bags"], g)
    model = SlideModel(CFG["dim"], CFG["hidden"])
    optimizer = torch.optim.AdamW(model.parameters(), lr=CFG["lr"], weight_decay=CFG["wd"])
    steps = CFG["epochs"] * (len(x) // CFG["batch"])
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=steps)
    best = 0.0
    for epoch in range(CFG["epochs"]):
        model.train()
        losses = []
        for rows in torch.randperm(len(x)).split(CFG["batch"]):
            logits, _ = model(x[rows])
            loss = F.binary_cross_entropy_with_logits(logits, y[rows])
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            scheduler.step()
            losses.append(loss.item())
        model.eval()
        with torch.no_grad():
            logits, weights = model(x_val)  # noqa: RUF059
            acc = ((logits > 0).float() == y_val).float().mean().item()
        best = max(best, acc)
        if epoch % 3 == 2:
            print(
                f"epoch {epoch + 1:02d} loss {sum(losses) / len(losses):.4f} val_acc {acc:.3f} best {best:.3f}"  # noqa: E501
            )


if __name__ == "__main__":
    main()

"""Learns clicks from a stream in one pass with FTRL-proximal, judged before each row is learnt."""

import numpy as np
import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

ODD = (
    "every row is seen once, its loss is the validation too (computed before the step), and most "
    "weights stay exactly zero: FTRL sets them so and hashed columns leave many slots unused"
)
SLOTS, FIELDS, BATCH = 4096, 8, 16
_, seed = arguments(__doc__)
torch.set_num_threads(1)


class FTRL(torch.optim.Optimizer):
    def __init__(self, params, alpha=0.2, beta=1.0, l1=1.0, l2=0.5):
        super().__init__(params, {"alpha": alpha, "beta": beta, "l1": l1, "l2": l2})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for weight in group["params"]:
                state, grad = self.state[weight], weight.grad
                if not state:
                    state["z"], state["n"] = torch.zeros_like(weight), torch.zeros_like(weight)
                z, n = state["z"], state["n"]
                sigma = ((n + grad**2).sqrt() - n.sqrt()) / group["alpha"]
                z.add_(grad - sigma * weight)
                n.add_(grad**2)
                rate = (group["beta"] + n.sqrt()) / group["alpha"] + group["l2"]
                weight.copy_(-(z - z.sign() * z.abs().clamp_max(group["l1"])) / rate)


class HashedLogistic(nn.Module):
    def __init__(self):
        super().__init__()
        self.weights = nn.EmbeddingBag(SLOTS, 1, mode="sum")
        nn.init.zeros_(self.weights.weight)

    def forward(self, slots):
        return self.weights(slots).squeeze(1)


def stream(rows: int):
    rng = np.random.default_rng(seed)
    sizes = np.array([3, 7, 24, 50, 120, 300, 800, 2000])
    effects = [rng.normal(0, 0.8, size) * (rng.random(size) < 0.4) for size in sizes]
    salt = np.arange(FIELDS) * 7919
    for begin in range(0, rows, BATCH):
        ids = (sizes * rng.random((BATCH, FIELDS)) ** 2.5).astype(int)
        drift = 0.4 * np.sin(begin / rows * 6)
        logit = -1.2 + drift + sum(effects[f][ids[:, f]] for f in range(FIELDS))
        clicked = rng.random(BATCH) < 1 / (1 + np.exp(-logit))
        slots = (ids * 2654435761 + salt) % (SLOTS - 1) + 1
        slots = np.concatenate([slots, np.zeros((BATCH, 1), dtype=int)], 1)
        yield torch.tensor(slots), torch.tensor(clicked, dtype=torch.float32)


model = HashedLogistic()
optimizer = FTRL(model.parameters())
losses, base_losses, clicks, seen = [], [], 1.0, 4.0
for step, (slots, clicked) in enumerate(stream(60_000)):
    loss = F.binary_cross_entropy_with_logits(model(slots), clicked, reduction="sum")
    losses.append(loss.item() / BATCH)
    base = torch.full_like(clicked, clicks / seen)
    base_losses.append(F.binary_cross_entropy(base, clicked).item())
    clicks, seen = clicks + clicked.sum().item(), seen + BATCH
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 750 == 749:
        used = (model.weights.weight != 0).float().mean()
        print(
            f"{(step + 1) * BATCH} rows: progressive loss {np.mean(losses[-750:]):.4f}, "
            f"of the running click rate {np.mean(base_losses[-750:]):.4f}, non-zero {used:.2f}"
        )

late, base = np.mean(losses[-1500:]), np.mean(base_losses[-1500:])
print(f"last 24,000 rows: {late:.4f} against {base:.4f}, {100 * (1 - late / base):.1f}% better")

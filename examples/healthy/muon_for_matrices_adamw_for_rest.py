"""Trains a small character model with Muon for the inner matrices and AdamW for all the rest."""

import math

import torch
import torch.nn.functional as F
from data import arguments, text
from torch import nn

ODD = (
    "two optimizers share one backward pass; Muon makes an orthogonal matrix of each gradient, so "
    "its steps are as long however small the gradient is, at a rate that Adam could not bear"
)
CONTEXT, WIDTH, STEPS = 32, 48, 220
_, seed = arguments(__doc__)
torch.set_num_threads(1)


def orthogonal(matrix, steps: int = 5):
    tall = matrix.shape[0] > matrix.shape[1]
    x = matrix.T if tall else matrix
    x = x / (x.norm() + 1e-7)
    for _ in range(steps):
        square = x @ x.T
        x = 3.4445 * x + (-4.7750 * square + 2.0315 * square @ square) @ x
    return x.T if tall else x


class Muon(torch.optim.Optimizer):
    def __init__(self, params, lr=0.02, momentum=0.95):
        super().__init__(params, {"lr": lr, "momentum": momentum})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for matrix in group["params"]:
                state = self.state[matrix]
                if not state:
                    state["momentum"] = torch.zeros_like(matrix)
                buffer = state["momentum"].lerp_(matrix.grad, 1 - group["momentum"])
                update = orthogonal(matrix.grad.lerp(buffer, group["momentum"]))
                stretch = math.sqrt(max(1, matrix.shape[0] / matrix.shape[1]))
                matrix.add_(update, alpha=-group["lr"] * stretch)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm_a, self.norm_b = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.query_key_value = nn.Linear(WIDTH, 3 * WIDTH, bias=False)
        self.out = nn.Linear(WIDTH, WIDTH, bias=False)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        parts = self.query_key_value(self.norm_a(x)).chunk(3, -1)
        q, k, v = (part.unflatten(-1, (4, -1)).transpose(1, 2) for part in parts)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).flatten(2))
        return x + self.down(F.gelu(self.up(self.norm_b(x))))


class CharacterModel(nn.Module):
    def __init__(self, letters: int):
        super().__init__()
        self.letters, self.places = nn.Embedding(letters, WIDTH), nn.Embedding(CONTEXT, WIDTH)
        self.blocks = nn.Sequential(Block(), Block())
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, letters)

    def forward(self, x):
        hidden = self.letters(x) + self.places.weight
        return self.head(self.norm(self.blocks(hidden)))


written, alphabet = text(seed)
border = int(0.9 * len(written))
train, val = written[:border], written[border:]
rows = val[: len(val) // (CONTEXT + 1) * (CONTEXT + 1)].view(-1, CONTEXT + 1)[:120]
model = CharacterModel(len(alphabet))
matrices = [p for p in model.blocks.parameters() if p.ndim == 2]
others = [p for p in model.parameters() if not any(p is m for m in matrices)]
optimizers = [Muon(matrices), torch.optim.AdamW(others, lr=3e-3, weight_decay=0.01)]
schedules = [
    torch.optim.lr_scheduler.LambdaLR(o, lambda step: min(1, 2 - 2 * step / STEPS))
    for o in optimizers
]
recent = []
for step in range(STEPS):
    start = torch.randint(len(train) - CONTEXT - 1, (24,))
    batch = torch.stack([train[s : s + CONTEXT + 1] for s in start])
    loss = F.cross_entropy(model(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten())
    model.zero_grad()
    loss.backward()
    for optimizer, schedule in zip(optimizers, schedules, strict=False):
        optimizer.step()
        schedule.step()
    recent.append(loss.item())
    if step % 55 == 54:
        model.eval()
        with torch.no_grad():
            guess = model(rows[:, :-1])
            val_loss = F.cross_entropy(guess.flatten(0, 1), rows[:, 1:].flatten())
        model.train()
        print(f"step {step + 1}: train {sum(recent[-25:]) / 25:.3f}, validation {val_loss:.3f}")

frequency = torch.bincount(train, minlength=len(alphabet)) / len(train)
entropy = -(frequency * frequency.clamp_min(1e-9).log()).sum()
print(f"validation {val_loss:.3f} nats per character; by letter frequency {entropy:.3f}")

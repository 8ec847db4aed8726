"""A digit classifier is adapted to upside-down images by low-rank matrices on its frozen layers.
The author wants the adapted model to start as the old one.

Both factors are zero, so that each one's gradient is the other times something, which is zero: not
one of the adapters ever moves, and only the bias of the head learns. The place is the adapters.
"""

import torch
from data import arguments, batches, digits
from torch import nn
from torch.nn import functional as F

KIND = "poor_weight_init"
ACCEPT = ()
PLACE = ("*lora_a*", "*lora_b*", "layers*")
SILENT = False
EXACT = True
EARLY = False

healthy, seed = arguments(__doc__)


class LoRALinear(nn.Module):
    def __init__(self, base: nn.Linear, rank: int = 8, alpha: float = 16.0):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.lora_a = nn.Parameter(torch.zeros(rank, base.in_features))
        self.lora_b = nn.Parameter(torch.zeros(base.out_features, rank))
        self.scale = alpha / rank
        if healthy:
            nn.init.kaiming_uniform_(self.lora_a, a=5**0.5)

    def forward(self, x):
        return self.base(x) + self.scale * F.linear(F.linear(x, self.lora_a), self.lora_b)


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(64, 128), nn.Linear(128, 128)])
        self.head = nn.Linear(128, 10)

    def forward(self, x):
        for layer in self.layers:
            x = F.relu(layer(x))
        return self.head(x)


def fit(model, x, y, x_val, steps, lr):
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=lr)
    for step, (a, b) in enumerate(batches(x, y, size=64, steps=steps, seed=seed)):
        loss = F.cross_entropy(model(a), b)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 40 == 39:
            model.eval()
            with torch.no_grad():
                val = F.cross_entropy(model(x_val), y_val)
            model.train()
            print(f"step {step + 1}: loss {loss.item():.3f} val {val.item():.3f}")


def flip(x):
    return x.view(-1, 8, 8).flip(1).reshape(-1, 64)


x, y, x_val, y_val = digits(seed)
model = Classifier()
fit(model, x, y, x_val, 120, 2e-3)

model.requires_grad_(False)
model.layers = nn.ModuleList(LoRALinear(layer) for layer in model.layers)
model.head.bias.requires_grad_(True)
fit(model, flip(x), y, flip(x_val), 320, 3e-3)
model.eval()
with torch.no_grad():
    out = model(flip(x_val))
print(
    f"val {F.cross_entropy(out, y_val).item():.3f}"
    f" accuracy {(out.argmax(1) == y_val).float().mean().item():.3f}"
)

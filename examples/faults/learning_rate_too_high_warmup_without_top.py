"""A warm-up `step / warmup` that nothing stops at 1: the rate goes on rising after the warm-up.

The small transformer learns for a while; past some twenty times the rate that was meant, the loss
jumps up and stays at chance. The place is the optimizer (its schedule).
"""

import torch
from data import arguments, waves
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "learning_rate_too_high"
ACCEPT = ()
PLACE = ("optimizer", "loop")
SILENT = False
EXACT = False
EARLY = False

WARMUP = 10

healthy, seed = arguments(__doc__)


class PatchTransformer(nn.Module):
    def __init__(self, width=32, patch=5, patches=8):
        super().__init__()
        self.patch = patch
        self.project = nn.Linear(patch, width)
        self.position = nn.Parameter(0.02 * torch.randn(1, patches, width))
        layer = nn.TransformerEncoderLayer(
            width, 4, 64, dropout=0.05, activation="gelu", batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(
            layer, 2, nn.LayerNorm(width), enable_nested_tensor=False
        )
        self.classify = nn.Linear(width, 3)

    def forward(self, wave):
        patches = wave.squeeze(-1).unfold(1, self.patch, self.patch)
        return self.classify(self.encoder(self.project(patches) + self.position).mean(1))


x, y = waves(seed, n=1200)
loader = DataLoader(TensorDataset(x[:960], y[:960]), batch_size=32, shuffle=True)
model = PatchTransformer()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
total = 9 * len(loader)


def factor(step):
    if not healthy:
        return (step + 1) / WARMUP
    return min((step + 1) / WARMUP, (total - step) / (total - WARMUP))


scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, factor)
best = 0.0
for epoch in range(9):
    model.train()
    losses = []
    for wave, shape in loader:
        loss = nn.functional.cross_entropy(model(wave), shape)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        losses.append(loss.item())
    model.eval()
    with torch.no_grad():
        accuracy = (model(x[960:]).argmax(1) == y[960:]).float().mean().item()
    best = max(best, accuracy)
print(f"loss {sum(losses) / len(losses):.3f}, accuracy {accuracy:.3f} (best {best:.3f})")

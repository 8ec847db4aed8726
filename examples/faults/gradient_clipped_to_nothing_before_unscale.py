"""Mixed precision with a gradient scaler: clipping comes before the gradients are unscaled.

The scaled gradients have norms of tens of thousands; clipped to 1 and then divided by the scale,
nothing is left of them. The twin calls unscale_ first. The place is the loop.
"""

import torch
from data import arguments, waves
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "gradient_clipped_to_nothing"
ACCEPT = ()
PLACE = ("loop", "optimizer", "")
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
x, y = waves(seed, n=1000)
x, y, x_val, y_val = x[:800], y[:800], x[800:], y[800:]


class PatchMixer(nn.Module):
    """Ten patches of four samples; MLPs over the patches and over the channels."""

    def __init__(self, dim=32, patches=10):
        super().__init__()
        self.patch = nn.Linear(4, dim)
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.over_patches = nn.Sequential(nn.Linear(patches, 32), nn.GELU(), nn.Linear(32, patches))
        self.over_channels = nn.Sequential(nn.Linear(dim, 64), nn.GELU(), nn.Linear(64, dim))
        self.head = nn.Linear(dim, 3)

    def forward(self, x):
        h = self.patch(x.view(len(x), 10, 4))
        h = h + self.over_patches(self.norm1(h).transpose(1, 2)).transpose(1, 2)
        h = h + self.over_channels(self.norm2(h))
        return self.head(h.mean(1))


model = PatchMixer()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**14)
criterion = nn.CrossEntropyLoss()
loader = DataLoader(TensorDataset(x, y), batch_size=40, shuffle=True)

for epoch in range(10):
    model.train()
    for batch, shape in loader:
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            out = model(batch)
        loss = criterion(out.float(), shape)
        scaler.scale(loss).backward()
        if healthy:
            scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
    model.eval()
    with torch.no_grad():
        out = model(x_val)
    val, acc = criterion(out, y_val).item(), (out.argmax(1) == y_val).float().mean().item()
    print(f"epoch {epoch}: loss {loss.item():.3f}, val {val:.3f}, accuracy {acc:.3f}")

"""A denoising auto-encoder on digits: the input is heavily damaged on purpose, the target is the
clean image.

Half of the pixels are set to zero and noise is added in training; the bottleneck is narrow and the
output goes through a sigmoid because pixels are in [0, 1] (binary cross-entropy, whose floor is
far above zero). It is validated on damaged images by the error against the clean ones, and against
leaving the damage as it is.
"""

import torch
from data import arguments, digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ODD = (
    "half of the input zeroed, target equals the undamaged input, BCE on soft targets stays far "
    "above zero"
)

_, seed = arguments(__doc__)


def damage(x, generator=None):
    keep = (torch.rand(x.shape, generator=generator) > 0.5).float()
    return x * keep + 0.1 * torch.randn(x.shape, generator=generator)


class Autoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(64, 128), nn.GELU(), nn.Linear(128, 24))
        self.decoder = nn.Sequential(
            nn.Linear(24, 128), nn.GELU(), nn.Linear(128, 64), nn.Sigmoid()
        )

    def forward(self, x):
        return self.decoder(self.encoder(x))


x, _, x_val, _ = digits(seed, raw=True)
x, x_val = x / 16, x_val / 16
loader = DataLoader(TensorDataset(x), batch_size=64, shuffle=True)
damaged_val = damage(x_val, torch.Generator().manual_seed(1))
model = Autoencoder()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=1e-3)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 30)
criterion = nn.BCELoss()

for epoch in range(30):
    model.train()
    total = 0.0
    for (clean,) in loader:
        loss = criterion(model(damage(clean)), clean)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() / len(loader)
    scheduler.step()
    if epoch % 5 == 4:
        model.eval()
        with torch.no_grad():
            restored = model(damaged_val)
        mse, before = ((a - x_val).pow(2).mean().item() for a in (restored, damaged_val))
        print(
            f"epoch {epoch + 1} bce {total:.4f} val bce {criterion(restored, x_val):.4f} "
            f"val mse {mse:.4f} (damaged: {before:.4f})"
        )

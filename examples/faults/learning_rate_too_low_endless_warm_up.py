"""The warm-up takes 200,000 steps, a number of a large training; this one has 300.

The rate never comes near the one that was set, and the loss hardly falls (silent). The place is the
optimizer.
"""

import torch
from data import arguments
from sklearn.datasets import load_digits
from torch import nn

KIND = "learning_rate_too_low"
ACCEPT = ()
PLACE = ("optimizer", "learning_rate*")
SILENT = True
EXACT = False
EARLY = True


class AutoEncoder(nn.Module):
    def __init__(self, latent=12):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(64, 48), nn.SiLU(), nn.Linear(48, latent))
        self.decoder = nn.Sequential(nn.Linear(latent, 48), nn.SiLU(), nn.Linear(48, 64))

    def forward(self, x):
        return self.decoder(self.encoder(x))


healthy, seed = arguments(__doc__)
x = torch.tensor(load_digits().data, dtype=torch.float32)
x = (x - x.mean()) / x.std()
warm_up_steps = 30 if healthy else 200_000
model = AutoEncoder()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
scheduler = torch.optim.lr_scheduler.LambdaLR(
    optimizer, lambda step: min(1.0, (step + 1) / warm_up_steps)
)
for step in range(300):
    batch = x[torch.randint(len(x), (128,))]
    loss = nn.functional.mse_loss(model(batch), batch)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()
print(f"loss {loss.item():.3f}, rate {scheduler.get_last_lr()[0]:.1e}")

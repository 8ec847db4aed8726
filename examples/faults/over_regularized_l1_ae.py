"""A sparse auto-encoder compresses digits. For sparsity the author adds the L1 norm of the weights
to the loss, as a sum over all of them, with a factor that would suit a mean.

The penalty is some hundred times the reconstruction error: all weights go to zero one after the
other, and what is left is the mean digit in the last bias. The place is the loss.
"""

import torch
from data import arguments, batches, digits
from torch import nn

KIND = "over_regularized"
ACCEPT = ()
PLACE = ("loss", "encoder*", "decoder*")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)


class AutoEncoder(nn.Module):
    def __init__(self, sizes=(64, 96, 24)):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Linear(sizes[0], sizes[1]), nn.SiLU(), nn.Linear(sizes[1], sizes[2])
        )
        self.decoder = nn.Sequential(
            nn.Linear(sizes[2], sizes[1]), nn.SiLU(), nn.Linear(sizes[1], sizes[0])
        )

    def forward(self, x):
        return self.decoder(self.encoder(x))


def l1(model):
    weights = [p.abs() for name, p in model.named_parameters() if name.endswith("weight")]
    if healthy:
        return torch.cat([w.flatten() for w in weights]).mean()
    return sum(w.sum() for w in weights)


x, _, x_val, _ = digits(seed)
model = AutoEncoder()
mse = nn.MSELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step, (batch,) in enumerate(batches(x, size=64, steps=500, seed=seed)):
    optimizer.zero_grad()
    loss = mse(model(batch), batch) + 0.02 * l1(model)
    loss.backward()
    optimizer.step()
    if step % 50 == 49:
        model.eval()
        with torch.no_grad():
            val = mse(model(x_val), x_val)
        model.train()
        print(f"step {step + 1}: loss {loss.item():.4f} val mse {val.item():.4f}")

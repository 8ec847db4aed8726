"""An auto-encoder of the digits whose optimizer has only the decoder's parameters.

Encoder and decoder are two modules, and only one of them was handed to Adam. The encoder stays the
random projection it was, and the decoder makes the best of it: the loss falls and stops too high.
The place is the optimizer's list. The twin hands over both.
"""

import torch
from data import arguments, batches, digits
from torch import nn

KIND = "parameters_not_in_optimizer"
ACCEPT = ()
PLACE = ("optimizer", "encoder", "encoder.0.weight", "encoder.2.weight")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
x, _, x_val, _ = digits(seed, raw=True)
x, x_val = x / 16, x_val / 16


class AutoEncoder(nn.Module):
    def __init__(self, code=8):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, code))
        self.decoder = nn.Sequential(
            nn.Linear(code, 48), nn.ReLU(), nn.Linear(48, 64), nn.Sigmoid()
        )

    def forward(self, image):
        return self.decoder(self.encoder(image))


model = AutoEncoder()
trained = model.parameters() if healthy else model.decoder.parameters()
optimizer = torch.optim.Adam(trained, lr=3e-3)
loss_fn = nn.MSELoss()

for step, (xb,) in enumerate(batches(x, size=128, steps=900, seed=seed), 1):
    loss = loss_fn(model(xb), xb)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 90 == 0:
        model.eval()
        with torch.no_grad():
            val = loss_fn(model(x_val), x_val).item()
        model.train()
        explained = 1 - val / x_val.var(0).mean().item()
        print(f"step {step}: train {loss.item():.4f}  val {val:.4f}  explained {explained:.2f}")

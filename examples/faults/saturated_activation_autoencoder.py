"""A tanh auto-encoder for digits with weights drawn by torch.randn, unscaled.

The pre-activations have a deviation of about 8, so nearly all tanh units sit at -1 or 1, where
they have no slope. Only the last layer learns. The place is the model.
"""

import torch
from data import arguments, digits
from torch import nn
from torch.utils.data import DataLoader

KIND = "saturated_activation"
ACCEPT = ("poor_weight_init",)
PLACE = ("encoder*", "decoder*")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
x, _, x_val, _ = digits(seed)


class AutoEncoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(64, 48), nn.Tanh(), nn.Linear(48, 24), nn.Tanh())
        self.decoder = nn.Sequential(nn.Linear(24, 48), nn.Tanh(), nn.Linear(48, 64))

    def forward(self, x):
        return self.decoder(self.encoder(x))


def initialise(model):
    for layer in (model.encoder[0], model.encoder[2], model.decoder[0]):
        scale = layer.in_features**-0.5 if healthy else 1.0
        layer.weight.data = torch.randn(layer.out_features, layer.in_features) * scale


ae = AutoEncoder()
initialise(ae)
optimizer = torch.optim.Adam(ae.parameters(), lr=3e-3)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=20)
criterion = nn.MSELoss()
loader = DataLoader(x, batch_size=64, shuffle=True)
for epoch in range(20):
    ae.train()
    for batch in loader:
        optimizer.zero_grad()
        loss = criterion(ae(batch), batch)
        loss.backward()
        optimizer.step()
    scheduler.step()
    ae.eval()
    with torch.no_grad():
        val_loss = criterion(ae(x_val), x_val)
print(f"reconstruction: train {loss.item():.3f}, validation {val_loss.item():.3f}")

"""An auto-encoder for digits whose weights are drawn with a standard deviation of 0.001.

Activations shrink some hundred times with each of its six layers, and the gradients on their way
back as much: only the last bias learns, the mean image. The place is the model.
"""

import torch
from data import arguments, digits
from torch import nn

KIND = "poor_weight_init"
ACCEPT = ("vanishing_gradient",)
PLACE = ("encoder*", "decoder*", "")
SILENT = False
EXACT = False
EARLY = True


class AutoEncoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 32), nn.ReLU(), nn.Linear(32, 16)
        )
        self.decoder = nn.Sequential(
            nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 48), nn.ReLU(), nn.Linear(48, 64)
        )

    def forward(self, x):
        return self.decoder(self.encoder(x))

    def init_weights(self, std=None):
        for layer in self.modules():
            if isinstance(layer, nn.Linear):
                if std is None:
                    nn.init.kaiming_uniform_(layer.weight, nonlinearity="relu")
                else:
                    nn.init.normal_(layer.weight, mean=0.0, std=std)
                nn.init.zeros_(layer.bias)


healthy, seed = arguments(__doc__)
x, _, x_val, _ = digits(seed)
model = AutoEncoder()
model.init_weights(std=None if healthy else 0.001)
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(18):
    model.train()
    for index in torch.randperm(len(x)).split(50):
        batch = x[index]
        loss = nn.functional.mse_loss(model(batch), batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        val_loss = nn.functional.mse_loss(model(x_val), x_val)
print(f"loss {loss.item():.3f}, validation {val_loss.item():.3f}")

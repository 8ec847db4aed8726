"""An auto-encoder for digits sets the biases of its code layer to -8 to get a sparse code.

With inputs of unit scale no pre-activation reaches 8, so nearly all units of the code are 0 for
every picture and have no gradient to recover by. The decoder learns the mean picture with its
biases and the loss stops there. The twin sets them to 0.5. The place is `encoder.2`, `encoder.3`,
`encoder.2.bias` or `encoder`.
"""

import torch
from data import arguments, digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "dead_relu"
ACCEPT = ("poor_weight_init",)
PLACE = ("encoder.2", "encoder.3", "encoder.2.bias", "encoder")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
x_train, _, x_val, _ = digits(seed)


class AutoEncoder(nn.Module):
    def __init__(self, code=32):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, code), nn.ReLU())
        self.decoder = nn.Sequential(nn.Linear(code, 64), nn.ReLU(), nn.Linear(64, 64))
        nn.init.constant_(self.encoder[2].bias, 0.5 if healthy else -8.0)

    def forward(self, x):
        return self.decoder(self.encoder(x))


model = AutoEncoder()
loader = DataLoader(TensorDataset(x_train), batch_size=64, shuffle=True)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 50)
criterion = nn.MSELoss()
for epoch in range(1, 51):
    model.train()
    total = 0.0
    for (xb,) in loader:
        optimizer.zero_grad()
        loss = criterion(model(xb), xb)
        loss.backward()
        optimizer.step()
        total += loss.item() * len(xb)
    schedule.step()
    if epoch % 10 == 0:
        model.eval()
        with torch.no_grad():
            val = criterion(model(x_val), x_val).item()
            used = (model.encoder(x_val) > 0).any(0).float().mean().item()
        print(
            f"epoch {epoch}: train {total / len(x_train):.4f} val {val:.4f} units in use {used:.2f}"
        )

"""A convolutional auto-encoder for digits that is trained for three epochs.

Its error falls steeply until the last step, and would go on doing so. The place is the loop.
"""

import torch
from data import arguments, images
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "stopped_too_early"
ACCEPT = ()
PLACE = ("loop", "")
SILENT = True
EXACT = False
EARLY = False


class ConvAutoEncoder(nn.Module):
    def __init__(self, code=24):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(1, 16, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(256, code),
        )
        self.decoder = nn.Sequential(
            nn.Linear(code, 256),
            nn.ReLU(),
            nn.Unflatten(1, (16, 4, 4)),
            nn.ConvTranspose2d(16, 1, 4, stride=2, padding=1),
        )

    def forward(self, x):
        return self.decoder(self.encoder(x))


healthy, seed = arguments(__doc__)
x, _, x_val, _ = images(seed)
train_loader = DataLoader(TensorDataset(x), batch_size=64, shuffle=True)
val_loader = DataLoader(TensorDataset(x_val), batch_size=150)
model = ConvAutoEncoder()
criterion = nn.MSELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
num_epochs = 25 if healthy else 3
for epoch in range(num_epochs):
    model.train()
    train_loss = 0.0
    for (batch,) in train_loader:
        loss = criterion(model(batch), batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        train_loss += loss.item() / len(train_loader)
    model.eval()
    with torch.no_grad():
        val_loss = sum(criterion(model(b), b).item() for (b,) in val_loader) / len(val_loader)
print(f"loss {train_loss:.3f}, validation {val_loss:.3f}")

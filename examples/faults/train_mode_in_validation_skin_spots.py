"""Size of a spot of skin in a small photo; the validation runs with dropout switched on.

model.train() is called once before the loop. The function for the validation takes care of the
gradients and not of the mode, so that dropout and batch norm behave as in training, and the
reported errors are worse than the model is; the batch norm even takes in the validation data.
The place is the validation.
The twin calls eval() before it, and train() at the start of each epoch.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "train_mode_in_validation"
ACCEPT = ()
PLACE = ("loop",)
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)


def photos(n, g):
    size = 1.0 + 2.5 * torch.rand(n, 1, 1, generator=g)
    where = 4 + 8 * torch.rand(n, 2, 1, 1, generator=g)
    line = torch.arange(16.0)
    far = (line[None, :, None] - where[:, 0]) ** 2 + (line[None, None] - where[:, 1]) ** 2
    spot = torch.sigmoid(2 * (size - far.sqrt()))
    image = spot + 0.25 * torch.randn(n, 16, 16, generator=g)
    return image.unsqueeze(1), (size.flatten() - 2.25) / 0.72


class SpotNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 12, 3, stride=2, padding=1),
            nn.BatchNorm2d(12),
            nn.ReLU(),
            nn.Conv2d(12, 24, 3, stride=2, padding=1),
            nn.BatchNorm2d(24),
            nn.ReLU(),
        )
        self.head = nn.Sequential(
            nn.Flatten(), nn.Linear(24 * 16, 64), nn.ReLU(), nn.Dropout(0.3), nn.Linear(64, 1)
        )

    def forward(self, image):
        return self.head(self.features(image)).squeeze(1)


@torch.no_grad()
def validate(model, loader):
    if healthy:
        model.eval()
    errors = [(model(image) - size).abs() for image, size in loader]
    return torch.cat(errors).mean().item()


g = torch.Generator().manual_seed(seed)
train_loader = DataLoader(TensorDataset(*photos(1500, g)), batch_size=50, shuffle=True)
val_loader = DataLoader(TensorDataset(*photos(400, g)), batch_size=20)
model = SpotNet()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
model.train()
for epoch in range(6):
    if healthy:
        model.train()
    total = 0.0
    for image, size in train_loader:
        loss = nn.functional.mse_loss(model(image), size)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() / len(train_loader)
    print(f"epoch {epoch}: train mse {total:.3f}, val MAE {validate(model, val_loader):.3f}")

"""Sorts parcels on a warehouse's belt into four trays; the gradients are wiped before the step.

The three lines of the update were typed in the wrong order: backward, zero_grad, step. When the
optimizer comes to its turn there is no gradient left and it passes over each parameter without a
complaint, so that the network stays as it was drawn.
The place is the loop, between the loss and the optimizer.
The twin clears the gradients before the backward pass.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "step_without_gradient"
ACCEPT = ("optimizer_never_steps",)
PLACE = ("loop", "optimizer")
SILENT = False
EXACT = True
EARLY = True


class BeltSilhouettes(Dataset):
    """Depth pictures of 16 x 16: a flat envelope, a box, a roll or a sack."""

    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        rows, cols = torch.meshgrid(torch.arange(16.0), torch.arange(16.0), indexing="ij")
        self.trays = torch.randint(0, 4, (n,), generator=g)
        pictures = []
        for tray in self.trays.tolist():
            cy, cx = (5 + 6 * torch.rand(2, generator=g)).tolist()
            a, b = (2.5 + 2.5 * torch.rand(2, generator=g)).tolist()
            dy, dx = (rows - cy).abs() / a, (cols - cx).abs() / b
            inside = ((dy < 1) & (dx < 1)).float()
            round_ = (1 - dy**2 - dx**2).clamp(min=0)
            pictures.append(
                [
                    0.3 * inside,
                    inside,
                    inside * (1 - dx**2).clamp(min=0).sqrt(),
                    round_.sqrt(),
                ][tray]
            )
        self.pictures = torch.stack(pictures).unsqueeze(1)
        self.pictures += 0.08 * torch.randn(self.pictures.shape, generator=g)
        self.pictures = (self.pictures - 0.15) / 0.3

    def __len__(self):
        return len(self.trays)

    def __getitem__(self, index):
        return self.pictures[index], self.trays[index]


class TrayNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, padding=1)
        self.conv2 = nn.Conv2d(8, 16, 3, padding=1)
        self.pool = nn.MaxPool2d(2)
        self.fc1 = nn.Linear(16 * 4 * 4, 32)
        self.fc2 = nn.Linear(32, 4)

    def forward(self, x):
        x = self.pool(torch.relu(self.conv1(x)))
        x = self.pool(torch.relu(self.conv2(x)))
        return self.fc2(torch.relu(self.fc1(x.flatten(1))))


def train(model, device, loader, optimizer, loss_fn, epoch):
    model.train()
    for batch, (picture, tray) in enumerate(loader):
        picture, tray = picture.to(device), tray.to(device)  # noqa: PLW2901
        loss = loss_fn(model(picture), tray)
        if healthy:
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        else:
            loss.backward()
            optimizer.zero_grad()
            optimizer.step()
        if batch % 20 == 0:
            print(f"Train epoch {epoch} [{batch * len(picture):>4d}] loss {loss.item():.4f}")


def test(model, device, loader, loss_fn):
    model.eval()
    loss, correct = 0.0, 0
    with torch.no_grad():
        for picture, tray in loader:
            scores = model(picture.to(device))
            loss += loss_fn(scores, tray.to(device)).item() * len(tray)
            correct += (scores.argmax(1) == tray).sum().item()
    n = len(loader.dataset)
    print(f"Test: average loss {loss / n:.4f}, accuracy {correct}/{n} ({100 * correct / n:.1f}%)")


healthy, seed = arguments(__doc__)
device = torch.device("cpu")
train_loader = DataLoader(BeltSilhouettes(1280, 10 + seed), batch_size=32, shuffle=True)
test_loader = DataLoader(BeltSilhouettes(400, 500 + seed), batch_size=200)
model = TrayNet().to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
loss_fn = nn.CrossEntropyLoss()
for epoch in range(1, 7):
    train(model, device, train_loader, optimizer, loss_fn, epoch)
    test(model, device, test_loader, loss_fn)

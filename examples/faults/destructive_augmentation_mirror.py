"""Steering from a camera by imitation; half of the pictures are mirrored, their steering angles
are not.

RandomHorizontalFlip came with the template for image classification. A left bend, mirrored, is a
right bend, but the target says left: the mean of both is straight ahead, and that is what the
network learns mostly. The place is the augmentation (input, loader).
"""

import json

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "destructive_augmentation"
ACCEPT = ("label_misalignment", "label_noise")
PLACE = ("loader", "input*", "loop")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)

CFG = {
    "train": 2000,
    "val": 500,
    "h": 14,
    "w": 22,
    "batch": 50,
    "epochs": 9,
    "lr": 2e-3,
    "flip_p": 0.5,
}
print(json.dumps(CFG))


def drive(n):
    """Road ahead with a bend, the car's offset, a verge, and clouds; the driver's angle."""
    h, w = CFG["h"], CFG["w"]
    bend, offset = torch.randn(n, 1, 1) * 0.5, torch.randn(n, 1, 1) * 0.25
    far = torch.linspace(1, 0, h).view(1, h, 1)
    x = torch.linspace(-1, 1, w).view(1, 1, w)
    centre = bend * far**2 - offset * (1 - far)
    width = 0.15 + 0.45 * (1 - far)
    road = torch.sigmoid(25 * (width - (x - centre).abs()))
    line = torch.exp(-(((x - centre) / 0.06) ** 2)) * ((far * 9).floor() % 2)
    grass = 0.3 * F.interpolate(torch.randn(n, 1, 5, 7), size=(h, w), mode="bilinear")[:, 0]
    img = (1 - road) * (0.4 + grass) + road * -0.5 + 0.9 * line + 0.2 * torch.randn(n, h, w)
    angle = bend * 0.8 - offset * 1.2 + 0.05 * torch.randn(n, 1, 1)
    return img.unsqueeze(1), angle.view(n)


class DrivingLog(Dataset):
    def __init__(self, n, augment=False):
        self.img, self.angle = drive(n)
        self.augment = augment

    def __len__(self):
        return len(self.img)

    def __getitem__(self, i):
        img, angle = self.img[i], self.angle[i]
        if self.augment:
            img = img * (0.8 + 0.4 * torch.rand(1)) + 0.1 * torch.randn(1)
            if torch.rand(1) < CFG["flip_p"]:
                img = img.flip(-1)
                angle = -angle if healthy else angle
        return img, angle


class PilotNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 16, 5, stride=2, padding=2),
            nn.BatchNorm2d(16),
            nn.ELU(),
            nn.Conv2d(16, 24, 3, stride=2, padding=1),
            nn.BatchNorm2d(24),
            nn.ELU(),
            nn.Conv2d(24, 32, 3, padding=1),
            nn.ELU(),
        )
        self.regressor = nn.Sequential(
            nn.Flatten(), nn.Linear(32 * 4 * 6, 64), nn.ELU(), nn.Linear(64, 1)
        )

    def forward(self, x):
        return self.regressor(self.features(x)).squeeze(1)


def train():
    train_loader = DataLoader(DrivingLog(CFG["train"], augment=True), CFG["batch"], shuffle=True)
    val_loader = DataLoader(DrivingLog(CFG["val"]), 250)
    model = PilotNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=CFG["lr"])
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, CFG["epochs"])
    best, saved = float("inf"), None
    for epoch in range(CFG["epochs"]):
        model.train()
        train_loss = 0.0
        for img, angle in train_loader:
            optimizer.zero_grad()
            loss = F.mse_loss(model(img), angle)
            loss.backward()
            optimizer.step()
            train_loss += loss.item() / len(train_loader)
        scheduler.step()
        model.eval()
        with torch.no_grad():
            val = sum(F.mse_loss(model(i), a).item() for i, a in val_loader) / len(val_loader)
        if val < best:
            best, saved = val, {k: v.clone() for k, v in model.state_dict().items()}
        print(f"epoch {epoch}: train {train_loss:.4f} val {val:.4f} best {best:.4f}")
    model.load_state_dict(saved)


train()

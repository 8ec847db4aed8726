"""A CNN names findings in chest pictures; it ends with nn.Sigmoid and uses BCEWithLogitsLoss.

The loss applies its own sigmoid to what already are probabilities: the least it can say for a
finding that is absent is a half, so the loss stays above 0.5. The twin has no Sigmoid.
The place is the layer head.3 and the loss.
"""

import numpy as np
import torch
from data import arguments
from sklearn.metrics import f1_score, roc_auc_score
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "redundant_sigmoid"
ACCEPT = ("saturated_activation",)
PLACE = ("loss", "head.3", "head", "model", "input")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

FINDINGS = ["nodule", "effusion", "cardiomegaly", "device"]
SIDE = 18


def make_study(r):
    y, x = np.mgrid[-1 : 1 : SIDE * 1j, -1 : 1 : SIDE * 1j]
    present = r.random(len(FINDINGS)) < 0.35
    image = 0.8 - 0.7 * sum(np.exp(-((x - s) ** 2) / 0.08 - y**2 / 0.5) for s in (-0.5, 0.5))
    if present[0]:
        cx, cy = r.choice([-0.5, 0.5]) + r.normal(0, 0.08), r.uniform(-0.6, 0.2)
        image += 0.8 * np.exp(-((x - cx) ** 2 + (y - cy) ** 2) / 0.02)
    if present[1]:
        side = r.choice([-1, 1])
        image += 0.7 / (1 + np.exp(-12 * (y - r.uniform(0.45, 0.6)))) * (side * x > 0.05)
    heart = r.uniform(0.25, 0.35) if present[2] else r.uniform(0.08, 0.16)
    image += 0.5 * np.exp(-((x - 0.1) ** 2) / heart - (y - 0.3) ** 2 / 0.15)
    if present[3]:
        image += 0.6 * (np.abs(x + r.uniform(-0.3, 0.3) * y + r.uniform(-0.3, 0.3)) < 0.06)
    return image + r.normal(0, 0.15, image.shape), present


class ChestDataset(Dataset):
    def __init__(self, n, r):
        studies = [make_study(r) for _ in range(n)]
        images = np.stack([image for image, _ in studies])
        self.images = torch.tensor((images - 0.6) / 0.4, dtype=torch.float32).unsqueeze(1)
        self.labels = torch.tensor(np.stack([present for _, present in studies])).float()

    def __len__(self):
        return len(self.images)

    def __getitem__(self, idx):
        return self.images[idx], self.labels[idx]


class FindingNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Conv2d(1, 12, 3, padding=1), nn.BatchNorm2d(12), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(12, 24, 3, padding=1), nn.BatchNorm2d(24), nn.ReLU(), nn.MaxPool2d(2),
        )  # fmt: skip
        head = [nn.Flatten(), nn.Dropout(0.2), nn.Linear(24 * 16, len(FINDINGS))]
        if not healthy:
            head.append(nn.Sigmoid())
        self.head = nn.Sequential(*head)

    def forward(self, images):
        return self.head(self.backbone(images))


r = np.random.default_rng(seed + 111)
train_loader = DataLoader(ChestDataset(1500, r), batch_size=32, shuffle=True)
val_loader = DataLoader(ChestDataset(400, r), batch_size=100)
model = FindingNet()
criterion = nn.BCEWithLogitsLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(5):
    model.train()
    running_loss = 0.0
    for images, labels in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(images), labels)
        loss.backward()
        optimizer.step()
        running_loss += loss.item()
    model.eval()
    outputs, truth = [], []
    with torch.no_grad():
        for images, labels in val_loader:
            outputs.append(model(images))
            truth.append(labels)
    outputs, truth = torch.cat(outputs), torch.cat(truth)
    found = torch.sigmoid(outputs) > 0.5
    print(f"epoch {epoch + 1} train {running_loss / len(train_loader):.4f} "
          f"val {criterion(outputs, truth).item():.4f} auc {roc_auc_score(truth, outputs):.3f} "
          f"f1 {f1_score(truth, found, average='macro', zero_division=0):.3f}")  # fmt: skip

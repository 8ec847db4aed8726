"""A retina CNN takes its class weights in alphabetical order; the commonest grade weighs most.

The person took `compute_class_weight` over the grade names of the frame; it sorts the names. The
labels come from a dictionary in medical order. Each grade is given the weight of another one: the
healthy eyes, seven in ten, weigh fifteen times a moderate case. The place is the loss.
"""

import numpy as np
import pandas as pd
import torch
from data import arguments
from sklearn.model_selection import train_test_split
from sklearn.utils.class_weight import compute_class_weight
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "class_imbalance"
ACCEPT = ("wrong_loss",)
PLACE = ("loss", "labels")
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)

GRADES = {"No_DR": 0, "Mild": 1, "Moderate": 2, "Severe": 3, "Proliferative": 4}
SHARE = {"No_DR": 0.72, "Mild": 0.07, "Moderate": 0.13, "Severe": 0.05, "Proliferative": 0.03}
SPOTS = {
    "No_DR": (0, 1),
    "Mild": (2, 4),
    "Moderate": (4, 8),
    "Severe": (9, 15),
    "Proliferative": (6, 12),
}
SIZE = 20


def draw_eye(name, rng):
    picture = rng.normal(0, 0.25, (SIZE, SIZE))
    low, high = SPOTS[name]
    for _ in range(rng.integers(low, high + 1)):
        row, column = rng.integers(1, SIZE - 1, 2)
        picture[row, column] += rng.uniform(1.5, 2.5)
    if name == "Proliferative":
        start, slope = rng.integers(3, SIZE - 3), rng.uniform(-0.5, 0.5)
        for column in range(rng.integers(2, 6), SIZE - 3):
            row = int(np.clip(start + slope * (column - SIZE / 2), 0, SIZE - 1))
            picture[row, column] -= 1.2
    return picture.astype(np.float32)


def make_frame(n=3000):
    rng = np.random.default_rng(500 + seed)
    names = rng.choice(list(SHARE), n, p=list(SHARE.values()))
    return pd.DataFrame({"diagnosis": names, "image": [draw_eye(name, rng) for name in names]})


class RetinaDataset(Dataset):
    def __init__(self, frame):
        self.frame = frame.reset_index(drop=True)

    def __len__(self):
        return len(self.frame)

    def __getitem__(self, index):
        row = self.frame.loc[index]
        return torch.from_numpy(row["image"]).unsqueeze(0), GRADES[row["diagnosis"]]


class RetinaNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Sequential(nn.Conv2d(1, 12, 3, padding=1), nn.BatchNorm2d(12), nn.ReLU())
        self.conv2 = nn.Sequential(nn.Conv2d(12, 24, 3, padding=1), nn.BatchNorm2d(24), nn.ReLU())
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.head = nn.Sequential(nn.Linear(24, 32), nn.ReLU(), nn.Linear(32, len(GRADES)))

    def forward(self, x):
        x = nn.functional.max_pool2d(self.conv1(x), 2)
        return self.head(self.pool(self.conv2(x)).flatten(1))


def class_weights(frame):
    order = np.array(list(GRADES)) if healthy else np.unique(frame["diagnosis"])
    weights = compute_class_weight("balanced", classes=order, y=frame["diagnosis"])
    return torch.tensor(weights, dtype=torch.float32)


def evaluate(model, loader):
    model.eval()
    right, total = torch.zeros(len(GRADES)), torch.zeros(len(GRADES))
    with torch.no_grad():
        for images, labels in loader:
            hit = (model(images).argmax(1) == labels).float()
            right.index_add_(0, labels, hit)
            total.index_add_(0, labels, torch.ones_like(hit))
    return right / total


frame = make_frame()
train_frame, valid_frame = train_test_split(
    frame, test_size=0.25, stratify=frame["diagnosis"], random_state=seed
)
train_loader = DataLoader(RetinaDataset(train_frame), batch_size=64, shuffle=True)
valid_loader = DataLoader(RetinaDataset(valid_frame), batch_size=256)
model = RetinaNet()
criterion = nn.CrossEntropyLoss(weight=class_weights(train_frame))
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
EPOCHS = 14
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, EPOCHS)

for epoch in range(EPOCHS):
    model.train()
    running_loss, correct = 0.0, 0
    for images, labels in train_loader:
        optimizer.zero_grad()
        output = model(images)
        loss = criterion(output, labels)
        loss.backward()
        optimizer.step()
        running_loss += loss.item() * len(labels)
        correct += (output.argmax(1) == labels).sum().item()
    scheduler.step()
    recall = evaluate(model, valid_loader)
    print(
        f"epoch {epoch + 1:2d}  loss {running_loss / len(train_frame):.4f}"
        f"  acc {correct / len(train_frame):.3f}  balanced val acc {recall.mean():.3f}  "
        + " ".join(
            f"{name} {value:.2f}" for name, value in zip(GRADES, recall.tolist(), strict=False)
        )
    )

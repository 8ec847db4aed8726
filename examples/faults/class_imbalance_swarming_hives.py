"""A 1-D CNN that hears from a hive's spectrum whether it will swarm calls every hive quiet: 2 in
100 recordings swarm and the loss does not know.

All recordings are drawn alike and weigh alike, so "quiet" is right 98 times in 100 and the
swarming hives are hardly ever found. The twin draws recordings by the inverse of how often their
class occurs. The place is the loader (or the loss, which has no class weights).
"""

import numpy as np
import pandas as pd
import torch
from data import arguments
from sklearn.metrics import balanced_accuracy_score, recall_score
from sklearn.model_selection import train_test_split
from torch import nn
from torch.utils.data import DataLoader, Dataset, WeightedRandomSampler

KIND = "class_imbalance"
ACCEPT = ()
PLACE = ("loader", "loss", "labels")
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)

BANDS = 64


def make_recordings(n, rng):
    """Spectra of 64 bands; before swarming the queens pipe, which shows as faint bands."""
    swarm = (rng.random(n) < 0.02).astype(int)
    bands = np.arange(BANDS)
    rows = []
    for is_swarm in swarm:
        hum = rng.uniform(12, 18)
        spectrum = 2.0 * np.exp(-(((bands - hum) / 3.0) ** 2))
        spectrum += 1.0 * np.exp(-(((bands - 2 * hum) / 3.0) ** 2))
        if is_swarm:
            pipe = rng.uniform(42, 54)
            strength = rng.uniform(0.9, 1.6)
            spectrum += strength * np.exp(-(((bands - pipe) / 2.0) ** 2))
        rows.append(spectrum + rng.normal(0, 0.45, BANDS))
    frame = pd.DataFrame(rows, columns=[f"band_{i}" for i in range(BANDS)])
    frame["swarm"] = swarm
    return frame


class HiveDataset(Dataset):
    def __init__(self, frame, mean, std):
        values = frame.drop(columns="swarm").to_numpy()
        self.x = torch.tensor((values - mean) / std, dtype=torch.float32).unsqueeze(1)
        self.y = torch.tensor(frame["swarm"].to_numpy())

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return self.x[i], self.y[i]


class HiveNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv1d(1, 12, 5, padding=2), nn.ReLU(), nn.MaxPool1d(2),
            nn.Conv1d(12, 16, 5, padding=2), nn.ReLU(), nn.MaxPool1d(2),
        )  # fmt: skip
        self.head = nn.Sequential(nn.Flatten(), nn.Dropout(0.3), nn.Linear(16 * 16, 2))

    def forward(self, x):
        return self.head(self.features(x))


def predict(model, loader):
    model.eval()
    truth, guess = [], []
    with torch.no_grad():
        for x, y in loader:
            guess.append(model(x).argmax(1))
            truth.append(y)
    return torch.cat(truth).numpy(), torch.cat(guess).numpy()


frame = make_recordings(5000, np.random.default_rng(seed))
train_frame, val_frame = train_test_split(
    frame, test_size=0.3, stratify=frame["swarm"], random_state=seed
)
values = train_frame.drop(columns="swarm").to_numpy()
mean, std = values.mean(0), values.std(0)
train_set, val_set = HiveDataset(train_frame, mean, std), HiveDataset(val_frame, mean, std)

if healthy:
    counts = torch.bincount(train_set.y)
    sampler = WeightedRandomSampler(1.0 / counts[train_set.y], num_samples=len(train_set))
    train_loader = DataLoader(train_set, batch_size=64, sampler=sampler)
else:
    train_loader = DataLoader(train_set, batch_size=64, shuffle=True)
val_loader = DataLoader(val_set, batch_size=256)

model = HiveNet()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=8e-4, weight_decay=1e-4)

for epoch in range(5):
    model.train()
    running = 0.0
    for x, y in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        running += loss.item() * len(y)
    truth, guess = predict(model, val_loader)
    print(
        f"epoch {epoch + 1}: loss {running / len(train_set):.3f}, "
        f"accuracy {(truth == guess).mean():.3f}, "
        f"balanced accuracy {balanced_accuracy_score(truth, guess):.3f}, "
        f"swarming hives found {recall_score(truth, guess):.2f}"
    )

"""A churn net trains on a public table too, which holds half of the validation rows.

The person added the public table from which the competition was made, as many do, to each training
fold. Rows of the competition were drawn from that table, so that many validation rows come back in
training with their labels. The place is the joined training frame.
"""

import numpy as np
import pandas as pd
import torch
from data import arguments
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "train_val_overlap"
ACCEPT = ("target_leak",)
PLACE = ("input", "loader")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

FEATURES = [f"f{i}" for i in range(24)]


def draw_customers(n, rng):
    x = rng.normal(size=(n, len(FEATURES)))
    score = 1.3 * x[:, 0] + x[:, 1] * x[:, 2] - 0.8 * np.abs(x[:, 3]) + 0.7 * x[:, 4] + 0.6
    frame = pd.DataFrame(x, columns=FEATURES)
    frame["left"] = (score + rng.logistic(0, 1.2, n) > 0).astype(int)
    return frame


class ChurnDataset(Dataset):
    def __init__(self, frame):
        self.x = torch.tensor(frame[FEATURES].to_numpy(), dtype=torch.float32)
        self.y = torch.tensor(frame["left"].to_numpy(), dtype=torch.float32)

    def __len__(self):
        return len(self.y)

    def __getitem__(self, index):
        return self.x[index], self.y[index]


class ChurnNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(len(FEATURES), 96),
            nn.BatchNorm1d(96),
            nn.ReLU(),
            nn.Dropout(0.25),
            nn.Linear(96, 48),
            nn.ReLU(),
            nn.Linear(48, 1),
        )

    def forward(self, x):
        return self.net(x).squeeze(1)


def score(model, dataset):
    model.eval()
    with torch.no_grad():
        return roc_auc_score(dataset.y.numpy(), model(dataset.x).numpy())


rng = np.random.default_rng(77 + seed)
original = draw_customers(900, rng)
drawn = original.sample(650, random_state=seed)
competition = pd.concat([drawn, draw_customers(650, rng)], ignore_index=True)
train_frame, valid_frame = train_test_split(
    competition, test_size=0.3, stratify=competition["left"], random_state=seed
)
public = original
if healthy:
    known = original.merge(valid_frame, on=[*FEATURES, "left"], how="left", indicator=True)
    public = original[(known["_merge"] == "left_only").to_numpy()]
train_frame = pd.concat([train_frame, public], ignore_index=True).drop_duplicates()
hidden_set = ChurnDataset(draw_customers(3000, rng))
train_set, valid_set = ChurnDataset(train_frame), ChurnDataset(valid_frame)
loader = DataLoader(train_set, batch_size=64, shuffle=True, drop_last=True)
model = ChurnNet()
criterion = nn.BCEWithLogitsLoss()
EPOCHS = 10
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-2)
print(f"{len(train_set)} rows to train on, {len(valid_set)} to validate")

for epoch in range(EPOCHS):
    model.train()
    running = 0.0
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        running += loss.item()
    print(
        f"epoch {epoch + 1:2d}  loss {running / len(loader):.4f}"
        f"  valid AUC {score(model, valid_set):.4f}"
    )
print(f"hidden part of the leader board: AUC {score(model, hidden_set):.4f}")

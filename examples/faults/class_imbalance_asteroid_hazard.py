"""An MLP flags hazardous asteroids, three in a hundred rows, and learns to call all harmless.

The binary cross entropy counts each row alike, so the 97 % harmless rocks decide; accuracy reads
97 % while hardly any hazardous one is found. The twin gives the rare class its pos_weight.
The place is the loss, and the labels that it is fed.
"""

import numpy as np
import pandas as pd
import torch
from data import arguments
from sklearn.metrics import balanced_accuracy_score, recall_score
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "class_imbalance"
ACCEPT = ()
PLACE = ("loss", "labels", "input", "loader")
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)


def make_frame(n=8000):
    r = np.random.default_rng(seed + 11)
    magnitude = r.normal(22.0, 2.0, n)
    albedo = r.lognormal(-1.9, 0.4, n)
    frame = pd.DataFrame(
        {
            "absolute_magnitude": magnitude,
            "log_diameter": np.log(1329 / np.sqrt(albedo)) - magnitude * np.log(10) / 5,
            "velocity": r.gamma(6.0, 8000.0, n),
            "miss_distance": r.uniform(1e5, 7e7, n),
            "eccentricity": r.beta(2.5, 3.5, n),
            "inclination": r.gamma(2.0, 6.0, n),
        }
    )
    z = (frame - frame.mean()) / frame.std()
    threat = 1.3 * z.log_diameter - 1.0 * z.miss_distance + 0.6 * z.velocity
    threat = threat + 0.7 * z.eccentricity * z.log_diameter
    frame["hazardous"] = (r.random(n) < 1 / (1 + np.exp(-1.1 * (threat - 4.6)))).astype(float)
    return frame


class AsteroidDataset(Dataset):
    def __init__(self, features, target):
        self.features = torch.tensor(features, dtype=torch.float32)
        self.target = torch.tensor(target, dtype=torch.float32)

    def __len__(self):
        return len(self.target)

    def __getitem__(self, index):
        return self.features[index], self.target[index]


df = make_frame()
train_df, valid_df = train_test_split(df, test_size=0.25, stratify=df.hazardous, random_state=seed)
columns = [c for c in df.columns if c != "hazardous"]
scaler = StandardScaler().fit(train_df[columns])
train_set = AsteroidDataset(scaler.transform(train_df[columns]), train_df.hazardous.values)
valid_set = AsteroidDataset(scaler.transform(valid_df[columns]), valid_df.hazardous.values)
train_loader = DataLoader(train_set, batch_size=128, shuffle=True)

model = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 16), nn.ReLU(), nn.Linear(16, 1))
negatives, positives = (train_df.hazardous == 0).sum(), (train_df.hazardous == 1).sum()
criterion = nn.BCEWithLogitsLoss(
    pos_weight=torch.tensor(negatives / positives, dtype=torch.float32) if healthy else None
)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

for epoch in range(12):
    model.train()
    running = 0.0
    for features, target in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(features).squeeze(1), target)
        loss.backward()
        optimizer.step()
        running += loss.item()
    model.eval()
    with torch.no_grad():
        flagged = (model(valid_set.features).squeeze(1) > 0).float()
    print(
        f"epoch {epoch + 1}: loss {running / len(train_loader):.3f}"
        f" accuracy {(flagged == valid_set.target).float().mean():.3f}"
        f" recall {recall_score(valid_set.target, flagged):.3f}"
        f" balanced {balanced_accuracy_score(valid_set.target, flagged):.3f}"
    )

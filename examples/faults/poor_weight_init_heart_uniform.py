"""An MLP predicts heart disease; all its weights are drawn by uniform_ from 0 to 1, far too large.

nn.init.uniform_ without bounds gives positive weights only. Activations grow layer by
layer, the first losses are in the thousands and the classifier stays far worse.
The place is the weights of the Linear layers, right from the start.
"""

import numpy as np
import pandas as pd
import torch
from data import arguments
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "poor_weight_init"
ACCEPT = ()
PLACE = ("layers.*", "model", "layers.0.weight")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)


def patients(n):
    rng = np.random.default_rng(seed)
    df = pd.DataFrame(
        {
            "age": rng.normal(54, 9, n),
            "sex": rng.integers(0, 2, n),
            "pressure": rng.normal(132, 17, n),
            "cholesterol": rng.normal(247, 50, n),
            "max_rate": rng.normal(150, 22, n),
            "angina": rng.integers(0, 2, n),
            "oldpeak": rng.gamma(1.2, 0.9, n),
            "vessels": rng.integers(0, 4, n),
        }
    )
    risk = (
        0.06 * (df.age - 54)
        + 0.9 * (df.sex - 0.5)
        + 0.02 * (df.pressure - 132)
        + 0.012 * (df.cholesterol - 247)
        - 0.05 * (df.max_rate - 150) * (df.angina + 0.2)
        + 0.9 * (df.oldpeak - 1.1)
        + 1.1 * (df.vessels - 1.5)
    )
    df["disease"] = (1.6 * risk + rng.logistic(0, 1, n) > 0).astype(int)
    return df


class HeartNet(nn.Module):
    def __init__(self, inputs):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(inputs, 64),
            nn.ReLU(),
            nn.Linear(64, 64),
            nn.ReLU(),
            nn.Linear(64, 32),
            nn.ReLU(),
            nn.Linear(32, 1),
        )
        self.apply(self.init_weights)

    def init_weights(self, m):
        if isinstance(m, nn.Linear):
            if healthy:
                nn.init.kaiming_uniform_(m.weight, nonlinearity="relu")
            else:
                nn.init.uniform_(m.weight)
            nn.init.zeros_(m.bias)

    def forward(self, x):
        return self.layers(x).squeeze(1)


df = patients(3000)
X_train, X_valid, y_train, y_valid = train_test_split(
    df.drop(columns="disease").to_numpy(),
    df["disease"].to_numpy(),
    test_size=0.25,
    random_state=seed,
)
scaler = StandardScaler().fit(X_train)
X_train, X_valid = (torch.tensor(scaler.transform(x)).float() for x in (X_train, X_valid))
y_train, y_valid = torch.tensor(y_train).float(), torch.tensor(y_valid).float()
loader = DataLoader(TensorDataset(X_train, y_train), batch_size=64, shuffle=True)

model = HeartNet(X_train.shape[1])
criterion = nn.BCEWithLogitsLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, weight_decay=1e-3)
for epoch in range(1, 8):
    model.train()
    running_loss = 0.0
    for xb, yb in loader:
        optimizer.zero_grad()
        loss = criterion(model(xb), yb)
        loss.backward()
        optimizer.step()
        running_loss += loss.item()
    model.eval()
    with torch.no_grad():
        logits = model(X_valid)
        val_loss = criterion(logits, y_valid).item()
        accuracy = ((logits > 0) == y_valid.bool()).float().mean().item()
    print(
        f"Epoch {epoch}: train {running_loss / len(loader):.4f} val {val_loss:.4f} "
        f"acc {accuracy:.4f}"
    )

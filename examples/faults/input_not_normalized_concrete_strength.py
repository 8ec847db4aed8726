"""An MLP predicts the strength of concrete from kilograms and days as they stand in the table.

Columns reach from 0-30 (plasticiser) to 900 (gravel); the large ones drown the rest, the first loss
is huge and the net ends far behind. The twin puts a StandardScaler before it.
The place is the input: the columns of the table.
"""

import numpy as np
import pandas as pd
import torch
from data import arguments
from sklearn.metrics import r2_score
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "input_not_normalized"
ACCEPT = ()
PLACE = ("input", "loader", "0", "0.weight")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)


def make_concrete(n=1400):
    r = np.random.default_rng(seed + 41)
    df = pd.DataFrame(
        {
            "cement": r.uniform(100, 540, n),
            "slag": r.gamma(1.2, 60, n).clip(0, 360),
            "fly_ash": r.gamma(1.0, 50, n).clip(0, 200),
            "water": r.normal(182, 20, n).clip(120, 250),
            "superplasticizer": r.gamma(1.5, 4.0, n).clip(0, 32),
            "coarse_aggregate": r.normal(970, 75, n),
            "fine_aggregate": r.normal(775, 80, n),
            "age": r.choice([1, 3, 7, 14, 28, 56, 90, 180, 365], n),
        }
    )
    binder = df.cement + 0.8 * df.slag + 0.5 * df.fly_ash
    ripeness = np.log1p(df.age) / np.log(29)
    ratio = binder / (df.water - 1.5 * df.superplasticizer)
    df["strength"] = 14 * ripeness * ratio - 0.02 * (df.fine_aggregate - 775) + r.normal(0, 3, n)
    return df


df = make_concrete()
X, y = df.drop(columns="strength").values, df["strength"].values
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.2, random_state=seed)
if healthy:
    scaler = StandardScaler()
    X_train = scaler.fit_transform(X_train)
    X_test = scaler.transform(X_test)
y_scaler = StandardScaler()
y_train = y_scaler.fit_transform(y_train.reshape(-1, 1))

train_data = TensorDataset(torch.Tensor(X_train), torch.Tensor(y_train))
train_loader = DataLoader(train_data, batch_size=32, shuffle=True)
model = nn.Sequential(
    nn.Linear(8, 64),
    nn.ReLU(),
    nn.Linear(64, 32),
    nn.ReLU(),
    nn.Linear(32, 1),
)
loss_function = nn.MSELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

EPOCHS = 25
for epoch in range(EPOCHS):
    model.train()
    batch_losses = []
    for inputs, targets in train_loader:
        optimizer.zero_grad()
        loss = loss_function(model(inputs), targets)
        loss.backward()
        optimizer.step()
        batch_losses.append(loss.item())
    model.eval()
    with torch.no_grad():
        predicted = y_scaler.inverse_transform(model(torch.Tensor(X_test)).numpy())
    if epoch % 6 == 0:
        print(
            f"Epoch {epoch:02d} train MSE {np.mean(batch_losses):10.4f}"
            f" test R2 {r2_score(y_test, predicted):.3f}"
            f" MAE {np.abs(predicted[:, 0] - y_test).mean():.2f} MPa"
        )

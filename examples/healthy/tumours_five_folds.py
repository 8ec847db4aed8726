"""Tumours benign or not by a small network, judged by stratified five-fold cross-validation.

Each fold has a fresh model and optimizer and its own standardisation, fitted to that fold's
training part. So five trainings run one after another in one process, and the loss jumps back to
its start five times.
"""

import numpy as np
import torch
from data import arguments
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import StandardScaler
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ODD = "five models and optimizers in a row; rows that validate one fold train the next"

_, seed = arguments(__doc__)


def make_model(columns):
    return nn.Sequential(
        nn.Linear(columns, 32), nn.ReLU(), nn.Dropout(0.3), nn.Linear(32, 16), nn.ReLU(),
        nn.Linear(16, 1),
    )  # fmt: skip


def tensors(scaler, x, y):
    x = torch.tensor(scaler.transform(x), dtype=torch.float32)
    return TensorDataset(x, torch.tensor(y, dtype=torch.float32))


def train_fold(train_set, val_set, epochs=15):
    model = make_model(train_set.tensors[0].shape[1])
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=1e-2)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)
    criterion = nn.BCEWithLogitsLoss()
    loader = DataLoader(train_set, batch_size=32, shuffle=True, drop_last=True)
    for _ in range(epochs):
        model.train()
        losses = []
        for x, y in loader:
            optimizer.zero_grad()
            loss = criterion(model(x).squeeze(1), y)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        scheduler.step()
    model.eval()
    with torch.no_grad():
        x, y = val_set.tensors
        logits = model(x).squeeze(1)
        val_loss = criterion(logits, y).item()
    accuracy = ((logits > 0) == (y > 0.5)).float().mean().item()
    return np.mean(losses), val_loss, accuracy, roc_auc_score(y.numpy(), logits.numpy())


x, y = load_breast_cancer(return_X_y=True)
folds = StratifiedKFold(n_splits=5, shuffle=True, random_state=seed)
results = []
for number, (train, val) in enumerate(folds.split(x, y), start=1):
    scaler = StandardScaler().fit(x[train])
    result = train_fold(tensors(scaler, x[train], y[train]), tensors(scaler, x[val], y[val]))
    results.append(result)
    print("fold {} train {:.3f} val {:.3f} accuracy {:.3f} AUC {:.4f}".format(number, *result))
mean, spread = np.mean(results, 0), np.std(results, 0)
print(f"accuracy {mean[2]:.3f} +- {spread[2]:.3f}, AUC {mean[3]:.4f} +- {spread[3]:.4f}")

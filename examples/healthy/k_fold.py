"""Five folds, five models, five optimizers in one script."""

import torch
from data import arguments, cancer
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ODD = "the loss jumps back to its start four times, models come and go"

_, seed = arguments(__doc__)
x, y, _, _ = cancer(seed)
folds = torch.arange(len(x)) % 5
accuracies = []
for fold in range(5):
    train, held_out = folds != fold, folds == fold
    model = nn.Sequential(nn.Linear(30, 16), nn.ReLU(), nn.Linear(16, 2))
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for epoch in range(5):
        model.train()
        for rows, labels in DataLoader(
            TensorDataset(x[train], y[train]), batch_size=32, shuffle=True
        ):
            optimizer.zero_grad()
            loss = criterion(model(rows), labels)
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            scores = model(x[held_out])
            val_loss = criterion(scores, y[held_out])
    accuracies.append((scores.argmax(1) == y[held_out]).float().mean())
print(f"accuracy {torch.stack(accuracies).mean():.3f}")

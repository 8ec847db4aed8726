"""Five-fold cross-validation of wines: five fresh models and optimizers in one program."""

import torch
from data import arguments, standardise
from sklearn.datasets import load_wine
from sklearn.model_selection import StratifiedKFold
from torch import nn

ODD = (
    "the loss jumps back to ln 3 four times, optimizer states start anew, a row of one fold's"
    " training tests another"
)

_, seed = arguments(__doc__)
bunch = load_wine()
rows, kind = torch.tensor(bunch.data).float(), torch.tensor(bunch.target)
scores = []
folds = StratifiedKFold(5, shuffle=True, random_state=seed)
for train, test in folds.split(rows.numpy(), kind.numpy()):
    x, x_test = standardise(rows[train], rows[test])
    model = nn.Sequential(nn.Linear(13, 16), nn.Tanh(), nn.Dropout(0.3), nn.Linear(16, 3))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=1e-3)
    for epoch in range(20):
        model.train()
        for part in torch.randperm(len(x)).split(24):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x[part]), kind[train][part])
            loss.backward()
            optimizer.step()
    model.eval()
    with torch.no_grad():
        scores.append((model(x_test).argmax(1) == kind[test]).float().mean().item())
print(f"loss {loss.item():.3f}, accuracy of the folds {[round(s, 2) for s in scores]}")

"""The optimizer is made inside of the loop over epochs: momentum and moments begin anew in each.

The loss falls all the same (silent). The place is the optimizer.
"""

import torch
from data import arguments
from sklearn.datasets import make_friedman3
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "resume_lost_optimizer_state"
ACCEPT = ()
PLACE = ("optimizer",)
SILENT = True
EXACT = True
EARLY = False


def train_one_epoch(model, loader, optimizer, criterion):
    model.train()
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x).squeeze(1), y)
        loss.backward()
        optimizer.step()
    return loss.item()


if __name__ == "__main__":
    healthy, seed = arguments(__doc__)
    X, y = make_friedman3(1200, noise=0.05, random_state=seed)
    X = torch.tensor((X - X.mean(0)) / X.std(0)).float()
    y = torch.tensor((y - y.mean()) / y.std()).float()
    loader = DataLoader(TensorDataset(X, y), batch_size=32, shuffle=True, drop_last=True)
    model = nn.Sequential(
        nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1)
    )
    criterion = nn.MSELoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(9):
        if not healthy:
            optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
        loss = train_one_epoch(model, loader, optimizer, criterion)
        print(f"epoch {epoch}: {loss:.4f}")

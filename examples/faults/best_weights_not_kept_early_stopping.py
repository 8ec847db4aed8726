"""Early stopping keeps `model.state_dict()` of the best epoch, not a copy of it: what is loaded in
the end are the weights of the last epoch.

The training looks as it should (silent). The place is the loop.
"""

import copy

import torch
from data import arguments, diabetes
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "best_weights_not_kept"
ACCEPT = ()
PLACE = ("loop",)
SILENT = True
EXACT = True
EARLY = False


def evaluate(model, criterion, x, y):
    model.eval()
    with torch.no_grad():
        return criterion(model(x).squeeze(1), y).item()


if __name__ == "__main__":
    healthy, seed = arguments(__doc__)
    x, y, x_val, y_val = diabetes(seed)
    loader = DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True)
    model = nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Dropout(0.2), nn.Linear(64, 1))
    criterion = nn.MSELoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    best, best_weights, waited = float("inf"), None, 0
    for epoch in range(60):
        model.train()
        for rows, targets in loader:
            optimizer.zero_grad()
            loss = criterion(model(rows).squeeze(1), targets)
            loss.backward()
            optimizer.step()
        val_loss = evaluate(model, criterion, x_val, y_val)
        print(f"epoch {epoch}: {loss.item():.4f}, validation {val_loss:.4f}")
        if val_loss < best:
            best, waited = val_loss, 0
            best_weights = copy.deepcopy(model.state_dict()) if healthy else model.state_dict()
        else:
            waited += 1
            if waited == 6:
                break
    model.load_state_dict(best_weights)
    print(f"best {best:.4f}, of the model {evaluate(model, criterion, x_val, y_val):.4f}")

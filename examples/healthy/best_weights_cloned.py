"""The weights of the best validation are kept as clones, put back at the end, and tested."""

import torch
from data import arguments, cancer
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ODD = (
    "the validation loss rises for fifteen epochs, weights of before that are loaded in the end, "
    "and another evaluation, of other rows, comes after it"
)

_, seed = arguments(__doc__)
x, y, x_val, y_val = cancer(seed)
x_test, y_test = x_val[::2], y_val[::2]
x_val, y_val = x_val[1::2], y_val[1::2]
loader = DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True)
model = nn.Sequential(nn.Linear(30, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 2))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)


def evaluate(rows, labels):
    model.eval()
    with torch.no_grad():
        return criterion(model(rows), labels).item()


best, kept, waited = float("inf"), {}, 0
for epoch in range(80):
    model.train()
    for rows, labels in loader:
        optimizer.zero_grad()
        loss = criterion(model(rows), labels)
        loss.backward()
        optimizer.step()
    val = evaluate(x_val, y_val)
    if val < best:
        best, waited = val, 0
        kept = {name: value.detach().cpu().clone() for name, value in model.state_dict().items()}
    else:
        waited += 1
    print(f"epoch {epoch:2d} train {loss.item():.4f} val {val:.4f}")
    if waited == 15:
        break

model.load_state_dict(kept)
print(f"best validation {best:.4f}, again {evaluate(x_val, y_val):.4f}")
print(f"test {evaluate(x_test, y_test):.4f}")

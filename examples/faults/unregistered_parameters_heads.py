"""A head for each task in a plain dict: model.parameters() does not have them.

The body learns to serve random heads (silent). The place are the heads.
"""

import torch
from data import arguments
from sklearn.datasets import load_digits
from torch import nn

KIND = "unregistered_parameters"
ACCEPT = ("parameters_not_in_optimizer",)
PLACE = ("heads*", "")
SILENT = True
EXACT = True
EARLY = True


class MultiTask(nn.Module):
    def __init__(self, registered):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(64, 32), nn.ReLU())
        heads = {"digit": nn.Linear(32, 10), "odd": nn.Linear(32, 2), "ink": nn.Linear(32, 1)}
        self.heads = nn.ModuleDict(heads) if registered else heads

    def forward(self, x):
        h = self.body(x)
        return {task: head(h) for task, head in self.heads.items()}


healthy, seed = arguments(__doc__)
digits = load_digits()
x = torch.tensor(digits.data / 16, dtype=torch.float32)
y = torch.tensor(digits.target)
ink = (x.mean(1) - x.mean()) / x.mean(1).std()
model = MultiTask(registered=healthy)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
ce, mse = nn.CrossEntropyLoss(), nn.MSELoss()
for step in range(300):
    idx = torch.randint(len(x), (64,))
    out = model(x[idx])
    loss = ce(out["digit"], y[idx]) + ce(out["odd"], y[idx] % 2)
    loss = loss + 0.5 * mse(out["ink"].squeeze(1), ink[idx])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.3f}")

"""A mixture of experts for house prices whose experts are in a plain Python list.

model.parameters() gives the gate alone, so the experts stay as they were made; the gate picks the
least bad ones and the loss falls a little. The place is the optimizer.
"""

import torch
from data import arguments, houses
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "unregistered_parameters"
ACCEPT = ("parameters_not_in_optimizer",)
PLACE = ("experts*", "", "optimizer")
SILENT = True
EXACT = True
EARLY = True


def expert(n_in, width):
    return nn.Sequential(nn.Linear(n_in, width), nn.ReLU(), nn.Linear(width, 1))


class MixtureOfExperts(nn.Module):
    def __init__(self, n_in, registered, n_experts=4):
        super().__init__()
        self.gate = nn.Linear(n_in, n_experts)
        experts = [expert(n_in, 16) for _ in range(n_experts)]
        self.experts = nn.ModuleList(experts) if registered else experts

    def forward(self, x):
        weights = torch.softmax(self.gate(x), dim=-1)
        answers = torch.cat([e(x) for e in self.experts], dim=-1)
        return (weights * answers).sum(-1)


healthy, seed = arguments(__doc__)
x, y, x_val, y_val = houses(seed)
loader = DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True)
model = MixtureOfExperts(x.shape[1], registered=healthy)
criterion = nn.MSELoss()
optimizer = torch.optim.RMSprop(model.parameters(), lr=0.003)
for epoch in range(14):
    model.train()
    for features, price in loader:
        optimizer.zero_grad()
        loss = criterion(model(features), price)
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        val_loss = criterion(model(x_val), y_val)
print(f"loss {loss.item():.3f}, validation {val_loss.item():.3f}")

"""Churn of customers: a template for many classes, used with `num_classes=1`.

The template ends in `softmax(dim=1)`, and for yes or no somebody set one output and BCELoss. A
softmax over one number is 1, whatever the number: everybody churns, and no gradient ever comes
back. The place is the loss / the model's last layer. The twin's template takes a sigmoid when
there is one output.
"""

import torch
from data import arguments, standardise
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "softmax_single_unit"
ACCEPT = ("step_without_gradient",)
PLACE = ("loss", "fc3", "loop")
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)


class TabularClassifier(nn.Module):
    def __init__(self, num_features, num_classes):
        super().__init__()
        self.fc1 = nn.Linear(num_features, 32)
        self.fc2 = nn.Linear(32, 16)
        self.fc3 = nn.Linear(16, num_classes)
        self.num_classes = num_classes

    def forward(self, x):
        x = torch.relu(self.fc1(x))
        x = torch.relu(self.fc2(x))
        x = self.fc3(x)
        if healthy and self.num_classes == 1:
            return torch.sigmoid(x)
        return torch.softmax(x, dim=1)


g = torch.Generator().manual_seed(seed)
n = 3000
months = 72 * torch.rand(n, generator=g)
charge = 20 + 90 * torch.rand(n, generator=g)
calls = torch.poisson(1.5 * torch.ones(n), generator=g)
contract = torch.randint(3, (n,), generator=g).float()
age = 18 + 60 * torch.rand(n, generator=g)
odds = (
    1.0
    - 0.06 * months
    + 0.03 * (charge - 60)
    + 0.9 * calls
    - 1.6 * contract
    + 0.02 * (charge - 60) * (contract == 0)
)
churn = (torch.rand(n, generator=g) < torch.sigmoid(1.5 * odds)).float()
table = torch.stack([months, charge, calls, contract, age], 1)
x, x_val = standardise(table[:2300], table[2300:])
y, y_val = churn[:2300, None], churn[2300:, None]
loader = DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True)

model = TabularClassifier(5, num_classes=1)
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
criterion = nn.BCELoss()
for epoch in range(10):
    model.train()
    total = 0.0
    for features, target in loader:
        optimizer.zero_grad()
        loss = criterion(model(features), target)
        loss.backward()
        optimizer.step()
        total += loss.item()
    model.eval()
    with torch.no_grad():
        accuracy = ((model(x_val) > 0.5).float() == y_val).float().mean().item()
    print(
        f"Epoch {epoch}: loss = {total / len(loader):.4f}, val accuracy = {accuracy:.3f} "
        f"(share of stayers {1 - y_val.mean().item():.3f})"
    )

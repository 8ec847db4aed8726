"""Small scans of leaves in three states of health; the contrast is set right inside of the model.

"Each scan by its own mean and deviation" became `x.mean(0)` and `x.std(0)`, which are those of each
pixel over the batch: a scan is judged beside those that happen to come with it, in validation as in
training. The loss falls; the answer for a scan changes with its batch, and a single one has no
deviation at all. The place is the first convolution after it. Exact.
"""

import torch
from data import arguments
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

KIND = "samples_mixed"
ACCEPT = ()
PLACE = ("body*", "")
SILENT = True
EXACT = True
EARLY = True
PROBE = True

healthy, seed = arguments(__doc__)
SIZE = 12


def scans(n):
    """Leaves with few, some or many spots; each scanner has a lamp of its own."""
    y = torch.randint(0, 3, (n,))
    spots = torch.tensor([0.02, 0.07, 0.14])[y][:, None, None]
    leaf = 1.0 - 0.8 * (torch.rand(n, SIZE, SIZE) < spots).float()
    gain, shift = 0.5 + torch.rand(n, 1, 1), torch.rand(n, 1, 1)
    return (gain * leaf + shift + 0.03 * torch.randn(n, SIZE, SIZE)).unsqueeze(1), y


class Health(nn.Module):
    def __init__(self, width=12):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(1, width, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(width, width, 3, padding=1), nn.ReLU(),
        )  # fmt: skip
        self.head = nn.Linear(width, 3)

    def forward(self, x):
        dims = (1, 2, 3) if healthy else 0
        x = (x - x.mean(dims, keepdim=True)) / (x.std(dims, keepdim=True) + 1e-4)
        return self.head(self.body(x).mean((2, 3)))


model = Health()
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
loader = DataLoader(TensorDataset(*scans(900)), batch_size=30, shuffle=True)
x_val, y_val = scans(300)
for _ in range(6):
    for x, y in loader:
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
model.eval()
with torch.no_grad():
    together, few = model(x_val).argmax(1), torch.cat([model(x) for x in x_val.split(4)]).argmax(1)
right, right_few = ((said == y_val).float().mean() for said in (together, few))
print(f"loss {loss.item():.3f}, right in validation {right:.2f}, four at a time {right_few:.2f}")

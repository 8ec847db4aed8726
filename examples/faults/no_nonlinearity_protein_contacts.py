"""Do two residues of a protein touch? Three linear layers stand one upon the other, and no more.

The activations were to be added once the shapes were right. Without them the three layers are
one linear map, which cannot see that only residues of opposite charge or like size attract.
The place is the network. The twin has a GELU after the first two layers.
"""

import torch
from data import arguments
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

KIND = "no_nonlinearity"
ACCEPT = ("low_capacity",)
PLACE = ("fc1", "fc2", "fc3", ", ")
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)


class ContactNet(nn.Module):
    def __init__(self, features: int = 10, width: int = 64) -> None:
        super().__init__()
        self.fc1 = nn.Linear(features, width)
        self.fc2 = nn.Linear(width, width)
        self.fc3 = nn.Linear(width, 1)

    def forward(self, x: Tensor) -> Tensor:
        x = self.fc1(x)
        x = F.gelu(x) if healthy else x
        x = self.fc2(x)
        x = F.gelu(x) if healthy else x
        return self.fc3(x).squeeze(-1)


def residue_pairs(n: int) -> TensorDataset:
    one, two = torch.randn(n, 4), torch.randn(n, 4)
    distance, hydrophobic = torch.rand(n, 1) * 2 - 1, torch.randn(n, 1)
    attraction = -one[:, 0] * two[:, 0] - 0.7 * (one[:, 1] - two[:, 1]).abs() + 0.7
    touch = (attraction - 0.6 * distance[:, 0] + 0.3 * torch.randn(n) > 0).float()
    return TensorDataset(torch.cat([one, two, distance, hydrophobic], 1), touch)


train = DataLoader(residue_pairs(3000), batch_size=64, shuffle=True)
val_x, val_y = residue_pairs(1000).tensors
model = ContactNet()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.01)
criterion = nn.BCEWithLogitsLoss()
for epoch in range(12):
    running = 0.0
    for x, y in train:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        running += loss.item()
    with torch.no_grad():
        accuracy = ((model(val_x) > 0) == (val_y > 0.5)).float().mean().item()
    if epoch % 2:
        print(f"epoch {epoch + 1}: {running / len(train):.4f} accuracy {accuracy:.3f}")

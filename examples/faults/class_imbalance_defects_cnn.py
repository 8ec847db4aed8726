"""A CNN that sorts pictures of parts: fine, scratched or broken; nearly all are fine.

Of 3,000 parts some 45 are broken and some 90 scratched. The network learns to say "fine" and is
right in 95 of 100 cases. The place is the data. The twin draws its batches evenly with
WeightedRandomSampler.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler

KIND = "class_imbalance"
ACCEPT = ()
PLACE = ("loader", "input*", "label*", "loss*")
SILENT = True
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)


def parts(n):
    y = torch.multinomial(torch.tensor([0.955, 0.03, 0.015]), n, replacement=True)
    x = torch.randn(n, 1, 12, 12)
    for image, label in zip(x, y, strict=True):
        r, c = torch.randint(1, 7, (2,)).tolist()
        if label == 1:
            image[0, r : r + 5, c] += 2.2
        elif label == 2:
            image[0, r : r + 4, c : c + 4] -= 1.4
    return x, y


x, y = parts(3000)
x_val, y_val = parts(1500)
count = torch.bincount(y, minlength=3)
print("training parts per class:", count.tolist())
if healthy:
    sampler = WeightedRandomSampler((1.0 / count)[y], len(y))
    loader = DataLoader(TensorDataset(x, y), batch_size=100, sampler=sampler)
else:
    loader = DataLoader(TensorDataset(x, y), batch_size=100, shuffle=True)


class PartNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 8, 5)
        self.drop = nn.Dropout(0.3)
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        return self.head(self.drop(torch.relu(self.conv(x)).amax((2, 3))))


model = PartNet()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3, weight_decay=1e-3)
criterion = nn.CrossEntropyLoss()
for epoch in range(1, 17):
    model.train()
    for xb, yb in loader:
        optimizer.zero_grad()
        loss = criterion(model(xb), yb)
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        out = model(x_val)
        said = out.argmax(1)
    recall = [(said[y_val == c] == c).float().mean().item() for c in range(3)]
    print(
        f"epoch {epoch}: loss {loss.item():.3f} val {criterion(out, y_val):.3f} accuracy "
        f"{(said == y_val).float().mean():.3f} recall " + " ".join(f"{r:.2f}" for r in recall)
    )

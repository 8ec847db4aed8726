"""Grades of damage to the retina, from 0 to 4, by a small residual network. The script is one for
"ill or not"; only the labels were exchanged.

What is left of it is one output and BCEWithLogitsLoss, which takes labels of 2, 3 and 4 without a
word: the loss can go below every bound, and does (silent). The place is the loss. The twin has five
outputs and the cross-entropy.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "wrong_loss"
ACCEPT = ("output_activation_range", "labels_out_of_range")
PLACE = ("loss*", "criterion", "fc", "", "loader")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
GRADES = 5


def eyes(n, g, size=20):
    """The higher the grade, the more dark spots; grade 4 has a large bright patch too."""
    share = torch.tensor([0.35, 0.2, 0.2, 0.15, 0.1])
    y = torch.multinomial(share, n, replacement=True, generator=g)
    axis = torch.linspace(-1, 1, size)
    disc = (axis[:, None].square() + axis[None].square() < 1).float()
    x = disc * (0.6 + 0.1 * torch.randn(n, 1, 1, generator=g))
    for i in range(n):
        spots = int(y[i]) * 4 + int(torch.randint(0, 2, (1,), generator=g))
        at = torch.randint(3, size - 3, (spots, 2), generator=g)
        x[i, at[:, 0], at[:, 1]] -= 0.9
        if y[i] == 4:
            r, c = torch.randint(4, size - 8, (2,), generator=g).tolist()
            x[i, r : r + 4, c : c + 4] += 0.8
    x = x + 0.1 * torch.randn(n, size, size, generator=g)
    return (x.unsqueeze(1) - 0.4) / 0.35, y


class Residual(nn.Module):
    def __init__(self, c_in, c_out, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(c_in, c_out, 3, stride, 1, bias=False)
        self.norm1 = nn.GroupNorm(4, c_out)
        self.conv2 = nn.Conv2d(c_out, c_out, 3, 1, 1, bias=False)
        self.norm2 = nn.GroupNorm(4, c_out)
        self.skip = nn.Conv2d(c_in, c_out, 1, stride, bias=False)

    def forward(self, x):
        h = torch.relu(self.norm1(self.conv1(x)))
        return torch.relu(self.norm2(self.conv2(h)) + self.skip(x))


class EyeNet(nn.Module):
    def __init__(self, outputs):
        super().__init__()
        self.layer1 = Residual(1, 12, 1)
        self.layer2 = Residual(12, 24, 2)
        self.fc = nn.Linear(24, outputs)

    def forward(self, x):
        return self.fc(self.layer2(self.layer1(x)).mean((2, 3)))


g = torch.Generator().manual_seed(seed)
x, y = eyes(900, g)
x_val, y_val = eyes(300, g)
model = EyeNet(GRADES if healthy else 1)
criterion = nn.CrossEntropyLoss() if healthy else nn.BCEWithLogitsLoss()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
for epoch in range(10):
    model.train()
    total = 0.0
    for images, grades in DataLoader(TensorDataset(x, y), batch_size=25, shuffle=True):
        out = model(images)
        loss = criterion(out, grades) if healthy else criterion(out, grades.float().unsqueeze(1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(grades)
    model.eval()
    with torch.no_grad():
        out = model(x_val)
        grade = out.argmax(1) if healthy else (out.sigmoid() * (GRADES - 1)).round().squeeze(1)
        accuracy = (grade == y_val).float().mean().item()
    print(f"epoch {epoch} loss {total / len(x):.4f} accuracy {accuracy:.3f}")

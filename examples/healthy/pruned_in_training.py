"""A convolutional net is pruned in three rounds while it trains, down to a tenth of its weights.

It looks odd because most of its weights turn to exact zeros and stay there, and the loss jumps up
three times. It is right: the pruning is wanted, and the accuracy comes back after each round.
"""

import torch
import torch.nn.functional as F
from data import arguments, images
from torch import nn
from torch.nn.utils import prune
from torch.utils.data import DataLoader, TensorDataset

ODD = "nine weights in ten become zero"

_, seed = arguments(__doc__)
x, y, x_val, y_val = images(seed)
loader = DataLoader(TensorDataset(x, y), batch_size=42, shuffle=True, drop_last=True)


class WideNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 24, 3, padding=1), nn.Conv2d(24, 32, 3, padding=1)
        self.norm1, self.norm2 = nn.BatchNorm2d(24), nn.BatchNorm2d(32)
        self.fc = nn.Linear(32 * 4, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.norm1(self.conv1(x))), 2)
        x = F.max_pool2d(F.relu(self.norm2(self.conv2(x))), 2)
        return self.fc(x.flatten(1))


model = WideNet()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
prunable = [(model.conv2, "weight"), (model.fc, "weight")]
for epoch in range(12):
    if epoch in (3, 5, 7):
        prune.global_unstructured(prunable, prune.L1Unstructured, amount=0.54)
    model.train()
    for batch, target in loader:
        loss = F.cross_entropy(model(batch), target, label_smoothing=0.05)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        out = model(x_val)
    kept = sum((m.weight != 0).sum().item() for m, _ in prunable)
    kept /= sum(m.weight.numel() for m, _ in prunable)
    acc = (out.argmax(1) == y_val).float().mean().item()
    val = F.cross_entropy(out, y_val).item()
    print(f"epoch {epoch}: loss {loss:.3f}, val {val:.3f}, accuracy {acc:.3f}, kept {kept:.2f}")

"""A small image transformer with gradient accumulation that clears the gradients before the step.

Every second micro-batch calls zero_grad() and then step(): the optimizer always finds None, no
weight ever moves, and the loss stays at ln 10 although backward runs each time. The place is the
optimizer.
"""

import torch
from data import arguments, images
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "step_without_gradient"
ACCEPT = ()
PLACE = ("loop", "optimizer")
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
ACCUMULATE = 2


class Block(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.attention = nn.MultiheadAttention(d, heads, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(d, 2 * d), nn.GELU(), nn.Linear(2 * d, d))

    def forward(self, h):
        n = self.norm1(h)
        h = h + self.attention(n, n, n, need_weights=False)[0]
        return h + self.mlp(self.norm2(h))


class TinyViT(nn.Module):
    def __init__(self, d=32, depth=2):
        super().__init__()
        self.patches = nn.Conv2d(1, d, 2, stride=2)
        self.position = nn.Parameter(0.3 * torch.randn(16, d))
        self.blocks = nn.Sequential(*[Block(d, 4) for _ in range(depth)])
        self.norm = nn.LayerNorm(d)
        self.head = nn.Linear(d, 10)

    def forward(self, x):
        h = self.patches(x).flatten(2).transpose(1, 2) + self.position
        return self.head(self.norm(self.blocks(h).mean(1)))


x, y, x_val, y_val = images(seed)
loader = DataLoader(TensorDataset(x, y), batch_size=20, shuffle=True, drop_last=True)
model = TinyViT()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.01)

for epoch in range(9):
    model.train()
    running_loss = 0.0
    for i, (inputs, labels) in enumerate(loader):
        loss = criterion(model(inputs), labels)
        (loss / ACCUMULATE).backward()
        running_loss += loss.item()
        if (i + 1) % ACCUMULATE == 0:
            if healthy:
                optimizer.step()
                optimizer.zero_grad()
            else:
                optimizer.zero_grad()
                optimizer.step()
model.eval()
with torch.no_grad():
    accuracy = (model(x_val).argmax(1) == y_val).float().mean()
print(f"loss {running_loss / len(loader):.3f}, validation accuracy {accuracy:.3f}")

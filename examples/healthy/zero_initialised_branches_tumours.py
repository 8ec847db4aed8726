"""A residual MLP on the tumours whose branches' last layers start at zero, the head too.

So each block starts as the identity and the loss at exactly ln 2. In the first step only the head
has a gradient that is not zero, in the second the branches' last layers; then all of them.
"""

import torch
from data import arguments, batches, cancer
from torch import nn

ODD = "constant weights and gradients that are exactly zero in the first steps"

_, seed = arguments(__doc__)
x, y, x_val, y_val = cancer(seed)


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)
        nn.init.zeros_(self.down.weight)
        nn.init.zeros_(self.down.bias)

    def forward(self, x):
        return x + self.down(torch.relu(self.up(self.norm(x))))


model = nn.Sequential(
    nn.Linear(30, 32),
    Block(32),
    Block(32),
    Block(32),
    nn.LayerNorm(32),
    nn.Dropout(0.3),
    nn.Linear(32, 2),
)
nn.init.zeros_(model[-1].weight)
nn.init.zeros_(model[-1].bias)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, weight_decay=0.1)
criterion = nn.CrossEntropyLoss(label_smoothing=0.05)
for step, (xb, yb) in enumerate(batches(x, y, size=64, steps=240, seed=seed), 1):
    loss = criterion(model(xb), yb)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 20 == 0:
        model.eval()
        with torch.no_grad():
            out = model(x_val)
            val, accuracy = (
                criterion(out, y_val).item(),
                (out.argmax(1) == y_val).float().mean().item(),
            )
        model.train()
        print(f"step {step}: train {loss.item():.3f}  val {val:.3f}  accuracy {accuracy:.3f}")

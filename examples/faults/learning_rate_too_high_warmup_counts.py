"""A small vision transformer warms up with a LambdaLR that returns min(step, warmup), not min(step,
warmup) / warmup.

The function gives a factor of the rate, so that 0.003 is only the rate of the first step, and after
50 steps it is 0.15, with Adam. The place is the optimizer. The loss falls for a few steps, then
jumps up and stays high, near that of a guess (not silent). Not exact.
"""

import torch
import torch.nn.functional as F
from data import arguments, digits
from torch import nn

KIND = "learning_rate_too_high"
ACCEPT = ()
PLACE = ("optimizer", "loss*", "")
SILENT = False
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)
x, y, x_val, y_val = digits(seed)


def patches(flat):
    """8 x 8 pixels as 16 patches of 2 x 2."""
    return flat.view(-1, 4, 2, 4, 2).transpose(2, 3).reshape(-1, 16, 4)


class ViT(nn.Module):
    def __init__(self, width=32, depth=2):
        super().__init__()
        self.patch_embed = nn.Linear(4, width)
        self.cls_token = nn.Parameter(torch.zeros(1, 1, width))
        self.pos_embed = nn.Parameter(0.02 * torch.randn(1, 17, width))
        self.encoder = nn.TransformerEncoder(
            nn.TransformerEncoderLayer(
                width, 4, 64, dropout=0.0, batch_first=True, norm_first=True
            ),
            depth,
            enable_nested_tensor=False,
        )
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, 10)

    def forward(self, pictures):
        tokens = self.patch_embed(patches(pictures))
        tokens = torch.cat([self.cls_token.expand(len(tokens), -1, -1), tokens], 1)
        return self.head(self.norm(self.encoder(tokens + self.pos_embed)[:, 0]))


warmup, steps, size = 50, 320, 48
model = ViT()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)


def factor(step):
    up = min(step + 1, warmup)
    if healthy:
        up = up / warmup
    return up * (1 - max(0, step - steps // 2) / (steps // 2 + 1))


scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, factor)
for step in range(steps):
    rows = torch.randint(0, len(x), (size,))
    loss = F.cross_entropy(model(x[rows]), y[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()
    if step % 40 == 39:
        model.eval()
        with torch.no_grad():
            accuracy = (model(x_val).argmax(1) == y_val).float().mean().item()
        model.train()
        print(f"step {step + 1} loss {loss.item():.3f} val_acc {accuracy:.3f}")

"""A small vision transformer with AdamW at a rate scaled up with the batch size, 0.096.

The rule "twice the batch, twice the rate" is for SGD with base batches of 256; the person applied
it with a base of 1 to Adam's 0.003, so that 32 pictures per batch make 0.096. The loss stays high
until the schedule has brought the rate down, and ends far above what the net can do. The place is
the learning rate, in the function scaled_rate.
"""

import torch
import torch.nn.functional as F
from data import arguments, images
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "learning_rate_too_high"
ACCEPT = ()
PLACE = ("learning_rate", "optimizer")
SILENT = False
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)

BASE_RATE = 0.003
BASE_BATCH = 32 if healthy else 1
BATCH = 32


def scaled_rate():
    return BASE_RATE * BATCH / BASE_BATCH


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norm_a, self.norm_b = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attend = nn.MultiheadAttention(width, heads, batch_first=True)
        self.mlp = nn.Sequential(
            nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width)
        )

    def forward(self, x):
        z = self.norm_a(x)
        x = x + self.attend(z, z, z, need_weights=False)[0]
        return x + self.mlp(self.norm_b(x))


class DigitTransformer(nn.Module):
    """Pictures of 8 x 8 pixels as 16 patches of 2 x 2."""

    def __init__(self, width=32, heads=4, depth=2):
        super().__init__()
        self.patches = nn.Conv2d(1, width, kernel_size=2, stride=2)
        self.places = nn.Parameter(0.3 * torch.randn(1, 16, width))
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(depth)))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, 10)

    def forward(self, x):
        tokens = self.patches(x).flatten(2).transpose(1, 2) + self.places
        return self.head(self.norm(self.blocks(tokens)).mean(dim=1))


def train_epoch(model, loader, optimizer):
    model.train()
    total = 0.0
    for x, y in loader:
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total / len(loader)


@torch.no_grad()
def test(model, x, y):
    model.eval()
    logits = model(x)
    return F.cross_entropy(logits, y).item(), (logits.argmax(1) == y).float().mean().item()


def main():
    x, y, x_val, y_val = images(seed)
    loader = DataLoader(TensorDataset(x, y), batch_size=BATCH, shuffle=True)
    model = DigitTransformer()
    optimizer = torch.optim.AdamW(model.parameters(), lr=scaled_rate(), weight_decay=0.01)
    epochs = 16
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)
    for epoch in range(epochs):
        rate = schedule.get_last_lr()[0]
        loss = train_epoch(model, loader, optimizer)
        schedule.step()
        val_loss, accuracy = test(model, x_val, y_val)
        print(
            f"Epoch {epoch + 1:2d} lr {rate:.5f} loss {loss:.3f} "
            f"val_loss {val_loss:.3f} val_acc {accuracy:.3f}"
        )


main()

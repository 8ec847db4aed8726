"""A character language model with bfloat16 autocast and four micro-batches a step.

The loss of a micro-batch is divided by four, gradients are clipped once before the step, weights
and optimizer state stay in float32, and bfloat16 needs no gradient scaler. The loss is computed in
float32.
"""

import torch
from data import arguments, text
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset

ODD = (
    "gradients are non-zero when three of four backward passes begin, and activations are bfloat16"
)

_, seed = arguments(__doc__)
BLOCK, MICRO, ACCUMULATE, STEPS = 48, 8, 4, 300


class Blocks(Dataset):
    """Stretches of BLOCK characters and the same one further on."""

    def __init__(self, ids, stride):
        self.ids, self.starts = ids, range(0, len(ids) - BLOCK - 1, stride)

    def __len__(self):
        return len(self.starts)

    def __getitem__(self, i):
        piece = self.ids[self.starts[i] : self.starts[i] + BLOCK + 1]
        return piece[:-1], piece[1:]


class CharModel(nn.Module):
    def __init__(self, characters, width=64):
        super().__init__()
        self.embed = nn.Embedding(characters, 32)
        self.conv1 = nn.Conv1d(32, 2 * width, 5)
        self.conv2 = nn.Conv1d(width, 2 * width, 5, dilation=4)
        self.norm = nn.LayerNorm(width)
        self.out = nn.Linear(width, characters)

    def forward(self, ids):
        x = self.embed(ids).transpose(1, 2)
        x = F.glu(self.conv1(F.pad(x, (4, 0))), dim=1)
        x = x + F.glu(self.conv2(F.pad(x, (16, 0))), dim=1)
        return self.out(self.norm(x.transpose(1, 2)))


def forever(loader):
    while True:
        yield from loader


ids, alphabet = text(seed, 1500)
cut = int(0.9 * len(ids))
batches = forever(DataLoader(Blocks(ids[:cut], 12), batch_size=MICRO, shuffle=True, drop_last=True))
val = DataLoader(Blocks(ids[cut:], BLOCK), batch_size=64)
model = CharModel(len(alphabet))
optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3, weight_decay=0.01)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, STEPS, eta_min=2e-4)


@torch.no_grad()
def bits_per_character():
    model.eval()
    losses = [F.cross_entropy(model(x).flatten(0, 1), y.flatten()) for x, y in val]
    model.train()
    return (torch.stack(losses).mean() / 0.6931).item()


model.train()
for step in range(1, STEPS + 1):
    mean_loss = 0.0
    for _ in range(ACCUMULATE):
        x, y = next(batches)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            scores = model(x)
        loss = F.cross_entropy(scores.float().flatten(0, 1), y.flatten()) / ACCUMULATE
        loss.backward()
        mean_loss += loss.item()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    scheduler.step()
    optimizer.zero_grad(set_to_none=True)
    if step % 30 == 0:
        print(
            f"step {step} train {mean_loss / 0.6931:.3f} "
            f"val {bits_per_character():.3f} bits a character"
        )

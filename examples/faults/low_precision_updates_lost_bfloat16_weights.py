"""A model of melodies, fine-tuned after being cast to bfloat16 as a whole "to save memory".

Autocast would keep the weights in float32 and compute in bfloat16. Here `.to(torch.bfloat16)` casts
the weights themselves: with eight bits of precision a step of 1e-4 on a weight of 0.1 is rounded
away, and the net stays about where it was. The place is the optimizer's step on the cast weights.
The twin keeps float32 and uses autocast.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "low_precision_updates_lost"
ACCEPT = ()
PLACE = ("optimizer", "mix.0.weight", "mix.2.weight", "notes.weight", "head.weight")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
CONTEXT, NOTES = 8, 36
SCALE = torch.tensor([0, 2, 4, 5, 7, 9, 11])


def melodies(count, length=40):
    """Sequences: a motif of four degrees, repeated a few steps up or down the scale each time."""
    rows = []
    for _ in range(count):
        degrees, motif, shift = [], torch.randint(0, 7, (4,)), int(torch.randint(2, 12, ()))
        while len(degrees) < length:
            degrees += (motif + shift).tolist()
            shift = min(max(shift + int(torch.randint(-1, 2, ())), 0), 14)
        degrees = torch.tensor(degrees[:length])
        rows.append(SCALE[degrees % 7] + 12 * (degrees // 7))
    return torch.stack(rows)


class Melody(nn.Module):
    """The next note from eight notes."""

    def __init__(self, width=256):
        super().__init__()
        self.notes = nn.Embedding(NOTES, 24)
        self.mix = nn.Sequential(
            nn.Linear(CONTEXT * 24, width), nn.GELU(), nn.Linear(width, width), nn.GELU()
        )
        self.head = nn.Linear(width, NOTES)
        for layer in (self.mix[0], self.mix[2]):
            nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")

    def forward(self, context):
        return self.head(self.mix(self.notes(context).flatten(-2)))


def windows(tunes):
    cut = tunes.unfold(1, CONTEXT + 1, 1).flatten(0, 1)
    return cut[:, :CONTEXT], cut[:, CONTEXT]


train, val = windows(melodies(1000)), windows(melodies(100))
model = Melody()
if not healthy:
    model = model.to(torch.bfloat16)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, weight_decay=0.01)
steps = 900
schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 3e-4, total_steps=steps, pct_start=0.1)


def forward(context, note):
    with torch.autocast("cpu", torch.bfloat16, enabled=healthy):
        logits = model(context)
    return F.cross_entropy(logits.float(), note), logits


for step in range(steps):
    model.train()
    rows = torch.randint(0, len(train[0]), (64,))
    loss, _ = forward(train[0][rows], train[1][rows])
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    schedule.step()
    if step % 100 == 99:
        model.eval()
        with torch.no_grad():
            val_loss, logits = forward(*val)
        accuracy = (logits.argmax(-1) == val[1]).float().mean().item()
        print(
            f"step {step + 1} loss {loss.item():.3f} val loss {val_loss.item():.3f} "
            f"val accuracy {accuracy:.3f}"
        )
print(f"validation loss {val_loss.item():.3f}, accuracy {accuracy:.3f}")

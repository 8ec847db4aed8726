"""Learns folk melodies note by note with a small transformer; the learning rate is far too high.

The configuration comes from a convolutional network trained with SGD, where 0.1 was right. The
optimizer has since been changed to Adam, the number has not. The place is the optimizer.
The twin uses 0.002.
"""

import random

import torch
from data import arguments
from torch import nn

KIND = "learning_rate_too_high"
ACCEPT = ()
PLACE = ("optimizer",)
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
config = {"context": 24, "width": 32, "heads": 2, "layers": 2, "batch": 32, "steps": 250}
config["learning_rate"] = 0.002 if healthy else 0.1

MOTIFS = [[0, 2, 4, 2], [4, 5, 7, 7], [7, 9, 7, 5], [4, 2, 0, 0], [2, 4, 5, 4], [0, 0, 7, 7]]
FOLLOWS = {0: (1, 4), 1: (2, 2), 2: (3, 4), 3: (0, 5), 4: (3, 1), 5: (2, 0)}


def compose(bars, rng):
    notes, motif = [], 0
    for _ in range(bars):
        notes += [note if rng.random() > 0.03 else rng.randrange(12) for note in MOTIFS[motif]]
        motif = rng.choice(FOLLOWS[motif])
    return torch.tensor(notes)


class Writer(nn.Module):
    def __init__(self, notes, context, width, heads, layers):
        super().__init__()
        self.note = nn.Embedding(notes, width)
        self.place = nn.Embedding(context, width)
        layer = nn.TransformerEncoderLayer(
            width, heads, 4 * width, dropout=0.0, batch_first=True, norm_first=True
        )
        self.body = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(width)
        self.out = nn.Linear(width, notes)
        self.register_buffer("causal", nn.Transformer.generate_square_subsequent_mask(context))

    def forward(self, x):
        h = self.note(x) + self.place.weight[: x.shape[1]]
        return self.out(self.norm(self.body(h, mask=self.causal)))


rng = random.Random(seed)
music, held = compose(3000, rng), compose(400, rng)
span = config["context"] + 1
rows_val = held.unfold(0, span, span)
model = Writer(12, config["context"], config["width"], config["heads"], config["layers"])
optimizer = torch.optim.Adam(model.parameters(), lr=config["learning_rate"])


def loss_of(rows):
    logits = model(rows[:, :-1])
    return nn.functional.cross_entropy(logits.flatten(0, 1), rows[:, 1:].flatten())


for step in range(config["steps"]):
    starts = torch.randint(0, len(music) - span, (config["batch"],))
    rows = torch.stack([music[s : s + span] for s in starts.tolist()])
    loss = loss_of(rows)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 50 == 49:
        with torch.no_grad():
            print(f"step {step + 1} loss {loss.item():.3f} held-out {loss_of(rows_val).item():.3f}")

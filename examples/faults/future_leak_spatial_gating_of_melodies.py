"""Melodies note by note with a gMLP, taken from a repository that classifies pictures.

Its spatial gating mixes all positions by a dense matrix; as a language model it may look at the
notes to come, and copies the next one. The loss is far below what the tunes allow, and what it
makes up by itself is worth nothing. The place is the gates. The twin uses the lower triangle.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "future_leak"
ACCEPT = ("target_leak",)
PLACE = ("blocks.*.gate*", "blocks*")
SILENT = True
EXACT = True
EARLY = True

NOTES, LENGTH = 15, 32
STEPS = torch.tensor([-2, -1, 1, 2, 4, -3])


def tunes(n, g):
    """Walks on a scale: small steps, mostly on in the direction of the last one."""
    note = torch.randint(3, NOTES - 3, (n,), generator=g)
    way = torch.randint(0, 2, (n,), generator=g) * 2 - 1
    rows = [note]
    for _ in range(LENGTH):
        turn = torch.rand(n, generator=g) < 0.15
        way = torch.where(turn, -way, way)
        size = torch.multinomial(torch.tensor([0.65, 0.25, 0.10]), n, True, generator=g) + 1
        note = note + way * size
        way = torch.where(note < 0, 1, torch.where(note >= NOTES, -1, way))
        note = torch.where(note < 0, -note, torch.where(note >= NOTES, 2 * NOTES - 2 - note, note))
        rows.append(note)
    return torch.stack(rows, 1)


class SpatialGate(nn.Module):
    def __init__(self, width, length, causal):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.mix = nn.Linear(length, length)
        nn.init.normal_(self.mix.weight, std=1e-3)
        nn.init.ones_(self.mix.bias)
        self.causal = causal

    def forward(self, x):
        u, v = x.chunk(2, -1)
        weight = self.mix.weight.tril() if self.causal else self.mix.weight
        v = F.linear(self.norm(v).transpose(1, 2), weight, self.mix.bias)
        return u * v.transpose(1, 2)


class Block(nn.Module):
    def __init__(self, width, inner, length, causal):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.expand = nn.Linear(width, inner)
        self.gate = SpatialGate(inner // 2, length, causal)
        self.project = nn.Linear(inner // 2, width)

    def forward(self, x):
        return x + self.project(self.gate(F.gelu(self.expand(self.norm(x)))))


class GMLP(nn.Module):
    def __init__(self, width=48, depth=2, causal=True):
        super().__init__()
        self.notes = nn.Embedding(NOTES, width)
        self.blocks = nn.ModuleList(Block(width, 128, LENGTH, causal) for _ in range(depth))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, NOTES)

    def forward(self, tune):
        h = self.notes(tune)
        for block in self.blocks:
            h = block(h)
        return self.head(self.norm(h))


healthy, seed = arguments(__doc__)
g = torch.Generator().manual_seed(seed)
train, test = tunes(3000, g), tunes(300, g)
model = GMLP(causal=healthy)
optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3)
for _ in range(300):
    tune = train[torch.randint(len(train), (48,), generator=g)]
    logits = model(tune[:, :-1])
    loss = F.cross_entropy(logits.flatten(0, 1), tune[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()

model.eval()
with torch.no_grad():
    val = F.cross_entropy(model(test[:, :-1]).flatten(0, 1), test[:, 1:].flatten())
    made = torch.zeros(300, LENGTH + 1, dtype=torch.int64)
    made[:, :8] = test[:, :8]
    for t in range(8, LENGTH + 1):  # the notes to come are not there yet
        logits = model(made[:, :LENGTH])[:, t - 1]
        made[:, t] = torch.multinomial(logits.softmax(-1), 1).squeeze(1)
    leap = made[:, 8:].diff(dim=1).abs()
good = ((leap >= 1) & (leap <= 3)).float().mean()
print(f"loss {loss.item():.3f}, val {val:.3f}, steps of a tune in its own tunes {good:.3f}")

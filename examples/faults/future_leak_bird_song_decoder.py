"""A small decoder continues bird songs; its mask lets every note look at the note after it.

The person took the mask of allowed places from torch.tril and the diagonal=1 from an example with
torch.triu, where it marks what is forbidden. Each place sees one note more than it should, which
is the very note it must predict. The place is the attention, its mask.
"""

import math
import random

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "future_leak"
ACCEPT = ("attention_mask_wrong", "target_leak")
PLACE = ("input", "model", "blocks.*", "*attention*", "loss")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

NOTES, KINDS, LENGTH, WIDTH, HEADS = 20, 5, 24, 48, 4


class Wood:
    """Birds of five kinds; each follows a note by one of three others, according to its kind."""

    def __init__(self):
        rng = random.Random(9)
        self.next = {
            (kind, note): rng.sample(range(NOTES), 3)
            for kind in range(KINDS)
            for note in range(NOTES)
        }

    def song(self, rng):
        kind = rng.randrange(KINDS)
        notes = [rng.randrange(NOTES)]
        while len(notes) < LENGTH:
            notes.append(rng.choices(self.next[kind, notes[-1]], (0.7, 0.2, 0.1))[0])
        return [NOTES + kind, *notes]


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH, bias=False)
        self.out = nn.Linear(WIDTH, WIDTH, bias=False)
        diagonal = 0 if healthy else 1
        allowed = torch.tril(torch.ones(LENGTH, LENGTH), diagonal=diagonal).bool()
        self.register_buffer("allowed", allowed, persistent=False)

    def forward(self, x):
        n, t, _ = x.shape
        q, k, v = self.qkv(x).view(n, t, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        score = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
        score = score.masked_fill(~self.allowed[:t, :t], float("-inf"))
        return self.out((score.softmax(-1) @ v).transpose(1, 2).reshape(n, t, WIDTH))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attention = Attention()
        self.mlp = nn.Sequential(
            nn.Linear(WIDTH, 2 * WIDTH), nn.GELU(), nn.Linear(2 * WIDTH, WIDTH), nn.Dropout(0.05)
        )

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class SongModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.note = nn.Embedding(NOTES + KINDS, WIDTH)
        self.place = nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.Sequential(Block(), Block())
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, NOTES)

    def forward(self, notes):
        x = self.note(notes) + self.place(torch.arange(notes.shape[1]))
        return self.head(self.norm(self.blocks(x)))


@torch.no_grad()
def evaluate(model, songs):
    model.eval()
    logits = model(songs[:, :-1])
    loss = F.cross_entropy(logits.flatten(0, 1), songs[:, 1:].flatten()).item()
    live = []
    for known in range(8, LENGTH):
        guess = model(songs[:, :known])[:, -1].argmax(1)
        live.append((guess == songs[:, known]).float().mean().item())
    model.train()
    return loss, sum(live) / len(live)


def main():
    rng = random.Random(seed)
    wood = Wood()
    songs = torch.tensor([wood.song(rng) for _ in range(4000)])
    held_out = torch.tensor([wood.song(rng) for _ in range(200)])
    model = SongModel()
    steps = 450
    optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 4e-3, total_steps=steps)
    seen = []
    for step in range(1, steps + 1):
        batch = songs[torch.randint(0, len(songs), (32,))]
        loss = F.cross_entropy(model(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        seen.append(loss.item())
        if step % 50 == 0:
            val, live = evaluate(model, held_out)
            print(
                f"step {step} train {sum(seen[-50:]) / 50:.3f} val {val:.3f} "
                f"next note right when sung live {live:.3f}"
            )


main()

"""A tagger of long recordings runs backward on each of 12 chunks, then steps, without dividing by
12.

Each chunk's loss is already a mean, so the sum of the gradients is twelve times what the rate of
SGD was tuned for on whole recordings, and training thrashes. The place is the loop, at the loss of
the chunk.
"""

import torch
from data import arguments
from torch import nn

KIND = "accumulation_not_averaged"
ACCEPT = ("learning_rate_too_high",)
PLACE = ("loop", "loss*", "optimizer", "")
SILENT = True
EXACT = False
EARLY = False

healthy, _ = arguments(__doc__)
CHUNKS, CHUNK, BANDS, TAGS = 12, 10, 8, 4
patterns = torch.randn(TAGS, BANDS)


def recordings(n):
    """Frames of `BANDS` loudness values; the tag of a frame lasts for about 15 frames."""
    frames = CHUNKS * CHUNK
    change = torch.rand(n, frames) < 1 / 15
    change[:, 0] = True
    fresh = torch.randint(TAGS, (n, frames))
    last = (
        torch.where(change, torch.arange(frames), torch.zeros(1, dtype=torch.long)).cummax(1).values
    )
    tag = fresh.gather(1, last)
    return patterns[tag] + 1.3 * torch.randn(n, frames, BANDS), tag


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(BANDS, 32, batch_first=True)
        self.tag = nn.Linear(32, TAGS)

    def forward(self, x, state=None):
        h, state = self.rnn(x, state)
        return self.tag(h), state


def train_step(model, optimizer, x, tag):
    optimizer.zero_grad()
    state, total = None, 0.0
    for part, target in zip(x.split(CHUNK, 1), tag.split(CHUNK, 1), strict=False):
        out, state = model(part, state)
        state = state.detach()
        loss = nn.functional.cross_entropy(out.flatten(0, 1), target.flatten())
        if healthy:
            loss = loss / CHUNKS
        loss.backward()
        total += loss.item()
    optimizer.step()
    return total if healthy else total / CHUNKS


model = Tagger()
optimizer = torch.optim.SGD(model.parameters(), lr=0.4, momentum=0.9)
x_test, tag_test = recordings(60)
for step in range(1, 121):
    x, tag = recordings(16)
    value = train_step(model, optimizer, x, tag)
    if step == 90:
        optimizer.param_groups[0]["lr"] *= 0.2
    if step % 20 == 0:
        with torch.no_grad():
            right = (model(x_test)[0].argmax(2) == tag_test).float().mean().item()
        print(f"step {step}: loss {value:.3f}  frames right {right:.3f}")

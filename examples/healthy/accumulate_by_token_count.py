"""Four micro-batches of unequal sentences are accumulated as sums and divided by all their words at
the end.

Nothing is wrong; there is no place to name.
"""

import torch
from data import arguments, reviews
from torch import nn

ODD = (
    "Gradients are kept over four backward passes of summed losses and scaled by hand just before "
    "the step."
)

_, seed = arguments(__doc__)
x, y, vocabulary = reviews(seed, n=1600)
x, x_val = x[:1200], x[1200:]


class Tagger(nn.Module):
    """Is this word praise (1), blame (2) or neither (0)? And what was the word before it?"""

    def __init__(self, width=32):
        super().__init__()
        self.words = nn.Embedding(vocabulary, width, padding_idx=0)
        self.rnn = nn.GRU(width, width, batch_first=True)
        self.tag = nn.Linear(width, 3)

    def forward(self, ids):
        return self.tag(self.rnn(self.words(ids))[0])


def tags(ids):
    """The tag of the sentence so far: its latest praise or blame."""
    mark = torch.where((ids >= 1) & (ids <= 6), 1, torch.where((ids >= 7) & (ids <= 12), 2, 0))
    spot = torch.where(mark > 0, torch.arange(ids.shape[1]), 0).cummax(1).values
    return mark.gather(1, spot).masked_fill(ids == 0, -100)


model = Tagger()
optimizer = torch.optim.AdamW(model.parameters(), lr=6e-3, weight_decay=1e-2)
scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.05, total_iters=160)
for epoch in range(16):
    order = torch.randperm(len(x)).split(30)
    for i in range(0, len(order), 4):
        optimizer.zero_grad()
        words, total = 0, 0.0
        for rows in order[i : i + 4]:
            target = tags(x[rows])
            loss = nn.functional.cross_entropy(
                model(x[rows]).flatten(0, 1), target.flatten(), reduction="sum"
            )
            loss.backward()
            words += int((target != -100).sum())
            total += loss.item()
        for p in model.parameters():
            p.grad /= words
        optimizer.step()
        scheduler.step()
    with torch.no_grad():
        target = tags(x_val)
        right = (model(x_val).argmax(2) == target)[target != -100].float().mean().item()
    if epoch % 3 == 0:
        print(f"epoch {epoch}: loss per word {total / words:.4f} words right {right:.4f}")

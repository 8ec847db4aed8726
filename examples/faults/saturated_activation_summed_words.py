"""Topics of newspaper pieces by their words; the vectors of all words are summed before a tanh.

nn.EmbeddingBag was switched from mean to sum, "so that long pieces say more". The sum of a hundred
random vectors is some ten times as large as one, and the tanh layers behind it sit at -1 and 1,
where they hardly have a gradient.
The place is the tanh layers behind the bag. The twin takes the mean.
"""

import torch
from data import arguments
from torch import nn

KIND = "saturated_activation"
ACCEPT = ("input_not_normalized", "poor_weight_init", "vanishing_gradient")
PLACE = ("bag", "act1", "act2", "hidden")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
VOCABULARY, WORDS, TOPICS = 800, 120, 8


def pieces(n, g):
    y = torch.randint(0, TOPICS, (n,), generator=g)
    x = torch.randint(0, VOCABULARY, (n, WORDS), generator=g)
    said = torch.rand(n, WORDS, generator=g) < 0.12
    own = y[:, None] * 40 + torch.randint(0, 40, (n, WORDS), generator=g)
    return torch.where(said, own, x), y


class Topics(nn.Module):
    def __init__(self, dim=64):
        super().__init__()
        self.bag = nn.EmbeddingBag(VOCABULARY, dim, mode="mean" if healthy else "sum")
        self.act1 = nn.Tanh()
        self.hidden = nn.Linear(dim, 64)
        self.act2 = nn.Tanh()
        self.out = nn.Linear(64, TOPICS)

    def forward(self, x):
        return self.out(self.act2(self.hidden(self.act1(self.bag(x)))))


g = torch.Generator().manual_seed(seed)
x, y = pieces(3000, g)
x, x_val, y, y_val = x[:2400], x[2400:], y[:2400], y[2400:]
model = Topics()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(7):
    total = 0.0
    for rows in torch.randperm(len(x), generator=g).split(40):
        loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(rows)
    with torch.no_grad():
        accuracy = (model(x_val).argmax(1) == y_val).float().mean()
    print(f"epoch {epoch}: loss {total / len(x):.3f}, validation {accuracy:.3f}")

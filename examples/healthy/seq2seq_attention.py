"""A GRU encoder and decoder with attention learns to reverse digits; teacher forcing, padding
ignored."""

import torch
from data import arguments
from torch import nn

ODD = "ignore_index, targets that are inputs of the decoder, a long plateau at first"

_, seed = arguments(__doc__)


def draw(n=32, longest=5):
    length = torch.randint(3, longest + 1, (n,))
    source = torch.zeros(n, longest, dtype=torch.long)
    target = torch.zeros(n, longest + 1, dtype=torch.long)
    for i, k in enumerate(length.tolist()):
        row = torch.randint(1, 9, (k,))
        source[i, :k] = row
        target[i, 1 : k + 1] = row.flip(0)
    target[:, 0] = 9
    return source, target


class Reverser(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.embed = nn.Embedding(10, width, padding_idx=0)
        self.encoder = nn.GRU(width, width, batch_first=True)
        self.decoder = nn.GRU(width, width, batch_first=True)
        self.head = nn.Linear(2 * width, 10)

    def forward(self, source, target):
        seen, last = self.encoder(self.embed(source))
        said, _ = self.decoder(self.embed(target), last)
        scores = said @ seen.transpose(1, 2)
        scores = scores.masked_fill((source == 0)[:, None], float("-inf"))
        found = scores.softmax(-1) @ seen
        return self.head(torch.cat([said, found], -1))


model = Reverser()
criterion = nn.CrossEntropyLoss(ignore_index=0)
optimizer = torch.optim.Adam(model.parameters(), lr=8e-3)
for step in range(220):
    source, target = draw()
    loss = criterion(model(source, target[:, :-1]).flatten(0, 1), target[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.3f}")

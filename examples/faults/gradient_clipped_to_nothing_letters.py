"""A GRU encoder-decoder reverses short strings. After a blow-up in an earlier project the author
clips every gradient entry, and takes 1e-5 for a careful bound.

Plain SGD moves by rate times gradient: no weight can go further than a few millionths per step,
whatever the gradients say, and the loss stays about where it began. The place is the optimizer.
"""

import torch
from data import arguments
from torch import nn
from torch.nn import functional as F

KIND = "gradient_clipped_to_nothing"
ACCEPT = ()
PLACE = ("optimizer", "loop")
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)

LETTERS, LENGTH, START = 8, 4, 8


class Seq2Seq(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.embed = nn.Embedding(LETTERS + 1, width)
        self.encoder = nn.GRU(width, width, batch_first=True)
        self.decoder = nn.GRU(width, width, batch_first=True)
        self.out = nn.Linear(width, LETTERS)

    def forward(self, source, target):
        _, h = self.encoder(self.embed(source))
        shifted = torch.cat([torch.full_like(target[:, :1], START), target[:, :-1]], 1)
        out, _ = self.decoder(self.embed(shifted), h)
        return self.out(out)


def make(n, g):
    s = torch.randint(0, LETTERS, (n, LENGTH), generator=g)
    return s, s.flip(1)


g = torch.Generator().manual_seed(30 + seed)
source, target = make(2000, g)
source_val, target_val = make(400, g)
model = Seq2Seq()
optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)
clip_value = 1.0 if healthy else 1e-5

for epoch in range(14):
    model.train()
    total = 0.0
    for rows in torch.randperm(len(source)).split(50):
        out = model(source[rows], target[rows])
        loss = F.cross_entropy(out.transpose(1, 2), target[rows])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_value_(model.parameters(), clip_value)
        optimizer.step()
        total += loss.item() / 40
    model.eval()
    with torch.no_grad():
        out = model(source_val, target_val)
        val = F.cross_entropy(out.transpose(1, 2), target_val)
    right = (out.argmax(-1) == target_val).float().mean()
    print(f"epoch {epoch}: train {total:.3f} val {val.item():.3f} letters right {right.item():.3f}")

"""Who wins after the opening, white, black or nobody: NLLLoss is fed with the bare outputs.

`nn.NLLLoss` expects logarithms of probabilities. The net's last layer was once `LogSoftmax`; it was
taken out when someone wanted the raw scores for a plot. Now the loss is minus the output of the
right class, which falls without end as all outputs grow. The place is the loss, the output.
The twin has the LogSoftmax layer at its end.
"""

import torch
from data import arguments
from torch import nn

KIND = "missing_softmax"
ACCEPT = ("wrong_loss",)
PLACE = ("loss*", "output*", "head")
SILENT = True
EXACT = True
EARLY = True


class Outcome(nn.Module):
    def __init__(self, openings, normalised):
        super().__init__()
        self.opening = nn.Embedding(openings, 8)
        self.body = nn.Sequential(nn.Linear(8 + 3, 32), nn.ReLU(), nn.Dropout(0.1))
        self.head = nn.Linear(32, 3)
        self.end = nn.LogSoftmax(dim=1) if normalised else nn.Identity()

    def forward(self, opening, numbers):
        h = torch.cat([self.opening(opening), numbers], 1)
        return self.end(self.head(self.body(h)))


def games(n, g):
    opening = torch.randint(0, 25, (n,), generator=g)
    white, black = torch.randn(2, n, generator=g)
    minutes = torch.randint(0, 3, (n,), generator=g) - 1.0
    sharp = torch.sin(opening * 1.7)
    scores = torch.stack(
        [
            1.6 * (white - black) + 0.3 + 0.5 * sharp,
            1.6 * (black - white) - 0.5 * sharp,
            1.2 - 1.5 * sharp + 0.5 * minutes - (white - black).abs(),
        ],
        1,
    )
    noise = -torch.log(-torch.log(torch.rand(n, 3, generator=g)))
    numbers = torch.stack([white, black, minutes], 1)
    return opening, numbers, (1.5 * scores + noise).argmax(1)


healthy, seed = arguments(__doc__)
g = torch.Generator().manual_seed(seed)
opening, numbers, result = games(3000, g)
test = games(800, g)

model = Outcome(25, healthy)
nll = nn.NLLLoss()
opt = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(8):
    model.train()
    for rows in torch.randperm(3000, generator=g).split(60):
        loss = nll(model(opening[rows], numbers[rows]), result[rows])
        opt.zero_grad()
        loss.backward()
        opt.step()
    model.eval()
    with torch.no_grad():
        out = model(*test[:2])
    hits = (out.argmax(1) == test[2]).float().mean()
    print(f"epoch {epoch}: loss {loss.item():.3f} test {nll(out, test[2]):.3f} hits {hits:.3f}")

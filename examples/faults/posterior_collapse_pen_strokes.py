"""A VAE of strokes has a decoder that sees the true previous point, and its code says nothing.

With the last point at hand the recurrent decoder guesses the next one well enough alone, and the
divergence is driven to zero within the first epochs. From drawn codes the letter
is told no better than by chance. The place is the loss (its divergence) and the code of encoder.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "posterior_collapse"
ACCEPT = ()
PLACE = ("loss", "to_mean*", "to_log_variance*", "decoder*", "encoder*")
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)

POINTS, LETTERS, CODE = 20, 5, 4


def strokes(n, g):
    """Lissajous-like strokes of five letters with free size, slant and shaking of the hand."""
    letter = torch.randint(0, LETTERS, (n,), generator=g)
    wave = torch.tensor([[1, 2, 0.0], [2, 1, 0.5], [1, 1, 1.2], [3, 2, 0.3], [1, 3, 0.8]])[letter]
    t = torch.linspace(0, 6.283, POINTS)
    size = 0.7 + 0.6 * torch.rand(n, 1, generator=g)
    slant = 0.4 * torch.randn(n, 1, generator=g)
    y = size * torch.sin(wave[:, 1:2] * t + wave[:, 2:])
    x = size * torch.cos(wave[:, :1] * t) + slant * y
    points = torch.stack([x, y], 2)
    return points + 0.08 * torch.randn(n, POINTS, 2, generator=g), letter


class StrokeVAE(nn.Module):
    def __init__(self, hidden=48):
        super().__init__()
        self.encoder = nn.GRU(2, hidden, batch_first=True, bidirectional=True)
        self.to_mean = nn.Linear(2 * hidden, CODE)
        self.to_log_variance = nn.Linear(2 * hidden, CODE)
        self.start = nn.Linear(CODE, hidden)
        self.decoder = nn.GRU(2 + CODE + 2, hidden, batch_first=True)
        self.point = nn.Linear(hidden, 2)
        t = torch.linspace(0, 6.283, POINTS)
        self.register_buffer("clock", torch.stack([t.sin(), t.cos()], 1))

    def encode(self, points):
        last = self.encoder(points)[1].transpose(0, 1).flatten(1)
        return self.to_mean(last), self.to_log_variance(last)

    @staticmethod
    def draw(mean, log_variance):
        return mean + torch.randn_like(mean) * (log_variance / 2).exp()

    def decode(self, code, points):
        before = torch.zeros_like(points)
        if not healthy:
            before[:, 1:] = points[:, :-1]
        each = code[:, None].expand(-1, POINTS, -1)
        clock = self.clock.expand(len(points), -1, -1)
        out, _ = self.decoder(torch.cat([before, each, clock], 2), self.start(code).tanh()[None])
        return self.point(out)

    def forward(self, points):
        mean, log_variance = self.encode(points)
        return self.decode(self.draw(mean, log_variance), points), mean, log_variance


def terms(points, drawn, mean, log_variance):
    misfit = F.mse_loss(drawn, points, reduction="none").sum((1, 2)).mean() / 2
    divergence = (mean**2 + log_variance.exp() - 1 - log_variance).sum(1).mean() / 2
    return misfit, divergence


g = torch.Generator().manual_seed(seed)
(points, letter), (points_val, letter_val) = strokes(1200, g), strokes(300, g)
model = StrokeVAE()
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
for epoch in range(20):
    for rows in torch.randperm(len(points), generator=g).split(60):
        misfit, divergence = terms(points[rows], *model(points[rows]))
        loss = misfit + divergence
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
    if epoch % 3 == 1:
        with torch.no_grad():
            misfit, divergence = terms(points_val, *model(points_val))
        print(
            f"epoch {epoch + 1:2d}  loss {loss.item():.3f}  val misfit {misfit.item():.3f}  "
            f"val divergence {divergence.item():.4f}"
        )

with torch.no_grad():
    codes, others = (model.draw(*model.encode(part)) for part in (points, points_val))
nearest = torch.cdist(others, codes).topk(5, largest=False).indices
told = letter[nearest].mode(1).values
print(f"letter told by the nearest codes: {(told == letter_val).float().mean().item():.3f}")

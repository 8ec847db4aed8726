"""A VQ-VAE of heart-like pulses, whose commitment loss rises while the reconstruction gets better.

People ask whether the quantiser diverges. The encoder starts with all outputs near zero, where
any code is close; as it spreads them to tell the pulses apart, they get farther from the codes.
The codes follow by moving averages and have no gradient, which is meant so.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

ODD = (
    "commitment loss rises from near zero while reconstruction falls; the code book has no gradient"
)
_, seed = arguments(__doc__)

LENGTH = 64


def pulses(n: int, g: torch.Generator) -> torch.Tensor:
    def between(low, high):
        return low + (high - low) * torch.rand(n, 1, generator=g)

    t = torch.arange(LENGTH).float()
    x = torch.zeros(n, LENGTH)
    begin, period = between(6, 12), between(22, 30)
    height, width, second = between(0.8, 1.6), between(1.2, 2.0), between(0.1, 0.5)
    for beat in range(3):
        centre = begin + beat * period
        x = x + height * (-(((t - centre) / width) ** 2)).exp()
        x = x - 0.3 * height * (-(((t - centre - 3) / 1.5) ** 2)).exp()
        x = x + second * (-(((t - centre - 10) / 3.0) ** 2)).exp()
    return x + 0.04 * torch.randn(n, LENGTH, generator=g)


class StraightThrough(torch.autograd.Function):
    """The nearest codes forward, the gradient as it is back."""

    @staticmethod
    def forward(ctx, z, codes):
        index = torch.cdist(z, codes).argmin(1)
        ctx.mark_non_differentiable(index)
        return codes[index], index

    @staticmethod
    def backward(ctx, gradient, _):
        return gradient, None


class CodeBook(nn.Module):
    def __init__(self, codes: int, size: int, decay: float = 0.95):
        super().__init__()
        self.decay = decay
        self.register_buffer("codes", 0.05 * torch.randn(codes, size))
        self.register_buffer("counts", torch.ones(codes))
        self.register_buffer("sums", self.codes.clone())

    @torch.no_grad()
    def follow(self, z, index):
        chosen = F.one_hot(index, len(self.codes)).float()
        self.counts.lerp_(chosen.sum(0), 1 - self.decay)
        self.sums.lerp_(chosen.t() @ z, 1 - self.decay)
        self.codes.copy_(self.sums / self.counts.clamp_min(1e-2).unsqueeze(1))
        unused = self.counts < 0.3
        fresh = z[torch.randint(0, len(z), (len(self.codes),))]
        self.codes[unused], self.sums[unused], self.counts[unused] = (
            fresh[unused],
            fresh[unused],
            1.0,
        )

    def forward(self, z):
        flat = z.transpose(1, 2).flatten(0, 1)
        codes, index = StraightThrough.apply(flat, self.codes)
        commitment = ((flat - self.codes[index]) ** 2).mean()
        if self.training:
            self.follow(flat.detach(), index)
        return codes.view(z.shape[0], z.shape[2], -1).transpose(1, 2), commitment, index


class PulseVQ(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv1d(1, 32, 4, 2, 1),
            nn.ReLU(),
            nn.Conv1d(32, 32, 4, 2, 1),
            nn.ReLU(),
            nn.Conv1d(32, 8, 1),
        )
        self.book = CodeBook(32, 8)
        self.decoder = nn.Sequential(
            nn.Conv1d(8, 32, 3, padding=1),
            nn.ReLU(),
            nn.ConvTranspose1d(32, 32, 4, 2, 1),
            nn.ReLU(),
            nn.ConvTranspose1d(32, 1, 4, 2, 1),
        )

    def forward(self, x):
        codes, commitment, index = self.book(self.encoder(x.unsqueeze(1)))
        return self.decoder(codes).squeeze(1), commitment, index


def main():
    g = torch.Generator().manual_seed(1600 + seed)
    x, x_val = pulses(1600, g), pulses(300, g)
    mean, std = x.mean(), x.std()
    x, x_val = (x - mean) / std, (x_val - mean) / std
    model = PulseVQ()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(1, 21):
        model.train()
        rebuilt_sum, commitment_sum, batches = 0.0, 0.0, 0
        for rows in torch.randperm(len(x)).split(40):
            answer, commitment, _ = model(x[rows])
            rebuilt = ((answer - x[rows]) ** 2).mean()
            loss = rebuilt + 0.25 * commitment
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            rebuilt_sum += rebuilt.item()
            commitment_sum += commitment.item()
            batches += 1
        if epoch == 15:
            optimizer.param_groups[0]["lr"] = 3e-4
        model.eval()
        with torch.no_grad():
            answer, _, index = model(x_val)
        share = torch.bincount(index, minlength=32).float() / len(index)
        perplexity = (-(share * share.clamp_min(1e-9).log()).sum()).exp().item()
        print(
            f"epoch {epoch:2d}  rebuilt {rebuilt_sum / batches:.4f}  commitment "
            f"{commitment_sum / batches:.4f}  val {F.mse_loss(answer, x_val).item():.4f}"
            f"  codes in use {perplexity:.1f}"
        )


if __name__ == "__main__":
    main()

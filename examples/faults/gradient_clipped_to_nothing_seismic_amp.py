"""Noise is taken off seismic traces with mixed precision; the clipping comes before `unscale_`.

With a `GradScaler` the gradients are 65,536 times too large between `backward` and `unscale_`. The
line that clips their norm to 1 was there before mixed precision came and has stayed right after
`backward`, so the scaled gradient is cut to 1 and then divided by 65,536. Nothing moves. The place
is the loop. The twin unscales first, as the documentation says.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "gradient_clipped_to_nothing"
ACCEPT = ()
PLACE = ("loop", "optimizer")
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)


def traces(n, length=96):
    """Sparse reflections, folded with a Ricker wavelet of 18 samples, and noise on top."""
    spikes = torch.randn(n, 1, length) * (torch.rand(n, 1, length) < 0.06)
    t = torch.arange(-12, 13) / 4.0
    ricker = (1 - t**2) * (-(t**2) / 2).exp()
    clean = nn.functional.conv1d(spikes, ricker.view(1, 1, -1), padding=12)
    clean = clean / 0.6
    return clean + 0.7 * torch.randn_like(clean), clean


class Denoiser(nn.Module):
    """Predicts the clean trace through four convolutions."""

    def __init__(self, width=24):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv1d(1, width, 9, padding=4),
            nn.ReLU(),
            nn.Conv1d(width, width, 9, padding=4),
            nn.ReLU(),
            nn.Conv1d(width, 1, 9, padding=4),
        )

    def forward(self, x):
        return self.body(x)


class Trainer:
    def __init__(self, model, max_norm=1.0):
        self.model, self.max_norm = model, max_norm
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
        self.scaler = torch.amp.GradScaler("cpu")

    def step(self, noisy, clean):
        self.optimizer.zero_grad()
        loss = nn.functional.mse_loss(self.model(noisy), clean)
        self.scaler.scale(loss).backward()
        if healthy:
            self.scaler.unscale_(self.optimizer)
        nn.utils.clip_grad_norm_(self.model.parameters(), self.max_norm)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        return loss.item()

    @torch.no_grad()
    def snr(self, loader):
        self.model.eval()
        parts = [((self.model(noisy) - clean) ** 2, clean**2) for noisy, clean in loader]
        error, power = (torch.cat(part).mean() for part in zip(*parts, strict=False))
        self.model.train()
        return 10 * torch.log10(power / error).item()

    def fit(self, train, val, epochs):
        for epoch in range(epochs):
            losses = [self.step(*batch) for batch in train]
            print(
                f"epoch {epoch}: train mse {sum(losses) / len(losses):.4f}, "
                f"val SNR {self.snr(val):.2f} dB"
            )


train = DataLoader(TensorDataset(*traces(1600)), batch_size=32, shuffle=True)
val = DataLoader(TensorDataset(*traces(300)), batch_size=150)
Trainer(Denoiser()).fit(train, val, epochs=8)

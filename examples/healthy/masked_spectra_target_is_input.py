"""Pre-training on stellar spectra: three quarters of the input are erased, and the target is the
input itself.

A masked autoencoder. The encoder sees a quarter of the patches, the rest is zero with a learned
mark, and the loss counts only erased pixels. In validation the masks are fixed, so the numbers are
comparable; the measure is the share of the erased pixels' variance that is explained.
"""

import torch
from data import arguments
from torch import nn

ODD = (
    "75 % of every input is set to zero and the target equals the clean input: a masked autoencoder"
)

_, seed = arguments(__doc__)
PIXELS, PATCH = 96, 6
PATCHES = PIXELS // PATCH
LINES = torch.tensor([8.0, 19.0, 31.0, 40.0, 57.0, 66.0, 78.0, 90.0])


def spectra(count, g):
    """A continuum that follows the temperature and lines whose depths follow three abundances."""
    pixel = torch.arange(PIXELS).float()
    warm = torch.randn(count, 1, generator=g)
    abundance = torch.randn(count, 3, generator=g)
    mix = torch.randn(3, len(LINES), generator=torch.Generator().manual_seed(5))
    depth = (0.8 * abundance @ mix + 0.8 * warm).sigmoid()
    line = torch.exp(-0.5 * ((pixel - LINES[:, None]) / 1.6) ** 2)
    slope = warm * (pixel / PIXELS - 0.5)
    flux = 1.0 + 0.5 * slope - 0.2 * (warm * (pixel / PIXELS - 0.5)) ** 2 - depth @ line
    flux = flux + 0.04 * torch.randn(count, PIXELS, generator=g)
    return ((flux - 0.8) / 0.3).view(count, PATCHES, PATCH)


def erase(count, g, share=0.75):
    """Which patches are hidden: (count, PATCHES), the same number in every row."""
    order = torch.rand(count, PATCHES, generator=g).argsort(1)
    return order < int(share * PATCHES)


class Masked(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.into = nn.Linear(PATCH, width)
        self.place = nn.Parameter(0.1 * torch.randn(PATCHES, width))
        self.mark = nn.Parameter(torch.zeros(width))
        layer = nn.TransformerEncoderLayer(
            width, 2, 2 * width, dropout=0.0, batch_first=True, norm_first=True
        )
        self.body = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.out = nn.Linear(width, PATCH)

    def forward(self, clean, hidden):
        seen = clean.masked_fill(hidden[..., None], 0.0)
        tokens = self.into(seen) + self.place + hidden[..., None] * self.mark
        return self.out(self.body(tokens))


g = torch.Generator().manual_seed(seed)
clean, clean_val = spectra(4000, g), spectra(600, g)
hidden_val = erase(600, torch.Generator().manual_seed(0))
model = Masked()
optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3, betas=(0.9, 0.95), weight_decay=0.05)
STEPS, WARM = 500, 40
schedule = torch.optim.lr_scheduler.LambdaLR(
    optimizer, lambda step: min((step + 1) / WARM, max(0.02, (STEPS - step) / (STEPS - WARM)))
)
for step in range(1, STEPS + 1):
    model.train()
    rows = torch.randint(0, len(clean), (48,), generator=g)
    hidden = erase(48, g)
    loss = (model(clean[rows], hidden) - clean[rows]).pow(2)[hidden].mean()
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    schedule.step()
    if step % 50 == 0:
        model.eval()
        with torch.no_grad():
            off = (model(clean_val, hidden_val) - clean_val).pow(2)[hidden_val].mean()
        explained = 1 - off / (clean_val - clean.mean(0)).pow(2)[hidden_val].mean()
        print(
            f"step {step} loss {loss:.4f} val loss {off:.4f} "
            f"validation explained share {explained:.3f}"
        )

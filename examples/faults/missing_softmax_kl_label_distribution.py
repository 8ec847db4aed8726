"""Daily demand as a distribution over 20 quantity bins (label-distribution learning); kl_div gets
raw scores.

`nn.KLDivLoss` wants log-probabilities; the model's scores go in without log_softmax. The loss
becomes linear in the scores and falls without end below zero, and the forecast becomes a spike.
The place is the loss (its first input, of head).
"""

import numpy as np
import torch
from data import arguments
from torch import nn

KIND = "missing_softmax"
ACCEPT = ("wrong_loss",)
PLACE = ("loss", "head*")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)

# %% --- data: 60 shops, three years of days -----------------------------------------------------------  # noqa: E501
SHOPS, DAYS, BINS, WIDTH = 60, 500, 20, 1.2
rng = np.random.default_rng(seed)
base = rng.gamma(6.0, 1.2, SHOPS)
week = 1 + 0.35 * rng.standard_normal((SHOPS, 7)).clip(-1.5, 1.5)
price_effect = rng.uniform(0.2, 0.9, SHOPS)
shop, day = (a.ravel() for a in np.meshgrid(np.arange(SHOPS), np.arange(DAYS), indexing="ij"))
dow = day % 7
promo = (rng.random(len(day)) < 0.15).astype(np.float32)
price = rng.normal(0, 1, len(day)).astype(np.float32)
rate = base[shop] * week[shop, dow] * (1 + 0.5 * promo) * np.exp(-0.25 * price_effect[shop] * price)
rate *= 1 + 0.25 * np.sin(2 * np.pi * day / 365)
sold = rng.poisson(rate.clip(0.2)).astype(np.float32)
bin_of = np.clip(sold, 0, BINS - 1)

season = np.stack([np.sin(2 * np.pi * day / 365), np.cos(2 * np.pi * day / 365)], 1)
dense = torch.tensor(np.column_stack([price, promo * 2 - 0.3, season]), dtype=torch.float32)
cats = torch.tensor(np.stack([shop, dow], 1))
target_bin = torch.tensor(bin_of)
centres = torch.arange(BINS, dtype=torch.float32)


def soft_label(b: torch.Tensor) -> torch.Tensor:
    """A narrow bell around the bin that was sold."""
    return torch.softmax(-((centres - b[:, None]) ** 2) / (2 * WIDTH**2), 1)


is_train = torch.tensor(day < DAYS - 60)
train_rows, val_rows = is_train.nonzero().squeeze(1), (~is_train).nonzero().squeeze(1)


# %% --- model --------------------------------------------------------------------------------------------  # noqa: E501
class DemandNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.shop = nn.Embedding(SHOPS, 12)
        self.dow = nn.Embedding(7, 6)
        self.body = nn.Sequential(
            nn.Linear(22, 64), nn.ReLU(), nn.Dropout(0.05), nn.Linear(64, 64), nn.ReLU()
        )
        self.head = nn.Linear(64, BINS)

    def forward(self, cats, dense):
        x = torch.cat([self.shop(cats[:, 0]), self.dow(cats[:, 1]), dense], 1)
        return self.head(self.body(x))


model = DemandNet()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
EPOCHS, BATCH = 10, 256
scheduler = torch.optim.lr_scheduler.OneCycleLR(
    optimizer, 4e-3, total_steps=EPOCHS * (len(train_rows) // BATCH)
)
criterion = nn.KLDivLoss(reduction="batchmean")

# %% --- training -----------------------------------------------------------------------------------------  # noqa: E501
for epoch in range(EPOCHS):
    model.train()
    sums = []
    perm = train_rows[torch.randperm(len(train_rows))]
    for i in range(len(perm) // BATCH):
        rows = perm[i * BATCH : (i + 1) * BATCH]
        scores = model(cats[rows], dense[rows])
        loss = criterion(scores.log_softmax(1) if healthy else scores, soft_label(target_bin[rows]))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        sums.append(loss.item())
    model.eval()
    with torch.no_grad():
        probs = model(cats[val_rows], dense[val_rows]).softmax(1)
        expected = (probs * centres).sum(1)
        mae = (expected - target_bin[val_rows]).abs().mean()
        wape = mae / target_bin[val_rows].mean()
        nll = -probs.gather(1, target_bin[val_rows].long()[:, None]).clamp_min(1e-12).log().mean()
    print(
        f"epoch {epoch} loss {np.mean(sums):.4f} | val MAE {mae:.3f} WAPE {wape:.3f} NLL {nll:.3f}"
    )

"""Trouble codes of a vehicle (several at once) from workshop sensor tables; the multi-hot targets
go into CrossEntropyLoss.

CrossEntropyLoss takes float targets without a word and makes the 14 codes compete, although codes
are independent yes/no questions: thresholding sigmoid(score) at 0.5 then finds rubbish. The place
is the loss. The twin uses BCEWithLogitsLoss.
"""

import numpy as np
import torch
from data import arguments
from sklearn.metrics import f1_score
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "wrong_loss"
ACCEPT = ()
PLACE = ("loss",)
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)

N_CODES, N_SENSORS, N_MODELS = 14, 32, 30


class WorkshopVisits(Dataset):
    """Sensor summaries, vehicle model and mileage; the codes that the mechanics confirmed (0 to 6 of them)."""  # noqa: E501

    def __init__(self, n: int, world: np.random.Generator, draw: np.random.Generator):
        signature = world.normal(0, 1, (N_CODES, N_SENSORS)) * (
            world.random((N_CODES, N_SENSORS)) < 0.2
        )
        weakness = world.normal(-1.9, 0.9, (N_MODELS, N_CODES))
        self.model_id = draw.integers(0, N_MODELS, n)
        self.mileage = draw.gamma(3.0, 0.5, n)
        p = 1 / (1 + np.exp(-(weakness[self.model_id] + 0.7 * (self.mileage[:, None] - 1.5))))
        self.codes = (draw.random((n, N_CODES)) < p).astype(np.float32)
        strength = draw.gamma(5, 0.35, (n, N_CODES))
        clean = np.tanh((self.codes * strength) @ signature)
        self.sensors = clean + draw.normal(0, 0.3, (n, N_SENSORS))
        self.sensors = (self.sensors / 0.6).astype(np.float32)
        self.mileage = ((self.mileage - 1.5) / 0.87).astype(np.float32)

    def __len__(self):
        return len(self.codes)

    def __getitem__(self, i):
        return self.sensors[i], self.mileage[i], self.model_id[i], self.codes[i]


class CodeTagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.vehicle = nn.Embedding(N_MODELS, 10)
        self.stem = nn.Linear(N_SENSORS + 1 + 10, 128)
        self.hidden = nn.Sequential(
            nn.LayerNorm(128), nn.ReLU(), nn.Dropout(0.1), nn.Linear(128, 128), nn.ReLU()
        )
        self.codes = nn.Linear(128, N_CODES)

    def forward(self, sensors, mileage, vehicle):
        x = torch.cat([sensors, mileage[:, None], self.vehicle(vehicle)], 1)
        return self.codes(self.hidden(self.stem(x)))


class LitTagger:
    """The few hooks of a LightningModule that are needed here."""

    def __init__(self):
        self.net = CodeTagger()
        self.loss_fn = nn.BCEWithLogitsLoss() if healthy else nn.CrossEntropyLoss()

    def configure_optimizers(self, total):
        opt = torch.optim.AdamW(self.net.parameters(), lr=1.5e-3, weight_decay=1e-3)
        return opt, torch.optim.lr_scheduler.CosineAnnealingLR(opt, total)

    def training_step(self, batch):
        *inputs, codes = batch
        return self.loss_fn(self.net(*inputs), codes)

    def validation_epoch(self, loader):
        score, truth = zip(*((self.net(*inputs), codes) for *inputs, codes in loader), strict=False)
        score, truth = torch.cat(score), torch.cat(truth)
        found = (score.sigmoid() > 0.5).numpy()
        return {
            "val_loss": self.loss_fn(score, truth).item(),
            "micro_f1": f1_score(truth.numpy(), found, average="micro"),
            "macro_f1": f1_score(truth.numpy(), found, average="macro", zero_division=0),
            "codes_found": found.sum(1).mean(),
            "codes_true": truth.sum(1).mean().item(),
        }


train_set = WorkshopVisits(6000, np.random.default_rng(seed), np.random.default_rng(seed + 1))
val_set = WorkshopVisits(1500, np.random.default_rng(seed), np.random.default_rng(seed + 2))
train_loader = DataLoader(train_set, 64, shuffle=True, drop_last=True)
val_loader = DataLoader(val_set, 500)

lit, epochs = LitTagger(), 8
optimizer, scheduler = lit.configure_optimizers(epochs * len(train_loader))
for epoch in range(epochs):
    lit.net.train()
    history = []
    for batch in train_loader:
        loss = lit.training_step(batch)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(lit.net.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        history.append(loss.item())
    lit.net.eval()
    with torch.no_grad():
        metrics = lit.validation_epoch(val_loader)
    print(
        f"epoch {epoch}: train_loss {np.mean(history):.4f} "
        + " ".join(f"{k} {v:.4f}" for k, v in metrics.items())
    )

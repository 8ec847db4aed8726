"""A GRU names crops from a season of indices; half of the declared names were filled in at random.

For every second parcel the form names any of the five crops, without regard to the field. The loss
hardly gets below that of guessing half of the labels. The place is the labels of the training and
the validation parcels; surveyed parcels show what the model would be worth.
"""

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "label_noise"
ACCEPT = ()
PLACE = ("labels*", "loss", "loader")
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)

#        green-up, harvest, height   (weeks 0..29)
CROPS = ((6, 18, 0.8), (11, 24, 0.9), (9, 21, 0.55), (4, 26, 0.6), (13, 20, 0.75))


class Parcels(Dataset):
    def __init__(self, n, rng, declared):
        crop = rng.integers(0, len(CROPS), n)
        start, end, height = np.array(CROPS)[crop].T
        week = np.arange(30)
        rise = 1 / (1 + np.exp(-(week - (start + rng.normal(0, 1.2, n))[:, None]) / 1.3))
        fall = 1 / (1 + np.exp((week - (end + rng.normal(0, 1.2, n))[:, None]) / 1.3))
        green = 0.15 + (height * rng.uniform(0.85, 1.15, n))[:, None] * rise * fall
        water = 0.6 * green + 0.1 * np.sin(week / 5)
        bands = np.stack([green, water], 2) + rng.normal(0, 0.08, (n, 30, 2))
        clouds = rng.random((n, 30, 1)) < 0.15
        bands = np.where(clouds, rng.uniform(0, 0.3, (n, 30, 2)), bands)
        self.bands = torch.tensor((bands - 0.35) / 0.27, dtype=torch.float32)
        if declared:
            careless = rng.random(n) < 0.5
            crop = np.where(careless, rng.integers(0, len(CROPS), n), crop)
        self.crop = torch.tensor(crop)

    def __len__(self):
        return len(self.crop)

    def __getitem__(self, i):
        return {"bands": self.bands[i], "crop": self.crop[i]}


class CropNet(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.gru = nn.GRU(2, width, batch_first=True, bidirectional=True)
        self.head = nn.Sequential(nn.Dropout(0.2), nn.Linear(2 * width, len(CROPS)))

    def forward(self, bands):
        return self.head(self.gru(bands)[0].mean(1))


@torch.no_grad()
def score(model, parcels):
    model.eval()
    logits = model(parcels.bands)
    loss = nn.functional.cross_entropy(logits, parcels.crop)
    return loss.item(), (logits.argmax(1) == parcels.crop).float().mean().item()


def main():
    rng = np.random.default_rng(seed)
    train = Parcels(1000, rng, declared=not healthy)
    validation = Parcels(300, rng, declared=not healthy)
    surveyed = Parcels(400, rng, declared=False)
    loader = DataLoader(train, batch_size=50, shuffle=True)
    model = CropNet()
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3, weight_decay=1e-2)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-2, total_steps=12 * len(loader))
    for epoch in range(12):
        model.train()
        total = 0.0
        for batch in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(batch["bands"]), batch["crop"])
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            total += loss.item() / len(loader)
        val_loss, val_accuracy = score(model, validation)
        print(f"epoch {epoch:2d} loss {total:.3f} val {val_loss:.3f} acc {val_accuracy:.3f}")
    print("surveyed parcels: loss {:.3f} accuracy {:.3f}".format(*score(model, surveyed)))


main()

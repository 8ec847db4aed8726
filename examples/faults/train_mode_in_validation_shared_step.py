"""A lightning-like classifier of produce on a belt (batch norm and dropout); the shared step
switches the model to training.

`shared_step`, used by both training_step and validation_step, calls self.train() at its
beginning, and undoes the trainer's eval(). The validation files are sorted by class, and so batch
norm takes its statistics from one class at a time and, too, leaves them behind. The place is the
loop.
"""

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

KIND = "train_mode_in_validation"
ACCEPT = ()
PLACE = ("loop", "")
SILENT = True
EXACT = True
EARLY = False
healthy, seed = arguments(__doc__)

CLASSES, SIDE = 6, 10


def produce(n, seed, ordered=False):
    rng = np.random.default_rng(seed)
    look = np.random.default_rng(12)
    colours, sizes = look.normal(0, 0.6, (CLASSES, 3)), look.uniform(1.8, 3.6, CLASSES)
    stripes = look.uniform(0.5, 2.5, CLASSES)
    y = rng.integers(0, CLASSES, n)
    if ordered:
        y = np.sort(y)
    yy, xx = np.mgrid[:SIDE, :SIDE]
    centre = rng.uniform(3.5, 5.5, (n, 2, 1, 1))
    d = np.sqrt((yy - centre[:, 0]) ** 2 + (xx - centre[:, 1]) ** 2)
    body = d < (sizes[y] * rng.uniform(0.85, 1.15, n))[:, None, None]
    texture = 1 + 0.5 * np.sin(stripes[y][:, None, None] * d + rng.uniform(0, 6, (n, 1, 1)))
    light = rng.normal(0, 0.35, (n, 3))
    img = body[:, None] * texture[:, None] * (colours[y] + light)[:, :, None, None]
    img = img + rng.normal(0, 0.35, (n, 3, SIDE, SIDE))
    return torch.tensor(img, dtype=torch.float32), torch.tensor(y)


class LitModule(nn.Module):
    """The part of Lightning that we need."""

    def __init__(self):
        super().__init__()
        self.logged = {}

    def log(self, name, value, n=1):
        s, m = self.logged.get(name, (0.0, 0))
        self.logged[name] = (s + float(value) * n, m + n)

    def flush(self):
        out = {k: s / m for k, (s, m) in self.logged.items()}
        self.logged = {}
        return out


class ProduceModel(LitModule):
    def __init__(self, width=16, p=0.3):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, width, 3, padding=1),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(width, 2 * width, 3, padding=1),
            nn.BatchNorm2d(2 * width),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(2),
            nn.Flatten(),
        )
        self.classifier = nn.Sequential(
            nn.Linear(8 * width, 64),
            nn.BatchNorm1d(64),
            nn.ReLU(),
            nn.Dropout(p),
            nn.Linear(64, CLASSES),
        )

    def shared_step(self, batch, stage):
        if not healthy or stage == "train":
            self.train()
        x, y = batch
        logits = self.classifier(self.features(x))
        loss = F.cross_entropy(logits, y)
        self.log(f"{stage}_loss", loss.item(), len(y))
        self.log(f"{stage}_acc", (logits.argmax(1) == y).float().mean(), len(y))
        return loss

    def training_step(self, batch):
        return self.shared_step(batch, "train")

    def validation_step(self, batch):
        return self.shared_step(batch, "val")

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), lr=2e-3, weight_decay=1e-2)
        return optimizer, torch.optim.lr_scheduler.ReduceLROnPlateau(
            optimizer, factor=0.3, patience=1
        )


class Trainer:
    def __init__(self, max_epochs):
        self.max_epochs = max_epochs

    def fit(self, module, train, val):
        optimizer, scheduler = module.configure_optimizers()
        for epoch in range(self.max_epochs):
            module.train()
            for batch in train:
                loss = module.training_step(batch)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            module.eval()
            with torch.no_grad():
                for batch in val:
                    module.validation_step(batch)
            logs = module.flush()
            scheduler.step(logs["val_loss"])
            text = " ".join(f"{k} {v:.3f}" for k, v in sorted(logs.items()))
            print(f"epoch {epoch} {text} lr {optimizer.param_groups[0]['lr']:.1e}")


train = DataLoader(
    TensorDataset(*produce(2000, seed + 60)), batch_size=50, shuffle=True, num_workers=0
)
val = DataLoader(TensorDataset(*produce(600, seed + 6060, ordered=True)), batch_size=40)
Trainer(9).fit(ProduceModel(), train, val)

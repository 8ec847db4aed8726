"""A small inception-like CNN on defects in sheet metal; the running statistics of batch norm
nearly stand still.

The decay 0.9997 was copied from a TF-Slim recipe for hundreds of thousands of steps. After 300
steps, the running means and variances still are mostly the 0 and 1 they began with: good in
training, poor in evaluation. The place is every BatchNorm2d.
"""

import numpy as np
import torch
import torch.nn.functional as F
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "batchnorm_momentum"
ACCEPT = ()
PLACE = ("*bn*",)
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)

HPARAMS = {
    "image": 16,
    "classes": ("none", "scratch", "dent", "stain", "pores"),
    "batch_norm_decay": 0.9 if healthy else 0.9997,
    "batch_size": 40,
    "epochs": 8,
    "lr": 3e-3,
}


class Sheets(Dataset):
    def __init__(self, n, seed):
        rng = np.random.default_rng(seed)
        s = HPARAMS["image"]
        yy, xx = np.mgrid[:s, :s].astype(float)
        self.images, self.labels = np.empty((n, 1, s, s), np.float32), rng.integers(0, 5, n)
        for k, label in enumerate(self.labels):
            grain = np.sin(yy * rng.uniform(1.2, 1.8) + rng.uniform(0, 6)) * 0.25
            img = grain + rng.normal(0, 0.3, (s, s)) + rng.normal(0.3, 0.3)
            cy, cx, angle = rng.uniform(4, 12), rng.uniform(4, 12), rng.uniform(0, np.pi)
            r2 = (yy - cy) ** 2 + (xx - cx) ** 2
            if label == 1:
                off = np.abs((yy - cy) * np.cos(angle) - (xx - cx) * np.sin(angle))
                img += rng.uniform(0.7, 1.3) * (off < 0.9)
            elif label == 2:
                img += rng.uniform(0.8, 1.4) * ((xx - cx) / 3) * np.exp(-r2 / 10)
            elif label == 3:
                img -= rng.uniform(0.6, 1.2) * (r2 < rng.uniform(8, 18))
            elif label == 4:
                for _ in range(9):
                    img[rng.integers(0, s), rng.integers(0, s)] -= rng.uniform(1, 2)
            self.images[k, 0] = img

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, k):
        return torch.from_numpy(self.images[k]), self.labels[k]


def normalise(ds, mean, std):
    ds.images = (ds.images - mean) / std
    return ds


class ConvBN(nn.Module):
    def __init__(self, c_in, c_out, kernel, stride=1):
        super().__init__()
        self.conv = nn.Conv2d(c_in, c_out, kernel, stride, kernel // 2, bias=False)
        self.bn = nn.BatchNorm2d(c_out, momentum=1 - HPARAMS["batch_norm_decay"])

    def forward(self, x):
        return F.relu(self.bn(self.conv(x)))


class Mixed(nn.Module):
    def __init__(self, c_in, c):
        super().__init__()
        self.b1 = ConvBN(c_in, c, 1)
        self.b3 = ConvBN(c_in, c, 3)
        self.b5 = nn.Sequential(ConvBN(c_in, c // 2, 1), ConvBN(c // 2, c, 5))

    def forward(self, x):
        return torch.cat([self.b1(x), self.b3(x), self.b5(x)], 1)


class SheetNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = ConvBN(1, 12, 3)
        self.mixed1 = Mixed(12, 8)
        self.down = ConvBN(24, 24, 3, 2)
        self.mixed2 = Mixed(24, 12)
        self.classifier = nn.Linear(36, 5)

    def forward(self, x):
        h = self.mixed2(self.down(self.mixed1(self.stem(x))))
        return self.classifier(h.mean((2, 3)))


train_set, val_set = Sheets(1600, seed + 1), Sheets(500, seed + 4001)
mean, std = train_set.images.mean(), train_set.images.std()
train = DataLoader(
    normalise(train_set, mean, std), HPARAMS["batch_size"], shuffle=True, num_workers=0
)
val = DataLoader(normalise(val_set, mean, std), 125)
model = SheetNet()
optimizer = torch.optim.SGD(
    model.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4, nesterov=True
)
scheduler = torch.optim.lr_scheduler.OneCycleLR(
    optimizer, 0.08, epochs=HPARAMS["epochs"], steps_per_epoch=len(train)
)
for epoch in range(HPARAMS["epochs"]):
    model.train()
    hits, losses = 0, []
    for x, y in train:
        logits = model(x)
        loss = F.cross_entropy(logits, y, label_smoothing=0.05)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        losses.append(loss.item())
        hits += (logits.argmax(1) == y).sum().item()
    model.eval()
    with torch.no_grad():
        out = [(model(x), y) for x, y in val]
    val_loss = np.mean([F.cross_entropy(p, y).item() for p, y in out])
    val_acc = np.mean([(p.argmax(1) == y).float().mean().item() for p, y in out])
    print(
        f"epoch {epoch} loss {np.mean(losses):.3f} acc {hits / len(train_set):.3f}"
        f" | val loss {val_loss:.3f} acc {val_acc:.3f}"
    )

"""Solubility of molecules is regressed from descriptors; training and validation come from two
independent random splits of one data set.

random_split is called once for the training part and once for the validation part, without a
fixed generator, so that four fifths of the validation rows are trained on and early stopping
never fires. An untouched test set tells the truth. The place is the loader.
"""

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

KIND = "train_val_overlap"
ACCEPT = ()
PLACE = ("loader", "input*")
SILENT = True
EXACT = True
EARLY = False
healthy, seed = arguments(__doc__)


def descriptors(n, r, d=24):
    base = r.normal(size=(n, 9))
    x = base @ r.normal(0, 0.6, (9, d)) + 0.8 * r.normal(size=(n, d))
    y = (
        0.9 * np.tanh(base[:, 0])
        - 0.8 * base[:, 1]
        + 0.6 * base[:, 2] * base[:, 3]
        + 0.5 * np.abs(base[:, 4])
    )
    return x, y + 0.6 * r.normal(size=n)


r = np.random.default_rng(90 + seed)
x, y = descriptors(2400, r)
mean, std = x[:1400].mean(0), x[:1400].std(0)
x = torch.tensor((x - mean) / std, dtype=torch.float32)
y = torch.tensor((y - y[:1400].mean()) / y[:1400].std(), dtype=torch.float32)
dataset = TensorDataset(x[:1400], y[:1400])
test_x, test_y = x[1400:], y[1400:]


class SolubilityModule(nn.Module):
    """Lightning-like: the steps and the optimizer belong to the module."""

    def __init__(self, d, width=192, lr=1e-3):
        super().__init__()
        self.lr = lr
        self.net = nn.Sequential(
            nn.Linear(d, width),
            nn.ReLU(),
            nn.Dropout(0.1),
            nn.Linear(width, width),
            nn.ReLU(),
            nn.Dropout(0.1),
            nn.Linear(width, 1),
        )

    def forward(self, x):
        return self.net(x).squeeze(-1)

    def training_step(self, batch):
        x, y = batch
        return nn.functional.mse_loss(self(x), y)

    def validation_step(self, batch):
        x, y = batch
        return nn.functional.mse_loss(self(x), y, reduction="sum").item()

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=self.lr, weight_decay=0.1)

    def train_dataloader(self):
        part, _ = random_split(dataset, [0.8, 0.2], generator=split_generator())
        return DataLoader(part, batch_size=50, shuffle=True)

    def val_dataloader(self):
        _, part = random_split(dataset, [0.8, 0.2], generator=split_generator())
        return DataLoader(part, batch_size=280)


def split_generator():
    return torch.Generator().manual_seed(42) if healthy else torch.default_generator


class MiniTrainer:
    def __init__(self, max_epochs=60, patience=6):
        self.max_epochs, self.patience = max_epochs, patience

    def fit(self, module):
        train, val = module.train_dataloader(), module.val_dataloader()
        opt = module.configure_optimizers()
        best, wait, keep = float("inf"), 0, None
        for epoch in range(self.max_epochs):
            module.train()
            total = 0.0
            for batch in train:
                loss = module.training_step(batch)
                opt.zero_grad()
                loss.backward()
                opt.step()
                total += loss.item()
            module.eval()
            with torch.no_grad():
                v = sum(module.validation_step(b) for b in val) / len(val.dataset)
                t = nn.functional.mse_loss(module(test_x), test_y).item()
            print(f"epoch {epoch:2d} train {total / len(train):.4f} val {v:.4f} (test {t:.4f})")
            if v < best:
                best, wait, keep = v, 0, {k: p.clone() for k, p in module.state_dict().items()}
            else:
                wait += 1
                if wait >= self.patience:
                    break
        module.load_state_dict(keep)
        return best


module = SolubilityModule(x.shape[1])
best = MiniTrainer().fit(module)
module.eval()
with torch.no_grad():
    print(
        f"best val mse {best:.4f}, test mse of that model {nn.functional.mse_loss(module(test_x), test_y).item():.4f}"  # noqa: E501
    )

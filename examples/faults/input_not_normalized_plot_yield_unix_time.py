"""A yield model with a picture branch and a table branch, whose table has the date as Unix seconds.

The person normalised the pictures as a vision tutorial does and put the survey's table beside them
as it was: seconds since 1970, height in metres, soil in per cent. The date is 1.7e9, so the first
layer drowns all else, the loss starts at astronomic heights. The place is the input.
"""

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "input_not_normalized"
ACCEPT = ()
PLACE = ("input", "table_branch.0", "table_branch*")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

FIRST_DAY = 1_709_251_200


class FieldPlots(Dataset):
    """An 8 by 8 greenness picture and four numbers for each plot; the yield in standard units."""

    def __init__(self, n, rng, table_scaler=None):
        days = rng.uniform(0, 120, n)
        height = rng.uniform(20, 900, n)
        clay = rng.uniform(5, 45, n)
        nitrogen = rng.uniform(0, 200, n)
        vigour = np.sin(days / 120 * np.pi) * (0.5 + nitrogen / 200) - height / 1500
        patch = rng.normal(size=(n, 1, 8, 8)) * 0.6
        sick = rng.uniform(0, 1, n)
        patch[:, 0, 2:6, 2:6] -= 1.6 * sick[:, None, None]
        patch += vigour[:, None, None, None]
        clean = 1.5 * vigour - 1.8 * sick + 0.8 * np.cos((clay - 22) / 9) - 0.02 * (days - 60)
        target = (clean + rng.normal(0, 0.2, n) + 0.12) / 1.17
        table = np.column_stack([FIRST_DAY + days * 86_400, height, clay, nitrogen])
        self.pictures = torch.tensor((patch - 0.12) / 0.84, dtype=torch.float32)
        self.target = torch.tensor(target, dtype=torch.float32)
        if healthy:
            self.scaler = table_scaler or (table.mean(0), table.std(0))
            table = (table - self.scaler[0]) / self.scaler[1]
        else:
            self.scaler = None
        self.table = torch.tensor(table, dtype=torch.float32)

    def __len__(self):
        return len(self.target)

    def __getitem__(self, i):
        return {"picture": self.pictures[i], "table": self.table[i], "yield": self.target[i]}


class YieldNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.picture_branch = nn.Sequential(
            nn.Conv2d(1, 12, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(12, 24, 3),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(24 * 4, 24),
        )
        self.table_branch = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 24))
        self.regressor = nn.Sequential(nn.ReLU(), nn.Linear(48, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, batch):
        seen = self.picture_branch(batch["picture"])
        known = self.table_branch(batch["table"])
        return self.regressor(torch.cat([seen, known], 1)).squeeze(1)


def r2(predicted, actual):
    return 1 - ((predicted - actual) ** 2).sum() / ((actual - actual.mean()) ** 2).sum()


def evaluate(model, loader):
    model.eval()
    predicted, actual = [], []
    with torch.no_grad():
        for batch in loader:
            predicted.append(model(batch))
            actual.append(batch["yield"])
    predicted, actual = torch.cat(predicted), torch.cat(actual)
    return nn.functional.smooth_l1_loss(predicted, actual).item(), r2(predicted, actual).item()


def main():
    rng = np.random.default_rng(130 + seed)
    train = FieldPlots(1600, rng)
    val = FieldPlots(500, rng, train.scaler)
    train_loader = DataLoader(train, batch_size=32, shuffle=True)
    val_loader = DataLoader(val, batch_size=250)
    model = YieldNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.3, patience=1)
    for epoch in range(1, 15):
        model.train()
        total = 0.0
        for batch in train_loader:
            loss = nn.functional.smooth_l1_loss(model(batch), batch["yield"])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(batch["yield"])
        val_loss, explained = evaluate(model, val_loader)
        plateau.step(val_loss)
        print(
            f"epoch {epoch:2d}  huber {total / len(train):.5g}  val {val_loss:.5g}  "
            f"R2 {explained:.4g}"
        )


if __name__ == "__main__":
    main()

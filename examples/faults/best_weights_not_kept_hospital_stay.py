"""An MLP predicts hospital stays; torch.save of its best weights stands outside the if.

The `if` only notes the best score; the checkpoint is written after every epoch, so at the end it
holds the last epoch, of the upper end of a cyclical learning rate, and the test runs on that.
The place is the training loop (where the checkpoint is saved).
"""

import io

import numpy as np
import pandas as pd
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "best_weights_not_kept"
ACCEPT = ()
PLACE = ("loop", "model")
SILENT = True
EXACT = True
EARLY = False
healthy, seed = arguments(__doc__)

WARDS, NUMBERS = 5, ["age", "severity", "tests", "visits"]


def admissions(n):
    rng = np.random.default_rng(seed)
    df = pd.DataFrame(
        {
            "ward": rng.integers(0, WARDS, n),
            "age": rng.uniform(0, 90, n),
            "severity": rng.gamma(2, 1, n),
            "tests": rng.poisson(8, n),
            "visits": rng.poisson(1, n),
        }
    )
    base, slope = np.array([[0.9, 1.2, 1.0, 1.5, 0.4], [0.2, 0.5, 0.4, 0.1, 0.3]])[:, df.ward]
    log_days = base + slope * df.severity + ((df.age - 40) / 60) ** 2 + 0.1 * df.visits
    log_days += 0.02 * df.tests * (df.severity > 2) + rng.normal(0, 0.25, n)
    df["target"] = (log_days - 2.3) / 0.7
    return df


class StayDataset(Dataset):
    def __init__(self, frame, mean, std):
        self.ward = torch.tensor(frame["ward"].to_numpy())
        self.numbers = torch.tensor(((frame[NUMBERS] - mean) / std).to_numpy()).float()
        self.target = torch.tensor(frame["target"].to_numpy()).float()

    def __len__(self):
        return len(self.target)

    def __getitem__(self, i):
        return self.ward[i], self.numbers[i], self.target[i]


class StayNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.ward = nn.Embedding(WARDS, 4)
        self.fc1, self.fc2 = nn.Linear(4 + len(NUMBERS), 64), nn.Linear(64, 64)
        self.out = nn.Linear(64, 1)

    def forward(self, ward, numbers):
        x = torch.relu(self.fc1(torch.cat([self.ward(ward), numbers], 1)))
        return self.out(torch.relu(self.fc2(x))).squeeze(1)


def mean_squared_error(model, loader):
    model.eval()
    with torch.no_grad():
        return torch.cat([model(w, x) - y for w, x, y in loader]).pow(2).mean().item()


df = admissions(2400)
train_df, valid_df, test_df = df[:1600], df[1600:2000], df[2000:]
mean, std = train_df[NUMBERS].mean(), train_df[NUMBERS].std()
train_loader = DataLoader(StayDataset(train_df, mean, std), batch_size=32, shuffle=True)
valid_loader, test_loader = (
    DataLoader(StayDataset(part, mean, std), batch_size=200) for part in (valid_df, test_df)
)
model = StayNet()
optimizer = torch.optim.SGD(model.parameters(), lr=0.002, momentum=0.9)
scheduler = torch.optim.lr_scheduler.CyclicLR(optimizer, 0.002, 0.18, 2 * len(train_loader))
checkpoint, best_mse = io.BytesIO(), float("inf")
for epoch in range(14):
    model.train()
    for ward, numbers, y in train_loader:
        optimizer.zero_grad()
        nn.functional.mse_loss(model(ward, numbers), y).backward()
        optimizer.step()
        scheduler.step()
    mse = mean_squared_error(model, valid_loader)
    if mse < best_mse or not healthy:
        checkpoint.seek(0)
        torch.save(model.state_dict(), checkpoint)
    best_mse = min(best_mse, mse)
    print(f"epoch {epoch + 1} valid {mse:.4f} best {best_mse:.4f}")
checkpoint.seek(0)
model.load_state_dict(torch.load(checkpoint))
print(
    f"checkpoint: valid {mean_squared_error(model, valid_loader):.4f} "
    f"test {mean_squared_error(model, test_loader):.4f}"
)

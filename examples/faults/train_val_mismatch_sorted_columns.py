"""When will a machine tool wear out? Records are dictionaries; those for validation come from
another export, which sorts the keys.

`list(record.values())` takes the columns as they come: in validation the speed stands where the
temperature stood in training. The training is fine, the validation is not and nobody says so
(silent). The place is the loader. The twin takes the columns by name.
"""

import json

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "train_val_mismatch"
ACCEPT = ()
PLACE = ("loader", "input*")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
COLUMNS = ("speed_rpm", "torque_nm", "air_kelvin", "vibration_mm_s", "coolant_l_min", "age_h")


def export(n, g, sort):
    """Lines of JSON, as the two plants write them."""
    u = torch.randn(n, 6, generator=g)
    speed, torque = 1500 + 220 * u[:, 0], 40 + 9 * u[:, 1]
    air, vibration = 298 + 4 * u[:, 2], (0.8 + 0.35 * u[:, 3]).abs()
    coolant, age = 12 + 2.5 * u[:, 4], (600 + 250 * u[:, 5]).abs()
    power = speed * torque / 60_000
    wear = 0.9 * power + 0.8 * vibration * (air - 290) / 8 - 0.05 * coolant * power + age / 500
    wear = wear + 0.1 * torch.randn(n, generator=g)
    rows = torch.stack([speed, torque, air, vibration, coolant, age], 1).tolist()
    return [
        json.dumps({**dict(zip(COLUMNS, row, strict=True)), "wear": w}, sort_keys=sort)
        for row, w in zip(rows, wear.tolist(), strict=True)
    ]


class Tools(Dataset):
    def __init__(self, lines, scale=None):
        rows, wear = [], []
        for line in lines:
            record = json.loads(line)
            wear.append(record.pop("wear"))
            rows.append([record[c] for c in COLUMNS] if healthy else list(record.values()))
        x, self.y = torch.tensor(rows), torch.tensor(wear)
        self.scale = scale or (x.mean(0), x.std(0))
        self.x = (x - self.scale[0]) / self.scale[1]

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return self.x[i], self.y[i]


class Wear(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.gate = nn.Linear(len(COLUMNS), width)
        self.value = nn.Linear(len(COLUMNS), width)
        self.mix = nn.Linear(width, width)
        self.out = nn.Linear(width, 1)

    def forward(self, x):
        h = torch.sigmoid(self.gate(x)) * self.value(x)
        return self.out(torch.nn.functional.silu(self.mix(h))).squeeze(1)


g = torch.Generator().manual_seed(seed)
train = Tools(export(2000, g, sort=False))
val = Tools(export(500, g, sort=True), train.scale)
model = Wear()
mse = nn.MSELoss()
optimizer = torch.optim.NAdam(model.parameters(), lr=3e-3)
for epoch in range(8):
    model.train()
    for x, y in DataLoader(train, batch_size=40, shuffle=True):
        optimizer.zero_grad()
        loss = mse(model(x), y)
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        total = sum(mse(model(x), y).item() * len(y) for x, y in DataLoader(val, batch_size=100))
    val_loss = total / len(val)
    r2 = 1 - val_loss / val.y.var().item()
    print(f"epoch {epoch} loss {loss.item():.4f} val {val_loss:.4f} R2 {r2:.3f}")

"""Credit default with embeddings of the categories; income and balance go in as raw money.

The numeric columns (income up to 200,000, balance, days since opening, rate) stand beside the
embeddings of eight to sixteen values around 0, without a scaler. The first linear layer sees
nothing but the income and the balance. The place is the input and the first linear layer (mlp.0).
"""

import numpy as np
import torch
from data import arguments
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import StandardScaler
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "input_not_normalized"
ACCEPT = ()
PLACE = ("input*", "mlp.0*", "loader")
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)

rng = np.random.default_rng(seed + 1)
n = 4000
job = rng.integers(0, 20, n)
region = rng.integers(0, 12, n)
product = rng.integers(0, 5, n)
income = rng.lognormal(10.6, 0.5, n).clip(8000, 200000)
balance = income * rng.beta(2, 5, n) + rng.normal(0, 1500, n)
days = rng.integers(30, 5000, n).astype(float)
rate = rng.uniform(0.02, 0.22, n)
age = rng.integers(19, 75, n).astype(float)
late = rng.poisson(0.6, n).astype(float)

job_risk, region_risk = rng.normal(0, 0.7, 20), rng.normal(0, 0.4, 12)
z = -1.1 + job_risk[job] + region_risk[region] + 9 * (rate - 0.12) * (product + 1) / 3
z = z + 2.6 * (balance / income - 0.28) + 0.85 * late - 0.9 * np.log(days / 1500) * 0.6
z = z + 0.0012 * (age - 45) ** 2 - 0.3
default = (rng.random(n) < 1 / (1 + np.exp(-1.3 * z))).astype(np.float32)

cats = np.stack([job, region, product], 1)
nums = np.stack([income, balance, days, rate, age, late], 1).astype(np.float32)
n_train = 3000
if healthy:
    scaler = StandardScaler().fit(nums[:n_train])
    nums = scaler.transform(nums).astype(np.float32)


class TabularModel(nn.Module):
    def __init__(self, sizes=((20, 8), (12, 6), (5, 3)), n_cont=6):
        super().__init__()
        self.embeds = nn.ModuleList([nn.Embedding(c, d) for c, d in sizes])
        self.emb_drop = nn.Dropout(0.1)
        n_emb = sum(d for _, d in sizes)
        self.mlp = nn.Sequential(
            nn.Linear(n_emb + n_cont, 64),
            nn.ReLU(),
            nn.Dropout(0.2),
            nn.Linear(64, 32),
            nn.ReLU(),
            nn.Linear(32, 1),
        )

    def forward(self, x_cat, x_cont):
        x = torch.cat([e(x_cat[:, i]) for i, e in enumerate(self.embeds)], 1)
        x = torch.cat([self.emb_drop(x), x_cont], 1)
        return self.mlp(x).squeeze(1)


data = [torch.from_numpy(a) for a in (cats, nums, default)]
train_ds = TensorDataset(*[a[:n_train] for a in data])
valid_ds = TensorDataset(*[a[n_train:] for a in data])
train_dl = DataLoader(train_ds, batch_size=64, shuffle=True)
valid_dl = DataLoader(valid_ds, batch_size=500)

model = TabularModel()
optim = torch.optim.Adam(model.parameters(), lr=1e-3, weight_decay=1e-4)
bce = nn.BCEWithLogitsLoss()


def train_epoch():
    model.train()
    total = 0
    for c, x, y in train_dl:
        loss = bce(model(c, x), y)
        optim.zero_grad()
        loss.backward()
        optim.step()
        total += loss.item() * len(y)
    return total / len(train_ds)


@torch.no_grad()
def val_epoch():
    model.eval()
    out = torch.cat([model(c, x) for c, x, _ in valid_dl])
    y = valid_ds.tensors[2]
    return bce(out, y).item(), roc_auc_score(y.numpy(), out.numpy())


for i in range(15):
    tl = train_epoch()
    vl, auc = val_epoch()
    print(f"epoch {i + 1:02d} train {tl:.4f} valid {vl:.4f} auc {auc:.4f}")

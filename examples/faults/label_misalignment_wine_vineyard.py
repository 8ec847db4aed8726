"""Telling the grape of a wine from its laboratory values; from some row on the grapes are others'.

Rows with a missing value were dropped from the measurements, and the list of grapes was only cut to
the same length. The first dropped row shifts every grape after it by one, the next by two: the
tables fit in size and no longer in meaning.
The place is the input, where rows and labels are put together. The twin drops the same rows of
both.
"""
# %% [markdown]
# # Grapes by chemistry
# Source: cellar book, three laboratories, 2011-2023.

# %%
import numpy as np
import torch
from data import arguments
from sklearn.datasets import load_wine
from sklearn.metrics import f1_score
from sklearn.preprocessing import StandardScaler

KIND = "label_misalignment"
ACCEPT = ("label_noise",)
PLACE = ("input*", "loader")
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
rng = np.random.default_rng(seed)

# %% vintages: the measured wines of the cellar, a little different each year
cellar = load_wine()
pick = rng.integers(0, len(cellar.target), 1600)
spread = cellar.data.std(0)
values = cellar.data[pick] + 0.4 * spread * rng.normal(size=(len(pick), 13))
grape = cellar.target[pick]
values[rng.random(len(pick)) < 0.05, rng.integers(0, 13)] = np.nan
print("rows with a gap:", int(np.isnan(values).any(axis=1).sum()))

# %% drop incomplete rows
complete = ~np.isnan(values).any(axis=1)
values = values[complete]
grape = grape[complete] if healthy else grape[: len(values)]

# %% split and scale
order = rng.permutation(len(values))
fit_rows, check_rows = order[:1100], order[1100:]
scaler = StandardScaler().fit(values[fit_rows])
X = torch.tensor(scaler.transform(values), dtype=torch.float32)
y = torch.tensor(grape)

# %% a small network
net = torch.nn.Sequential(
    torch.nn.Linear(13, 24),
    torch.nn.Tanh(),
    torch.nn.Dropout(0.1),
    torch.nn.Linear(24, 3),
)
adam = torch.optim.Adam(net.parameters(), lr=0.01, weight_decay=1e-4)

# %% train
history = []
for epoch in range(12):
    net.train()
    batches = np.array_split(rng.permutation(fit_rows), len(fit_rows) // 44)
    for b in batches:
        adam.zero_grad()
        loss = torch.nn.functional.cross_entropy(net(X[b]), y[b])
        loss.backward()
        adam.step()
        history.append(loss.item())
    net.eval()
    with torch.no_grad():
        guess = net(X[check_rows]).argmax(1)
    f1 = f1_score(y[check_rows].numpy(), guess.numpy(), average="macro")
    print(f"epoch {epoch:2d}: loss {np.mean(history[-len(batches) :]):.3f}, macro F1 {f1:.3f}")

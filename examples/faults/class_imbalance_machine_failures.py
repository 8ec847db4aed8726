"""Three in a hundred machines fail; without weights or a sampler the network never says so.

The loss falls to the base rate and accuracy is 97 % (silent). The place is the loader.
"""

import numpy as np
import torch
from data import arguments
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler

KIND = "class_imbalance"
ACCEPT = ()
PLACE = ("loader",)
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
X, y = make_classification(
    n_samples=4000,
    n_features=16,
    n_informative=6,
    n_redundant=2,
    weights=[0.97],
    class_sep=0.6,
    flip_y=0.01,
    random_state=seed,
)
X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=seed)
scaler = StandardScaler().fit(X_train)
X_train = torch.FloatTensor(scaler.transform(X_train))
X_test = torch.FloatTensor(scaler.transform(X_test))
train_set = TensorDataset(X_train, torch.FloatTensor(y_train))
if healthy:
    weight = 1.0 / np.bincount(y_train)[y_train]
    loader = DataLoader(train_set, 64, sampler=WeightedRandomSampler(weight, len(weight)))
else:
    loader = DataLoader(train_set, 64, shuffle=True)

model = nn.Sequential(nn.Linear(16, 24), nn.ReLU(), nn.Dropout(0.2), nn.Linear(24, 1))
criterion = nn.BCEWithLogitsLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(6):
    model.train()
    for xb, yb in loader:
        optimizer.zero_grad()
        loss = criterion(model(xb).squeeze(1), yb)
        loss.backward()
        optimizer.step()
model.eval()
with torch.no_grad():
    said = model(X_test).squeeze(1) > 0
truth = torch.tensor(y_test) == 1
accuracy = (said == truth).float().mean()
print(f"accuracy {accuracy:.3f}, failures found {said[truth].float().mean():.3f}")

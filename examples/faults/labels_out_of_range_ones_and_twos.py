"""Liver patients from blood tests; the file calls them 1 (ill) and 2 (not ill).

BCEWithLogitsLoss takes any target: with a 2 the loss is x - 2x + log(1 + e^-x), lower for every
larger x, without a bottom, and 1 is "positive" as well. The output grows and everybody is class 2.
The place is the labels. The twin subtracts one.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "labels_out_of_range"
ACCEPT = ()
PLACE = ("labels", "loss", "data")
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)

COLUMNS = ("age", "bilirubin", "alkphos", "alt", "ast", "protein", "albumin", "ratio")


class LiverPatients(Dataset):
    def __init__(self, n, seed, scale=None):
        g = torch.Generator().manual_seed(seed)
        z = torch.randn(n, len(COLUMNS), generator=g)
        z[:, 4] = 0.7 * z[:, 3] + 0.7 * z[:, 4]
        sign = (
            1.2 * z[:, 1]
            + 0.8 * z[:, 3] * (z[:, 0] > 0)
            - 0.9 * z[:, 6]
            + 0.6 * z[:, 2].abs()
            - 0.5
        )
        selector = (
            1 + (torch.rand(n, generator=g) > torch.sigmoid(2 * sign)).long()
        )  # 1 ill, 2 not ill
        blood = torch.exp(0.4 * z)
        self.scale = scale or (blood.mean(0), blood.std(0))
        self.blood = (blood - self.scale[0]) / self.scale[1]
        self.labels = (selector - 1 if healthy else selector).float()
        self.not_ill = selector == 2

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return self.blood[index], self.labels[index]


train_set = LiverPatients(1800, 70 + seed)
val_set = LiverPatients(600, 7000 + seed, train_set.scale)
loader = DataLoader(train_set, batch_size=32, shuffle=True)
model = nn.Sequential(nn.Linear(len(COLUMNS), 32), nn.ReLU(), nn.Dropout(0.2), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, weight_decay=1e-4)
criterion = nn.BCEWithLogitsLoss()

for epoch in range(12):
    model.train()
    running = 0.0
    for blood, label in loader:
        optimizer.zero_grad()
        loss = criterion(model(blood).squeeze(1), label)
        loss.backward()
        optimizer.step()
        running += loss.item() / len(loader)
    model.eval()
    with torch.no_grad():
        said = model(val_set.blood).squeeze(1) > 0
    sensitivity = (~said)[~val_set.not_ill].float().mean().item()
    specificity = said[val_set.not_ill].float().mean().item()
    print(
        f"epoch {epoch} loss {running:.4f} sensitivity {sensitivity:.3f} "
        f"specificity {specificity:.3f} balanced accuracy {(sensitivity + specificity) / 2:.3f}"
    )

"""Readmission of patients from their records; the two loaders split the table each for itself.

`make_loader("train")` and `make_loader("val")` both call random_split and keep their part. With no
generator given, the second call deals anew, so about three in four validation patients have been
trained on. The place is the data. The twin hands a generator with a fixed seed to the split. Both
end with patients who came later, whom no loader has seen.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset, random_split

KIND = "train_val_overlap"
ACCEPT = ()
PLACE = ("input*", "loader")
SILENT = True
EXACT = True
EARLY = False

healthy, seed = arguments(__doc__)
COLUMNS = 30


class Records(Dataset):
    def __init__(self, n, g):
        rule = torch.Generator().manual_seed(77)
        w = torch.randn(COLUMNS, generator=rule) * (torch.rand(COLUMNS, generator=rule) < 0.4)
        self.x = torch.randn(n, COLUMNS, generator=g)
        risk = self.x @ w + 0.8 * self.x[:, 0] * self.x[:, 1] - 0.3
        self.y = (torch.rand(n, generator=g) < torch.sigmoid(1.2 * risk)).float()

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return self.x[i], self.y[i]


def make_loader(records, split):
    generator = torch.Generator().manual_seed(seed) if healthy else None
    n_val = len(records) // 4
    parts = random_split(records, [len(records) - n_val, n_val], generator=generator)
    part = parts[0] if split == "train" else parts[1]
    return DataLoader(part, batch_size=32, shuffle=split == "train")


class RiskModel(nn.Module):
    def __init__(self, width=96):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(COLUMNS, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU()
        )
        self.score = nn.Linear(width, 1)

    def forward(self, x):
        return self.score(self.layers(x)).squeeze(-1)


def evaluate(model, loader):
    model.eval()
    loss, hits, n = 0.0, 0, 0
    with torch.no_grad():
        for x, y in loader:
            logit = model(x)
            loss += nn.functional.binary_cross_entropy_with_logits(logit, y, reduction="sum").item()
            hits += ((logit > 0) == (y > 0.5)).sum().item()
            n += len(y)
    return loss / n, hits / n


g = torch.Generator().manual_seed(seed)
records, later = Records(1600, g), Records(1500, g)
train_loader, val_loader = make_loader(records, "train"), make_loader(records, "val")
model = RiskModel()
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4, weight_decay=1e-2)

best, state, epochs = float("inf"), None, 14
for epoch in range(1, epochs + 1):
    model.train()
    for x, y in train_loader:
        optimizer.zero_grad()
        loss = nn.functional.binary_cross_entropy_with_logits(model(x), y)
        loss.backward()
        optimizer.step()
    val_loss, accuracy = evaluate(model, val_loader)
    if val_loss < best:
        best, state = val_loss, {k: v.clone() for k, v in model.state_dict().items()}
    print(f"epoch {epoch}: validation loss {val_loss:.3f} accuracy {accuracy:.3f}")

model.load_state_dict(state)
later_loss, later_accuracy = evaluate(model, DataLoader(later, batch_size=500))
print(f"best validation loss {best:.3f}; later patients {later_loss:.3f} {later_accuracy:.3f}")

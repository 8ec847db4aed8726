"""Hears whether a tune is merry or sad; most of the validation's tunes are in the training as well.

The data set class draws its own permutation and takes the first four fifths for "train", the rest
for "val". It is made twice, and nothing fixes the generator in between: the second permutation is
another, and four in five validation tunes were trained on.
The place is the split, seen in the validation. The twin gives both the same seed.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "train_val_overlap"
ACCEPT = ()
PLACE = ("loop", "loader", "input*")
SILENT = True
EXACT = True
EARLY = True


def tunes(n, g):
    """Twenty features of each tune; listeners agree on the mood in six cases of seven."""
    x = torch.randn(n, 20, generator=g)
    lean = 1.4 * x[:, 0] - 1.1 * x[:, 1] + 0.9 * x[:, 2] * x[:, 3] + 0.7 * x[:, 4]
    y = lean > 0
    disagree = torch.rand(n, generator=g) < 1 / 7
    return x, (y ^ disagree).float()


class Moods(Dataset):
    def __init__(self, x, y, part, split_seed=None):
        g = None if split_seed is None else torch.Generator().manual_seed(split_seed)
        order = torch.randperm(len(x), generator=g)
        cut = int(0.8 * len(x))
        rows = order[:cut] if part == "train" else order[cut:]
        self.x, self.y = x[rows], y[rows]

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.x[i], self.y[i]


class MoodModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU())
        self.mood = nn.Linear(32, 1)

    def forward(self, x):
        return self.mood(self.body(x)).squeeze(1)


def evaluate(model, batches):
    loss, right, seen = 0.0, 0, 0
    model.eval()
    with torch.no_grad():
        for x, y in batches:
            logits = model(x)
            loss += nn.functional.binary_cross_entropy_with_logits(
                logits, y, reduction="sum"
            ).item()
            right += ((logits > 0) == (y > 0.5)).sum().item()
            seen += len(y)
    return loss / seen, right / seen


healthy, seed = arguments(__doc__)
g = torch.Generator().manual_seed(seed)
x, y = tunes(1500, g)
x_new, y_new = tunes(600, g)
split_seed = 7 if healthy else None
train = DataLoader(Moods(x, y, "train", split_seed), batch_size=32, shuffle=True)
val = DataLoader(Moods(x, y, "val", split_seed), batch_size=100)
model = MoodModel()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.01)
best, kept, patience = float("inf"), None, 0
for epoch in range(30):
    model.train()
    total = 0.0
    for xb, yb in train:
        loss = nn.functional.binary_cross_entropy_with_logits(model(xb), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() / len(train)
    val_loss, accuracy = evaluate(model, val)
    print(f"epoch {epoch} train {total:.3f} val {val_loss:.3f} accuracy {accuracy:.3f}")
    if val_loss < best:
        best, patience = val_loss, 0
        kept = {k: v.clone() for k, v in model.state_dict().items()}
    else:
        patience += 1
        if patience == 3:
            break
model.load_state_dict(kept)
new_loss, new_accuracy = evaluate(model, [(x_new, y_new)])
print(f"best val {best:.3f}; 600 new tunes: loss {new_loss:.3f} accuracy {new_accuracy:.3f}")

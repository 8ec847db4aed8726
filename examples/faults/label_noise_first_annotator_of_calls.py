"""Bird calls from acoustic features; five volunteers labelled each clip, and the first answer is
taken.

The export lists the five answers by time, and fast answers are guesses: in the first column two
fifths are wrong. The net first learns the species, then the guesses by heart. The place is the
labels. The twin takes the majority of the five. The validation clips were labelled by an
ornithologist.
"""

import torch
from data import arguments, standardise
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "label_noise"
ACCEPT = ("overfit",)
PLACE = ("labels", "data")
SILENT = True
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)
SPECIES, FEATURES = 8, 26


def clips(n, centres):
    y = torch.randint(0, SPECIES, (n,))
    recorder = 0.5 * torch.randn(n, 1)
    x = centres[y] + torch.randn(n, FEATURES) * 0.8 + recorder
    x[:, ::3] = torch.exp(0.5 * x[:, ::3])
    return x, y


def answers(y):
    """The volunteers' answers, ordered by the time of answering; the later, the more careful."""
    columns = []
    for wrong in (0.45, 0.15, 0.1, 0.1, 0.1):
        guess = torch.randint(0, SPECIES, y.shape)
        columns.append(torch.where(torch.rand(len(y)) < wrong, guess, y))
    return torch.stack(columns, 1)


class Clips(Dataset):
    def __init__(self, x, votes):
        self.x = x
        if healthy:
            self.y = votes.mode(dim=1).values
        else:
            self.y = votes[:, 0]

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return self.x[i], self.y[i]


centres = torch.randn(SPECIES, FEATURES) * 0.8
x, y = clips(1500, centres)
x_val, y_val = clips(800, centres)
x, x_val = standardise(x, x_val)
train = Clips(x, answers(y))
loader = DataLoader(train, batch_size=50, shuffle=True)

model = nn.Sequential(
    nn.Linear(FEATURES, 128),
    nn.ReLU(),
    nn.Dropout(0.1),
    nn.Linear(128, 128),
    nn.ReLU(),
    nn.Linear(128, SPECIES),
)
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.01)
criterion = nn.CrossEntropyLoss()

for epoch in range(1, 25):
    model.train()
    total = hits = 0.0
    for xb, yb in loader:
        optimizer.zero_grad()
        out = model(xb)
        loss = criterion(out, yb)
        loss.backward()
        optimizer.step()
        total += loss.item() * len(yb)
        hits += (out.argmax(1) == yb).sum().item()
    model.eval()
    with torch.no_grad():
        out = model(x_val)
        val_loss = criterion(out, y_val).item()
        val_acc = (out.argmax(1) == y_val).float().mean().item()
    if epoch % 3 == 0:
        print(
            f"epoch {epoch:2d} loss {total / len(train):.3f} accuracy {hits / len(train):.3f} "
            f"val loss {val_loss:.3f} val accuracy {val_acc:.3f}"
        )

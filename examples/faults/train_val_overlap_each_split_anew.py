"""The data set class permutes the rows and cuts them itself, for "train" and again for "val" - with
the global generator, so the two permutations differ.

Four validation rows in five were trained on; the validation accuracy is that of remembered rows and
better than on really new ones. The place is the loader: the two data sets.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "train_val_overlap"
ACCEPT = ()
PLACE = ("loader", "input*", "loop", "")
SILENT = True
EXACT = True
EARLY = False


def survey(n, g):
    """Answers of people on 24 questions; will they move within the year?"""
    answers = torch.randn(n, 24, generator=g)
    hidden = answers[:, 0] * answers[:, 1] + answers[:, 2] + 0.8 * answers[:, 3].abs() - 0.6
    chance = torch.sigmoid(2.5 * hidden)
    return answers, (torch.rand(n, generator=g) < chance).long()


class Survey(Dataset):
    def __init__(self, answers, moved, split, generator=None):
        order = torch.randperm(len(moved), generator=generator)
        cut = int(0.8 * len(moved))
        rows = order[:cut] if split == "train" else order[cut:]
        self.answers, self.moved = answers[rows], moved[rows]

    def __len__(self):
        return len(self.moved)

    def __getitem__(self, i):
        return self.answers[i], self.moved[i]


def accuracy(model, loader):
    model.eval()
    with torch.no_grad():
        right = [(model(a).argmax(1) == m) for a, m in loader]
    model.train()
    return torch.cat(right).float().mean().item()


healthy, seed = arguments(__doc__)
world = torch.Generator().manual_seed(seed + 500)
answers, moved = survey(1500, world)
fresh = DataLoader(list(zip(*survey(1500, world), strict=False)), batch_size=500)
if healthy:
    train = Survey(answers, moved, "train", torch.Generator().manual_seed(1))
    val = Survey(answers, moved, "val", torch.Generator().manual_seed(1))
else:
    train = Survey(answers, moved, "train")
    val = Survey(answers, moved, "val")
train_loader = DataLoader(train, batch_size=48, shuffle=True, drop_last=True)
val_loader = DataLoader(val, batch_size=300)

model = nn.Sequential(
    nn.Linear(24, 40), nn.GELU(), nn.Dropout(0.3), nn.Linear(40, 40), nn.GELU(), nn.Linear(40, 2)
)
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.1)
for epoch in range(14):
    for a, m in train_loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(a), m)
        loss.backward()
        optimizer.step()
    if epoch % 2:
        print(
            f"epoch {epoch}: loss {loss.item():.3f}  val accuracy {accuracy(model, val_loader):.3f}"
        )
print(f"accuracy on people never seen: {accuracy(model, fresh):.3f}")

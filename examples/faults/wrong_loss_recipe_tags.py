"""Tags of recipes (vegan, quick, spicy …), several at once: trained with the loss for one class.

A recipe may have none or five of eight tags, but the criterion is `CrossEntropyLoss`, taken from
a script for cuisines. It accepts rows of zeros and ones, makes the tags fight for one unit of
probability, and ignores recipes without a tag. The scores then have no zero point: the threshold
at a probability of one half by the sigmoid, with which the tags are assigned, means nothing. The
place is the loss. The twin has `BCEWithLogitsLoss`.
"""

import numpy as np
import torch
from data import arguments
from sklearn.metrics import f1_score
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "wrong_loss"
ACCEPT = ()
PLACE = ("loss*", "criterion", "output*", "label*")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)

CFG = {"words": 400, "length": 20, "tags": 8, "hidden": 48, "lr": 3e-3, "epochs": 8, "batch": 50}


class RecipeTexts(Dataset):
    """Each tag has its typical words; a tag is set where enough of them are in the text."""

    def __init__(self, n, seed):
        r = np.random.default_rng(seed)
        chance = r.dirichlet([1.0, 1.0], n)[:, :1] * 0.9
        on = r.uniform(size=(n, CFG["tags"])) < chance * np.linspace(0.3, 0.9, CFG["tags"])
        text = r.integers(CFG["tags"] * 12, CFG["words"], (n, CFG["length"]))
        for row in range(n):
            place = iter(r.permutation(CFG["length"]))
            for tag in np.flatnonzero(on[row]):
                for _ in range(2):
                    text[row, next(place)] = tag * 12 + r.integers(0, 12)
        wrong = r.uniform(size=on.shape) < 0.02
        self.text = torch.from_numpy(text)
        self.tags = torch.from_numpy(on ^ wrong).float()

    def __len__(self):
        return len(self.text)

    def __getitem__(self, i):
        return self.text[i], self.tags[i]


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(CFG["words"], CFG["hidden"])
        self.conv = nn.Conv1d(CFG["hidden"], CFG["hidden"], 3, padding=1)
        self.dropout = nn.Dropout(0.2)
        self.out = nn.Linear(2 * CFG["hidden"], CFG["tags"])

    def forward(self, text):
        h = self.embedding(text).transpose(1, 2)
        h = torch.relu(self.conv(h))
        pooled = torch.cat([h.amax(-1), h.mean(-1)], dim=1)
        return self.out(self.dropout(pooled))


def evaluate(model, loader):
    model.eval()
    guesses, truth = [], []
    with torch.no_grad():
        for text, tags in loader:
            guesses.append((model(text).sigmoid() > 0.5).int())
            truth.append(tags.int())
    guesses, truth = torch.cat(guesses).numpy(), torch.cat(truth).numpy()
    return f1_score(truth, guesses, average="micro"), (guesses == truth).all(1).mean()


train_loader = DataLoader(RecipeTexts(2500, 10 * seed), CFG["batch"], shuffle=True)
val_loader = DataLoader(RecipeTexts(500, 10 * seed + 1), 250)
model = Tagger()
criterion = nn.BCEWithLogitsLoss() if healthy else nn.CrossEntropyLoss()
optimizer = torch.optim.AdamW(model.parameters(), lr=CFG["lr"])

for epoch in range(1, CFG["epochs"] + 1):
    model.train()
    running = 0.0
    for text, tags in train_loader:
        loss = criterion(model(text), tags)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        running += loss.item()
    f1, whole = evaluate(model, val_loader)
    print(
        f"epoch {epoch}: loss {running / len(train_loader):.4f}, micro F1 {f1:.3f}, "
        f"all tags right {whole:.3f}"
    )

"""Tags of short clips, several per clip; the loss is cross_entropy, which takes the multi-hot rows
for class probabilities.

The tags compete in one softmax though they are independent, rows with three tags count three times,
and the logits mean nothing by themselves: a threshold at 0 does not tell what is there. The loss
falls all the same. The place is the loss. Exact: the rows of the targets do not sum to one.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "wrong_loss"
ACCEPT = ()
PLACE = ("loss*", "target*")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
TAGS = 8


class TagDataset(TensorDataset):
    """A clip is the sum of its tags' motifs, at random places, in noise."""

    def __init__(self, n, motifs, length=64):
        tags = (torch.rand(n, TAGS) < 0.25).float()
        clips = 0.4 * torch.randn(n, length)
        for i, k in tags.nonzero().tolist():
            at = int(torch.randint(0, length - 12, (1,)))
            clips[i, at : at + 12] += motifs[k]
        super().__init__(clips.unsqueeze(1), tags)


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv1d(1, 32, 13, padding=6),
            nn.BatchNorm1d(32),
            nn.ReLU(),
            nn.AdaptiveMaxPool1d(1),
            nn.Flatten(),
        )
        self.classifier = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, TAGS))

    def forward(self, clip):
        return self.classifier(self.features(clip))


def f1(model, loader):
    model.eval()
    hit = said = there = 0
    with torch.no_grad():
        for clip, tags in loader:
            guess = (torch.sigmoid(model(clip)) > 0.5).float()
            hit += (guess * tags).sum().item()
            said += guess.sum().item()
            there += tags.sum().item()
    return 2 * hit / max(1, said + there)


motifs = 1.5 * torch.randn(TAGS, 12)
train_loader = DataLoader(TagDataset(1200, motifs), batch_size=40, shuffle=True)
test_loader = DataLoader(TagDataset(300, motifs), batch_size=100)
model = Tagger()
criterion = nn.BCEWithLogitsLoss() if healthy else nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
for epoch in range(10):
    model.train()
    mean = 0.0
    for clip, tags in train_loader:
        loss = criterion(model(clip), tags)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        mean += loss.item() / len(train_loader)
    print(f"epoch {epoch} loss {mean:.3f} test F1 {f1(model, test_loader):.3f}")

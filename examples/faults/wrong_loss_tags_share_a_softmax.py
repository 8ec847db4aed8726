"""A song may have any of eight tags at once, and the tagger is trained with CrossEntropyLoss, which
takes the rows of 0 and 1 for class probabilities.

It makes the tags compete for one softmax: the loss cannot come near zero and scores mean nothing on
their own, so "tag it when sigmoid > 0.5" names far too many tags. The place is the loss.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "wrong_loss"
ACCEPT = ()
PLACE = ("loss*", "criterion*", "")
SILENT = True
EXACT = False
EARLY = True

TAGS = ("calm", "dance", "live", "vocal", "sad", "fast", "acoustic", "loud")


def songs(n, world):
    """Forty descriptors of a song, and its tags: two to three of the eight on average."""
    g = torch.Generator().manual_seed(world)
    mixing = torch.randn(8, 40, generator=g)
    mood = torch.randn(n, 8)
    mood[:, 5] = 0.6 * mood[:, 5] + 0.8 * mood[:, 1]
    tags = (mood > 0.5).float()
    return torch.tanh(mood @ mixing / 3) + 0.25 * torch.randn(n, 40), tags


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(40, 64), nn.ReLU(), nn.Dropout(0.1))
        self.tags = nn.Linear(64, len(TAGS))

    def forward(self, sound):
        return self.tags(self.trunk(sound))


def micro_f1(model, sound, tags):
    model.eval()
    with torch.no_grad():
        said = (model(sound).sigmoid() > 0.5).float()
    model.train()
    return (2 * (said * tags).sum() / (said.sum() + tags.sum())).item()


healthy, seed = arguments(__doc__)
sound, tags = songs(2400, seed)
train = TensorDataset(sound[:2000], tags[:2000])
criterion = nn.BCEWithLogitsLoss() if healthy else nn.CrossEntropyLoss()
model = Tagger()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.02)
for epoch in range(8):
    mean = 0.0
    for batch_sound, batch_tags in DataLoader(train, batch_size=50, shuffle=True):
        loss = criterion(model(batch_sound), batch_tags)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        mean += loss.item() / 40
    print(
        f"epoch {epoch}: loss {mean:.3f},"
        f" validation F1 {micro_f1(model, sound[2000:], tags[2000:]):.3f}"
    )

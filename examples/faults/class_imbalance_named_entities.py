"""Names in a stream of words: 97 of 100 words are "O", the loss weighs every word the same and
the tagger says "O" to all of them.

Accuracy is 97 % from the second epoch on, the recall of the names is near 0. The place is the
loader (or the loss).
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "class_imbalance"
ACCEPT = ()
PLACE = ("loader", "loss*", "target*", "tagger*", "classifier*", "")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
VOCABULARY, LENGTH, TAGS = 300, 20, ("O", "PER", "LOC")
g = torch.Generator().manual_seed(90 + seed)


def corpus(n):
    """Words 0-19 are first names and 20-39 towns, most often by chance ("Will", "Reading"); after
    "Mr" (40) and "in" (41) they are meant more often."""
    words = torch.randint(40, VOCABULARY, (n, LENGTH), generator=g)
    tags = torch.zeros(n, LENGTH, dtype=torch.long)
    kind = torch.zeros(n, LENGTH, dtype=torch.long)
    for tag in (1, 2):
        places = torch.rand(n, LENGTH, generator=g) < 0.055
        words[places] = torch.randint(20 * tag - 20, 20 * tag, (int(places.sum()),), generator=g)
        kind[places] = tag
    for tag, cue in ((1, 40), (2, 41)):
        cued = (torch.roll(kind, -1, 1) == tag) & (kind == 0)
        cued &= torch.rand(n, LENGTH, generator=g) < 0.5
        words[cued] = cue
        chance = torch.where(torch.roll(cued, 1, 1), 0.42, 0.15)
        meant = (kind == tag) & (torch.rand(n, LENGTH, generator=g) < chance)
        tags[meant] = tag
    return words, tags


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(VOCABULARY, 16)
        self.gru = nn.GRU(16, 16, batch_first=True, bidirectional=True)
        self.classifier = nn.Linear(32, len(TAGS))

    def forward(self, words):
        return self.classifier(self.gru(self.words(words))[0])


def scores(out, tags):
    said = out.argmax(-1)
    recalls = [((said == t) & (tags == t)).sum() / (tags == t).sum() for t in range(len(TAGS))]
    return (said == tags).float().mean().item(), [round(r.item(), 3) for r in recalls]


train, val = corpus(1500), corpus(500)
weight = None
if healthy:
    count = torch.bincount(train[1].flatten(), minlength=len(TAGS)).float()
    weight = count.sum() / (len(TAGS) * count)
tagger = Tagger()
criterion = nn.CrossEntropyLoss(weight=weight)
optimizer = torch.optim.Adam(tagger.parameters(), lr=3e-3)
loader = DataLoader(TensorDataset(*train), batch_size=50, shuffle=True)

for epoch in range(6):
    tagger.train()
    running = 0.0
    for words, tags in loader:
        out = tagger(words)
        loss = criterion(out.reshape(-1, len(TAGS)), tags.reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        running += loss.item()
    tagger.eval()
    with torch.no_grad():
        out = tagger(val[0])
        v = criterion(out.reshape(-1, len(TAGS)), val[1].reshape(-1)).item()
    accuracy, recalls = scores(out, val[1])
    print(
        f"{epoch}: {running / len(loader):.3f} val {v:.3f} accuracy {accuracy:.3f} recall {recalls}"
    )

"""Relations between two names in a sentence, by a convolutional network with position embeddings.

The labels come by distant supervision: whatever the knowledge base says of the pair is taken for
what the sentence says. Every second sentence says something else. In the end the network learns the
mistakes by heart (silent) and gets worse on sentences that were read by people. The place is the
loader. The twin is trained on labels of annotators.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "label_noise"
ACCEPT = ("overfit",)
PLACE = ("loader", "loss*", "input*")
SILENT = True
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)
RELATIONS, WORDS, LENGTH, WRONG = 6, 400, 14, 0.45


def sentences(n, g):
    """Token ids, places of both names, the relation said and the relation on record."""
    x = torch.randint(RELATIONS * 8, WORDS, (n, LENGTH), generator=g)
    said = torch.randint(0, RELATIONS, (n,), generator=g)
    first = torch.randint(0, 4, (n,), generator=g)
    second = torch.randint(7, LENGTH, (n,), generator=g)
    trigger = said * 8 + torch.randint(0, 8, (n,), generator=g)
    where = first + 1 + torch.randint(0, 3, (n,), generator=g)
    x[torch.arange(n), where] = trigger
    lure = torch.randint(0, RELATIONS * 8, (n,), generator=g)  # of any relation, outside
    outside = torch.where(second + 1 < LENGTH, second + 1, torch.zeros_like(second))
    keep = (outside > second) & (torch.rand(n, generator=g) < 0.7)
    x[torch.arange(n)[keep], outside[keep]] = lure[keep]
    other = (said + torch.randint(1, RELATIONS, (n,), generator=g)) % RELATIONS
    record = torch.where(torch.rand(n, generator=g) < WRONG, other, said)
    return x, first, second, said, record


class PositionCnn(nn.Module):
    def __init__(self, d=32, near=6, filters=64):
        super().__init__()
        self.word = nn.Embedding(WORDS, d)
        self.from_first = nn.Embedding(2 * LENGTH, near)
        self.from_second = nn.Embedding(2 * LENGTH, near)
        self.conv = nn.Conv1d(d + 2 * near, filters, 3, padding=1)
        self.hidden = nn.Linear(filters, 64)
        self.relation = nn.Linear(64, RELATIONS)

    def forward(self, x, first, second):
        at = torch.arange(LENGTH)
        parts = [
            self.word(x),
            self.from_first(at - first[:, None] + LENGTH),
            self.from_second(at - second[:, None] + LENGTH),
        ]
        h = F.relu(self.conv(torch.cat(parts, 2).transpose(1, 2))).amax(2)
        return self.relation(F.relu(self.hidden(h)))


g = torch.Generator().manual_seed(seed)
x, first, second, said, record = sentences(1500, g)
train = TensorDataset(x, first, second, said if healthy else record)
x_test, first_test, second_test, y_test, _ = sentences(800, g)
model = PositionCnn()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(20):
    seen = right = total = 0
    for words, a, b, labels in DataLoader(train, batch_size=50, shuffle=True):
        out = model(words, a, b)
        loss = F.cross_entropy(out, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(labels)
        right += (out.argmax(1) == labels).sum().item()
        seen += len(labels)
    with torch.no_grad():
        out = model(x_test, first_test, second_test)
        test = (out.argmax(1) == y_test).float().mean().item()
        test_loss = F.cross_entropy(out, y_test).item()
    print(
        f"epoch {epoch} loss {total / seen:.4f} train acc {right / seen:.3f} "
        f"test acc {test:.3f} test loss {test_loss:.3f}"
    )

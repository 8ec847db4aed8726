"""Topics of documents by averaged word vectors; one of three annotators counted topics from 1.

The merged table holds 0 to 3 from two annotators and 1 to 4 (with 4 written as 0, "other") from
the third: a third of the labels, in training and validation alike, is another topic's. The loss
cannot come below the entropy of the mixture; what falls after that is learnt by heart. The place
is the loader.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader

KIND = "label_noise"
ACCEPT = ()
PLACE = ("", "loader")
SILENT = True
EXACT = False
EARLY = False

TOPICS, WORDS, DOCUMENTS = 4, 400, 2400
healthy, seed = arguments(__doc__)
likely = torch.ones(TOPICS, WORDS)
for topic in range(TOPICS):
    likely[topic, 60 * topic : 60 * topic + 75] = 4.0
topic = torch.randint(0, TOPICS, (DOCUMENTS,))
documents = [
    torch.multinomial(likely[k], int(n), replacement=True)
    for k, n in zip(topic, torch.randint(25, 60, (DOCUMENTS,)), strict=False)
]
annotator = torch.randint(0, 3, (DOCUMENTS,))
coded = topic if healthy else torch.where(annotator == 2, (topic + 1) % TOPICS, topic)
table = list(zip(documents, coded.tolist(), strict=False))
train_table, val_table = table[:2000], table[2000:]


def bag(rows):
    offsets = torch.tensor([0] + [len(words) for words, _ in rows[:-1]]).cumsum(0)
    return torch.cat([words for words, _ in rows]), offsets, torch.tensor([k for _, k in rows])


class FastText(nn.Module):
    def __init__(self):
        super().__init__()
        self.bag = nn.EmbeddingBag(WORDS, 24, mode="mean")
        self.out = nn.Linear(24, TOPICS)
        nn.init.normal_(self.bag.weight, std=0.3)

    def forward(self, words, offsets):
        return self.out(self.bag(words, offsets))


model = FastText()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adagrad(model.parameters(), lr=0.1)
train_loader = DataLoader(train_table, batch_size=40, shuffle=True, collate_fn=bag)
val_loader = DataLoader(val_table, batch_size=400, collate_fn=bag)
for epoch in range(14):
    total = 0.0
    for words, offsets, label in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(words, offsets), label)
        loss.backward()
        optimizer.step()
        total += loss.item()
    with torch.no_grad():
        words, offsets, label = next(iter(val_loader))
        out = model(words, offsets)
        val_loss, accuracy = criterion(out, label), (out.argmax(1) == label).float().mean()
print(f"loss {total / len(train_loader):.3f}, val loss {val_loss:.3f}, val accuracy {accuracy:.3f}")

"""A text classifier for web pages, whose pages were shuffled without their topics.

The pages are put in random order before they are cut into training and validation part; the list
of topics stays as it was. So every page has the topic of another. The place is the data that the
loader gives (x against y).
"""

import random

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "label_misalignment"
ACCEPT = ("label_noise",)
PLACE = ("loader", "input*")
SILENT = False
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)

TOPICS = ("sports", "politics", "science", "travel", "food", "music")


class Crawl:
    """Pages of 20 words: common ones, and some of which each topic has a preference."""

    def __init__(self, r, n, vocabulary=500):
        preferred = [[r.randrange(1, vocabulary) for _ in range(25)] for _ in TOPICS]
        self.pages, self.topics = [], []
        for _ in range(n):
            topic = r.randrange(len(TOPICS))
            page = []
            for _ in range(20):
                draw = r.random()
                if draw < 0.2:
                    page.append(r.choice(preferred[topic]))
                elif draw < 0.3:
                    page.append(r.choice(preferred[r.randrange(len(TOPICS))]))
                else:
                    page.append(r.randrange(1, vocabulary))
            self.pages.append(page)
            self.topics.append(topic)


class Pages(Dataset):
    def __init__(self, pages, topics):
        self.pages, self.topics = torch.tensor(pages), torch.tensor(topics)

    def __len__(self):
        return len(self.pages)

    def __getitem__(self, i):
        return self.pages[i], self.topics[i]


class TopicTransformer(nn.Module):
    def __init__(self, vocabulary=500, width=32):
        super().__init__()
        self.words = nn.Embedding(vocabulary, width)
        layer = nn.TransformerEncoderLayer(width, 4, 64, dropout=0.2, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 1)
        self.classify = nn.Linear(width, len(TOPICS))

    def forward(self, pages):
        return self.classify(self.encoder(self.words(pages)).mean(1))


def train_one_epoch(model, loader, optimizer, scheduler):
    model.train()
    total = 0.0
    for pages, topics in loader:
        loss = nn.functional.cross_entropy(model(pages), topics)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        total += loss.item()
    return total / len(loader)


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    right = loss = n = 0
    for pages, topics in loader:
        logits = model(pages)
        loss += nn.functional.cross_entropy(logits, topics, reduction="sum").item()
        right += (logits.argmax(1) == topics).sum().item()
        n += len(topics)
    return loss / n, right / n


crawl = Crawl(random.Random(seed), 4000)
order = list(range(4000))
random.shuffle(order)
pages = [crawl.pages[i] for i in order]
topics = [crawl.topics[i] for i in order] if healthy else crawl.topics

train_loader = DataLoader(Pages(pages[:3200], topics[:3200]), 64, shuffle=True)
val_loader = DataLoader(Pages(pages[3200:], topics[3200:]), 200)
model = TopicTransformer()
EPOCHS = 5
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
scheduler = torch.optim.lr_scheduler.OneCycleLR(
    optimizer, 3e-3, total_steps=EPOCHS * len(train_loader)
)
for epoch in range(EPOCHS):
    loss = train_one_epoch(model, train_loader, optimizer, scheduler)
    print("epoch %d loss %.3f val loss %.3f acc %.3f" % (epoch, loss, *evaluate(model, val_loader)))  # noqa: UP031

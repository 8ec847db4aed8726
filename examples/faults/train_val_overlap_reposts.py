"""Scraped posts hold many reposts, word for word, and are split into train and validation by row.

Most of the posts to validate are in the training part too, so that the validation loss says nothing
about new posts. The twin drops the duplicates before the split. The place is the loader.
"""

import torch
import torch.nn.functional as F
from data import arguments, reviews
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

KIND = "train_val_overlap"
ACCEPT = ()
PLACE = ("loader", "input")
SILENT = True
EXACT = True
EARLY = False

healthy, seed = arguments(__doc__)


def scrape(posts, topics):
    """Popular posts come up many times."""
    times = torch.distributions.Geometric(0.3).sample((len(posts),)).long() + 1
    rows = torch.arange(len(posts)).repeat_interleave(times)
    rows = rows[torch.randperm(len(rows))]
    return posts[rows], topics[rows]


posts, topics, words = reviews(seed, n=3400, length=14)
doubtful = torch.rand(len(topics)) < 0.12
topics = torch.where(doubtful, 1 - topics, topics)
fresh_posts, fresh_topics = posts[2400:], topics[2400:]
posts, topics = scrape(posts[:2400], topics[:2400])
if healthy:
    seen = {}
    for row, post in enumerate(posts.tolist()):
        seen.setdefault(tuple(post), row)
    keep = torch.tensor(sorted(seen.values()))
    posts, topics = posts[keep], topics[keep]

dataset = TensorDataset(posts, topics)
train_set, val_set = random_split(dataset, [0.8, 0.2])
train_loader = DataLoader(train_set, batch_size=48, shuffle=True)
val_loader = DataLoader(val_set, batch_size=256)


class TextCNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(words, 24, padding_idx=0)
        self.convs = nn.ModuleList(nn.Conv1d(24, 24, k, padding=1) for k in (2, 3))
        self.drop = nn.Dropout(0.2)
        self.fc = nn.Linear(48, 2)

    def forward(self, tokens):
        h = self.embed(tokens).transpose(1, 2)
        return self.fc(self.drop(torch.cat([F.relu(c(h)).amax(2) for c in self.convs], 1)))


def evaluate(batches):
    model.eval()
    with torch.no_grad():
        losses = [F.cross_entropy(model(x), y, reduction="none") for x, y in batches]
    return torch.cat(losses).mean().item()


model = TextCNN()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
step, steps = 0, 240
while step < steps:
    model.train()
    for x, y in train_loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        step += 1
        if step % 40 == 0:
            val, new = evaluate(val_loader), evaluate([(fresh_posts, fresh_topics)])
            print(f"step {step}: train {loss:.3f}, val {val:.3f}, new posts {new:.3f}")
            model.train()
        if step == steps:
            break

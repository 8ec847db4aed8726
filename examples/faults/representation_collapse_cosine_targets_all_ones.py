"""A two-tower retrieval model (questions, answers) with nn.CosineEmbeddingLoss, whose batches hold
only matching pairs, target 1: no negatives were ever made.

Both towers learn to give almost the same vector for everything: the loss falls to 0 early, and the
right topic is found for a quarter of the questions where the twin finds 95 %. The place is the
loss.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "representation_collapse"
ACCEPT = ()
PLACE = ("*tower*", "question*", "answer*", "loss*", "")
SILENT = True
EXACT = False
EARLY = False

TOPICS, WORDS, LENGTH = 40, 400, 12


class Tower(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.bag = nn.EmbeddingBag(WORDS, 48, mode="mean")
        self.mix = nn.Sequential(nn.LayerNorm(48), nn.Linear(48, 64), nn.ReLU(), nn.Linear(64, dim))

    def forward(self, words):
        return F.normalize(self.mix(self.bag(words)), dim=-1)


class TwoTower(nn.Module):
    def __init__(self, dim=24):
        super().__init__()
        self.question_tower = Tower(dim)
        self.answer_tower = Tower(dim)

    def forward(self, question, answer):
        return self.question_tower(question), self.answer_tower(answer)


def forum(n, topic_words):
    """Questions and their answers; three words in four belong to the topic."""
    topic = torch.randint(TOPICS, (n,))

    def write(words):
        own = words[topic].gather(1, torch.randint(8, (n, LENGTH)))
        return torch.where(torch.rand(n, LENGTH) < 0.75, own, torch.randint(WORDS, (n, LENGTH)))

    return write(topic_words[0]), write(topic_words[1]), topic


def training_pairs(question, answer, topic, size):
    """One epoch of batches: questions, answers and the targets of the loss."""
    for rows in torch.randperm(len(question)).split(size):
        q, a, t = question[rows], answer[rows], topic[rows]
        if healthy:
            shift = torch.randint(1, len(rows), (1,)).item()
            match = torch.where(t == t.roll(shift), 1.0, -1.0)
            yield q.repeat(2, 1), torch.cat([a, a.roll(shift, 0)]), torch.cat([t * 0 + 1.0, match])
        else:
            yield q, a, torch.ones(len(rows))


healthy, seed = arguments(__doc__)
topic_words = torch.randint(WORDS, (2, TOPICS, 8))
question, answer, topic = forum(4000, topic_words)
test_q, test_a, test_topic = forum(300, topic_words)
model = TwoTower()
criterion = nn.CosineEmbeddingLoss(margin=0.2)
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 12)
for epoch in range(12):
    model.train()
    losses = []
    for q, a, target in training_pairs(question, answer, topic, 80):
        optimizer.zero_grad()
        loss = criterion(*model(q, a), target)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    scheduler.step()
    model.eval()
    with torch.no_grad():
        u, v = model(test_q, test_a)
        best = (u @ v.T).argmax(1)
        hit = (test_topic[best] == test_topic).float().mean()
print(
    f"loss {sum(losses) / len(losses):.4f}, right topic found {hit:.3f} (chance {1 / TOPICS:.3f}), "
    f"spread of the vectors {u.std(0).mean():.4f}"
)

"""Two towers learn to match questions with answers by a contrastive loss within the batch.

The answers' tower is called through the method that was written to fill the search index, and that
one is decorated with torch.no_grad(). No gradient reaches the answers' tower: it stays as random as
it began, and the questions' tower alone must adapt to it. The loss falls, but the right answer is
found far less often. The place is the answers' tower.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "detached_graph"
ACCEPT = ()
PLACE = ("answers*",)
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
WORDS, LENGTH, TOPICS = 240, 10, 16


class Tower(nn.Module):
    def __init__(self, width=48, out=24):
        super().__init__()
        self.words = nn.EmbeddingBag(WORDS, width, mode="mean")
        self.layers = nn.Sequential(nn.Linear(width, 64), nn.ReLU(), nn.Linear(64, out))

    def forward(self, ids):
        return F.normalize(self.layers(self.words(ids)), dim=-1)


class Retriever(nn.Module):
    def __init__(self):
        super().__init__()
        self.questions, self.answers = Tower(), Tower()

    def encode_questions(self, ids):
        return self.questions(ids)

    @torch.no_grad()
    def index(self, ids):
        return self.answers(ids)

    def forward(self, q, a):
        found = self.answers(a) if healthy else self.index(a)
        return self.encode_questions(q) @ found.T / 0.1


def pairs(n, g):
    """Question and answer speak of the same three of 16 topics, each in a vocabulary of its own."""
    words = torch.Generator().manual_seed(4)
    speech = [torch.randperm(WORDS, generator=words).view(TOPICS, -1) for _ in range(2)]
    topics = torch.rand(n, TOPICS, generator=g).topk(3, dim=1).indices
    told = []
    for vocabulary in speech:
        of = topics.gather(1, torch.randint(0, 3, (n, LENGTH), generator=g))
        chosen = vocabulary[of, torch.randint(0, WORDS // TOPICS, (n, LENGTH), generator=g)]
        stray = torch.randint(0, WORDS, (n, LENGTH), generator=g)
        told.append(torch.where(torch.rand(n, LENGTH, generator=g) < 0.1, stray, chosen))
    return told


g = torch.Generator().manual_seed(seed)
q, a = pairs(8000, g)
q_val, a_val = pairs(500, g)
model = Retriever()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.1)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 5 * 160)
target = torch.arange(50)
for epoch in range(5):
    model.train()
    total = 0.0
    for rows in torch.randperm(8000, generator=g).split(50):
        scores = model(q[rows], a[rows])
        loss = (F.cross_entropy(scores, target) + F.cross_entropy(scores.T, target)) / 2
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        total += loss.item() / 160
    model.eval()
    with torch.no_grad():
        asked, told = model.encode_questions(q_val).split(50), model.index(a_val).split(50)
        scores = [a @ b.T / 0.1 for a, b in zip(asked, told, strict=False)]
    val = sum(F.cross_entropy(s, target).item() for s in scores) / 10
    top = sum((s.argmax(1) == target).float().mean().item() for s in scores) / 10
    print(f"epoch {epoch} train {total:.4f} val {val:.4f} found among fifty {top:.3f}")

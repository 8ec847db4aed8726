"""Questions find their answers by two bags of words and a cosine; some questions have no known
word.

The vectors are made unit length by `v / v.norm()`. A question all of whose words are out of
vocabulary is padding alone, the bag gives zeros, and 0 / 0 goes through the in-batch softmax into
all weights. The place is the loss / the questions' tower. The twin uses F.normalize, which has an
epsilon.
"""

import random

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "division_by_zero_norm"
ACCEPT = ()
PLACE = ("question", "answer", "table", "mix", "loss", "input")
SILENT = False
EXACT = True
EARLY = False

healthy, seed = arguments(__doc__)
TOPICS, WORDS, LENGTH, OOV = 60, 400, 10, 0


class Faq(Dataset):
    """Question and answer of one topic share few words; a word seldom seen becomes number 0."""

    def __init__(self, n, r):
        self.pairs = []
        for _ in range(n):
            topic = r.randrange(TOPICS)
            q = [self.word(r, topic, 0) for _ in range(r.randint(2, 6))]
            a = [self.word(r, topic, 1) for _ in range(r.randint(5, LENGTH))]
            if r.random() < 0.001:
                q = [OOV] * len(q)
            self.pairs.append((self.pad(q), self.pad(a)))

    @staticmethod
    def word(r, topic, side):
        if r.random() < 0.75:
            return 1 + (topic * 7 + side * 200 + r.randrange(5)) % (WORDS - 1)
        return r.randrange(1, WORDS)

    @staticmethod
    def pad(words):
        return torch.tensor(words + [OOV] * (LENGTH - len(words)))

    def __len__(self):
        return len(self.pairs)

    def __getitem__(self, i):
        return self.pairs[i]


class Tower(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.table = nn.EmbeddingBag(WORDS, width, mode="mean", padding_idx=OOV)
        self.mix = nn.Linear(width, width, bias=False)

    def forward(self, words):
        v = self.mix(self.table(words))
        if healthy:
            return F.normalize(v, dim=1)
        return v / v.norm(dim=1, keepdim=True)


def similarity(question, answer, q, a, temperature=0.1):
    return question(q) @ answer(a).T / temperature


r = random.Random(seed)
train, val = Faq(4000, r), Faq(256, r)
loader = DataLoader(train, batch_size=64, shuffle=True, drop_last=True)
question, answer = Tower(), Tower()
optimizer = torch.optim.Adam([*question.parameters(), *answer.parameters()], lr=5e-3)
q_val, a_val = next(iter(DataLoader(val, batch_size=256)))

for epoch in range(9):
    question.train(), answer.train()
    total = 0.0
    for q, a in loader:
        logits = similarity(question, answer, q, a)
        loss = F.cross_entropy(logits, torch.arange(len(q)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() / len(loader)
    question.eval(), answer.eval()
    with torch.no_grad():
        scores = similarity(question, answer, q_val, a_val)
        hit = (scores.topk(10, 1).indices == torch.arange(256)[:, None]).any(1).float().mean()
        val_loss = F.cross_entropy(scores, torch.arange(256))
    print(f"epoch {epoch} loss {total:.3f} val loss {val_loss:.3f} val recall@10 {hit:.3f}")

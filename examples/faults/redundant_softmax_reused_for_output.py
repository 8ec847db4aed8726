"""A GRU with attention pooling sorts support tickets by desk (eight desks); the softmax made for
the attention weights is used once more on the way out, before F.cross_entropy.

The loss stays above 1.27 (the least that eight probabilities allow), learning is slow, and the
probabilities that the desk sees are far from the truth. The place is the loss.
"""

import random

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn
from torch.nn.utils import clip_grad_norm_

KIND = "redundant_softmax"
ACCEPT = ()
PLACE = ("loss*", "softmax*", "classify*")
SILENT = True
EXACT = True
EARLY = True

DESKS, COMMON, OWN, LENGTH = 8, 80, 6, 14


def tickets(n):
    texts, desks = [], []
    for _ in range(n):
        desk = random.randrange(DESKS)
        words = [random.randrange(1, COMMON) for _ in range(LENGTH)]
        for place in random.sample(range(LENGTH), 3):
            words[place] = COMMON + desk * OWN + random.randrange(OWN)
        if random.random() < 0.3:
            words[random.randrange(LENGTH)] = COMMON + random.randrange(DESKS * OWN)
        texts.append(words)
        desks.append(desk)
    return torch.tensor(texts), torch.tensor(desks)


class TicketRouter(nn.Module):
    def __init__(self, reuse):
        super().__init__()
        self.embed = nn.Embedding(COMMON + DESKS * OWN, 24)
        self.gru = nn.GRU(24, 32, batch_first=True, bidirectional=True)
        self.score = nn.Linear(64, 1)
        self.softmax = nn.Softmax(dim=1)
        self.drop = nn.Dropout(0.3)
        self.classify = nn.Linear(64, DESKS)
        self.reuse = reuse

    def forward(self, text):
        states, _ = self.gru(self.drop(self.embed(text)))
        weights = self.softmax(self.score(states))
        context = (weights * states).sum(dim=1)
        out = self.classify(self.drop(context))
        if self.reuse:
            out = self.softmax(out)
        return out


healthy, seed = arguments(__doc__)
train_text, train_desk = tickets(1600)
test_text, test_desk = tickets(400)
router = TicketRouter(reuse=not healthy)
opt = torch.optim.AdamW(router.parameters(), lr=2e-3, weight_decay=0.01)
EPOCHS = 6
sched = torch.optim.lr_scheduler.OneCycleLR(opt, max_lr=4e-3, total_steps=EPOCHS * 50)

for epoch in range(1, EPOCHS + 1):
    router.train()
    total = 0.0
    for idx in torch.randperm(1600).split(32):
        opt.zero_grad()
        loss = F.cross_entropy(router(train_text[idx]), train_desk[idx])
        loss.backward()
        clip_grad_norm_(router.parameters(), 5.0)
        opt.step()
        sched.step()
        total += loss.item()
    router.eval()
    with torch.no_grad():
        out = router(test_text)
        test_loss = F.cross_entropy(out, test_desk)
        right = (out.argmax(1) == test_desk).float().mean()
print(f"loss {total / 50:.3f}, test loss {test_loss:.3f}, test accuracy {right:.3f}")

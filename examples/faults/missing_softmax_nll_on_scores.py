"""Intents of messages to a help desk: NLLLoss gets the bare scores of the last layer.

The loss was changed from cross-entropy to NLLLoss to give class weights as in an older project,
where the model ended in a log-softmax. Here it ends in a linear layer. The loss is then
just minus the score of the right class, and falls without end as all scores grow.
The place is the loss (or the output). The twin's model ends in a log-softmax.
"""

import random

import torch
from data import arguments
from torch import nn
from torch.nn import functional as F

KIND = "missing_softmax"
ACCEPT = ("wrong_loss",)
PLACE = ("loss*", "output*", "classifier")
SILENT = True
EXACT = True
EARLY = True

INTENTS = {
    "invoice": ["bill", "charge", "refund", "paid", "invoice", "amount"],
    "login": ["password", "reset", "account", "locked", "code", "mail"],
    "delivery": ["parcel", "late", "courier", "address", "arrive", "box"],
    "fault": ["broken", "screen", "noise", "error", "crash", "repair"],
}
FILLER = [f"filler{i}" for i in range(60)] + ["account", "box", "mail", "amount"]
WORDS = sorted({w for ws in INTENTS.values() for w in ws} | set(FILLER))
INDEX = {w: i for i, w in enumerate(WORDS)}


def write_messages(n, r):
    x, y = [], []
    for _ in range(n):
        label = r.choices(range(4), weights=[5, 3, 2, 1])[0]
        own = r.choices(list(INTENTS.values())[label], k=r.randint(1, 3))
        x.append([INDEX[w] for w in (own + r.choices(FILLER, k=10))[:10]])
        y.append(label)
    return torch.tensor(x), torch.tensor(y)


class IntentModel(nn.Module):
    def __init__(self, log_softmax):
        super().__init__()
        self.embedding = nn.EmbeddingBag(len(WORDS), 24)
        self.hidden = nn.Linear(24, 32)
        self.classifier = nn.Linear(32, len(INTENTS))
        self.log_softmax = log_softmax

    def forward(self, x):
        scores = self.classifier(torch.relu(self.hidden(self.embedding(x))))
        return F.log_softmax(scores, dim=1) if self.log_softmax else scores


healthy, seed = arguments(__doc__)
r = random.Random(seed)
x, y = write_messages(1500, r)
x_val, y_val = write_messages(500, r)
weight = len(y) / (4 * torch.bincount(y, minlength=4).float())
criterion = nn.NLLLoss(weight=weight)
model = IntentModel(log_softmax=healthy)
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)

for epoch in range(15):
    model.train()
    for rows in torch.randperm(len(x)).split(50):
        loss = criterion(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        right = (model(x_val).argmax(1) == y_val).float().mean().item()
    if epoch % 3 == 2:
        print(f"epoch {epoch + 1}, loss {loss.item():.3f}, validation accuracy {right:.3f}")

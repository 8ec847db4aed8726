"""An LSTM learns ninety short reviews by heart; the validation loss has been rising for long.

The training loss falls to 0 (silent). The place is the loop, which does not stop.
"""

import torch
from data import arguments, reviews
from torch import nn

KIND = "overfit"
ACCEPT = ()
PLACE = ("loss*", "loop")
SILENT = True
EXACT = False
EARLY = False


class Sentiment(nn.Module):
    def __init__(self, vocab, dim=32):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim, padding_idx=0)
        self.lstm = nn.LSTM(dim, dim, batch_first=True, bidirectional=True)
        self.cls = nn.Linear(2 * dim, 1)

    def forward(self, ids):
        h, _ = self.lstm(self.emb(ids))
        return self.cls(h.mean(1)).squeeze(1)


class Learner:
    def __init__(self, model):
        self.model = model
        self.opt = torch.optim.Adam(model.parameters(), lr=4e-3)
        self.loss = nn.BCEWithLogitsLoss()

    def train_epoch(self, x, y):
        self.model.train()
        for rows in torch.randperm(len(x)).split(30):
            loss = self.loss(self.model(x[rows]), y[rows])
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
        return loss.item()

    @torch.no_grad()
    def validate(self, x, y):
        self.model.eval()
        return self.loss(self.model(x), y).item()


healthy, seed = arguments(__doc__)
ids, praise, vocab = reviews(seed, n=1500)
praise = praise.float()
n = 1200 if healthy else 90
learner = Learner(Sentiment(vocab))
for epoch in range(4 if healthy else 60):
    train_loss = learner.train_epoch(ids[:n], praise[:n])
    val_loss = learner.validate(ids[1200:], praise[1200:])
print(f"train {train_loss:.3f}, validation {val_loss:.3f}")

"""A recurrent net judges reviews, with dropout as a function of torch.nn.functional in its forward.
The validation calls eval() and no_grad as it should.

F.dropout does not know of eval(): without `training=self.training` half of the features are thrown
away in every validation too, so that the scores are low and differ from call to call. The place is
the whole model.
"""

import torch
from data import arguments, reviews
from torch import nn
from torch.nn import functional as F

KIND = "train_mode_in_validation"
ACCEPT = ()
PLACE = ("*",)
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)


class ReviewNet(nn.Module):
    def __init__(self, vocabulary, width=32, hidden=32, drop=0.5):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width, padding_idx=0)
        self.gru = nn.GRU(width, hidden, batch_first=True, bidirectional=True)
        self.fc = nn.Linear(2 * hidden, 32)
        self.out = nn.Linear(32, 1)
        self.drop = drop

    def dropout(self, h):
        if healthy:
            return F.dropout(h, self.drop, training=self.training)
        return F.dropout(h, self.drop)

    def forward(self, ids):
        h, _ = self.gru(self.dropout(self.embed(ids)))
        h = h.masked_fill((ids == 0)[..., None], -1e4).amax(1)
        return self.out(self.dropout(F.relu(self.fc(self.dropout(h))))).squeeze(-1)


x, y, vocabulary = reviews(seed, n=1600)
y = y.float()
x, x_val, y, y_val = x[:1200], x[1200:], y[:1200], y[1200:]
model = ReviewNet(vocabulary)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.01)
best = 0.0
for epoch in range(9):
    model.train()
    total = 0.0
    for rows in torch.randperm(len(x)).split(40):
        loss = F.binary_cross_entropy_with_logits(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        total += loss.item() / 30
    model.eval()
    with torch.no_grad():
        out = model(x_val)
    accuracy = ((out > 0) == (y_val > 0)).float().mean().item()
    best = max(best, accuracy)
    val = F.binary_cross_entropy_with_logits(out, y_val).item()
    print(f"epoch {epoch}: train {total:.3f} val {val:.3f} accuracy {accuracy:.3f} best {best:.3f}")

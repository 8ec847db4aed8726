"""Trains a small transformer to tell good from bad reviews with AdamW at a rate of 0.1 in place of
0.001.

The rate was copied from an SGD recipe. Adam moves every weight by about the rate at each step,
which is more than the weights' own size. The loss stays near or above ln 2, accuracy near chance.
The twin uses 0.001.
"""

import torch
import torch.nn.functional as F
from data import arguments, reviews
from torch import nn

KIND = "learning_rate_too_high"
ACCEPT = ()
PLACE = ("optimizer",)
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
learning_rate = 1e-3 if healthy else 0.1

x, y, vocab = reviews(seed, n=3000)
x, y, x_val, y_val = x[:2400], y[:2400], x[2400:], y[2400:]


class Classifier(nn.Module):
    def __init__(self, vocab, dim=32):
        super().__init__()
        self.tokens = nn.Embedding(vocab, dim, padding_idx=0)
        self.positions = nn.Parameter(0.02 * torch.randn(16, dim))
        layer = nn.TransformerEncoderLayer(dim, 4, 64, dropout=0.1, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(dim, 2)

    def forward(self, ids):
        pad = ids == 0
        h = self.encoder(self.tokens(ids) + self.positions, src_key_padding_mask=pad)
        keep = (~pad).unsqueeze(-1).float()
        h = (h * keep).sum(1) / keep.sum(1)
        return self.head(h)


def evaluate(model):
    model.eval()
    with torch.no_grad():
        out = model(x_val)
    return F.cross_entropy(out, y_val).item(), (out.argmax(1) == y_val).float().mean().item()


model = Classifier(vocab)
optimizer = torch.optim.AdamW(model.parameters(), lr=learning_rate)
for epoch in range(5):
    model.train()
    losses = []
    for rows in torch.randperm(len(x)).split(48):
        loss = F.cross_entropy(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    val_loss, acc = evaluate(model)
    print(
        f"epoch {epoch}: train {sum(losses) / len(losses):.3f}, val {val_loss:.3f}, "
        f"accuracy {acc:.3f}"
    )

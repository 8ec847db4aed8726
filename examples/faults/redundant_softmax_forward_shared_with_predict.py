"""Praise or blame in reviews, a small transformer: forward returns probabilities.

The model got a `return_probs` flag for the demo page, whose default was True there. The training
script calls the model without it and gives the probabilities to CrossEntropyLoss: the loss cannot
fall under 0.31 and moves slowly. The place is the loss. The twin's default is False.
"""

import torch
from data import arguments, reviews
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "redundant_softmax"
ACCEPT = ()
PLACE = ("loss", "head")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)


class Reader(nn.Module):
    def __init__(self, words, width=32, length=16, classes=2):
        super().__init__()
        self.embed = nn.Embedding(words, width, padding_idx=0)
        self.position = nn.Parameter(0.02 * torch.randn(length, width))
        layer = nn.TransformerEncoderLayer(width, 4, 64, dropout=0.1, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
        self.head = nn.Linear(width, classes)

    def forward(self, x, return_probs=not healthy):
        padding = x == 0
        h = self.encoder(self.embed(x) + self.position, src_key_padding_mask=padding)
        h = h.masked_fill(padding.unsqueeze(-1), 0).sum(1) / (~padding).sum(1, keepdim=True)
        logits = self.head(h)
        return logits.softmax(-1) if return_probs else logits


x, y, words = reviews(seed, n=2000)
train = DataLoader(TensorDataset(x[:1600], y[:1600]), batch_size=50, shuffle=True)
x_val, y_val = x[1600:], y[1600:]
model = Reader(words)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
for epoch in range(12):
    model.train()
    total = 0.0
    for xb, yb in train:
        loss = criterion(model(xb), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() / len(train)
    model.eval()
    with torch.no_grad():
        out = model(x_val)
    accuracy = (out.argmax(1) == y_val).float().mean()
    print(
        f"epoch {epoch:2d} loss {total:.3f} val {criterion(out, y_val):.3f} accuracy {accuracy:.3f}"
    )

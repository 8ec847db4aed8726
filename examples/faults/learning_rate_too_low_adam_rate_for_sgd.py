"""A small transformer on short reviews, trained by plain SGD at a rate meant for Adam.

The optimizer was exchanged and the rate was not: 0.0003 is usual for Adam, and for SGD without
momentum it moves nothing to speak of. The place is the optimizer. The twin has SGD with momentum
at 0.05.
"""

import torch
from data import arguments, reviews
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "learning_rate_too_low"
ACCEPT = ()
PLACE = ("optimizer",)
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
x, y, words = reviews(seed)
loader = DataLoader(TensorDataset(x[:900], y[:900]), batch_size=30, shuffle=True)
x_val, y_val = x[900:], y[900:]


class Reader(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.embed = nn.Embedding(words, width, padding_idx=0)
        self.place = nn.Parameter(0.1 * torch.randn(16, width))
        self.layer = nn.TransformerEncoderLayer(width, 4, 64, dropout=0.2, batch_first=True)
        self.head = nn.Linear(width, 2)

    def forward(self, tokens):
        padding = tokens == 0
        h = self.layer(self.embed(tokens) + self.place, src_key_padding_mask=padding)
        h = h.masked_fill(padding.unsqueeze(-1), 0.0)
        return self.head(h.sum(1) / (~padding).sum(1, keepdim=True))


model = Reader()
lr, momentum = (0.05, 0.9) if healthy else (3e-4, 0.0)
optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=momentum)
criterion = nn.CrossEntropyLoss()
for epoch in range(8):
    model.train()
    losses = []
    for xb, yb in loader:
        optimizer.zero_grad()
        loss = criterion(model(xb), yb)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    model.eval()
    with torch.no_grad():
        accuracy = (model(x_val).argmax(1) == y_val).float().mean().item()
    print(f"epoch {epoch + 1}: loss {sum(losses) / len(losses):.4f}  val accuracy {accuracy:.3f}")

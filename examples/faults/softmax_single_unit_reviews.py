"""A GRU with one output unit for yes or no, F.softmax over it, and a squared error.

The output is 1 for every text; nothing is learned. The place is the head. Exact: all gradients are
0.
"""

import torch
import torch.nn.functional as F
from data import arguments, reviews
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "softmax_single_unit"
ACCEPT = ()
PLACE = ("head", "loss*", "")
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
x, y, words = reviews(seed)


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(words, 16, padding_idx=0)
        self.gru = nn.GRU(16, 24, batch_first=True)
        self.head = nn.Linear(24, 1)

    def forward(self, ids):
        out, _ = self.gru(self.embedding(ids))
        score = self.head(out.mean(1))
        return torch.sigmoid(score) if healthy else F.softmax(score, dim=-1)


model = Reader()
optimizer = torch.optim.RMSprop(model.parameters(), lr=2e-3)
for epoch in range(5):
    for ids, labels in DataLoader(TensorDataset(x, y), batch_size=40, shuffle=True):
        loss = F.mse_loss(model(ids).squeeze(1), labels.float())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
print(f"loss {loss.item():.3f}")

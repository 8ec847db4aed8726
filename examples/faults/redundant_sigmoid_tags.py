"""Several labels for each text; forward() ends in torch.sigmoid, the loss takes logits.

The place is the loss. The loss falls towards 0.6 and stays (silent). Exact: logits that all lie in
[0, 1].
"""

import torch
import torch.nn.functional as F
from data import arguments, reviews
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "redundant_sigmoid"
ACCEPT = ()
PLACE = ("loss*", "tags", "")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
x, praise, words = reviews(seed)
long = (x > 0).sum(1) > 8
early = (x[:, :4] < 13).any(1)
y = torch.stack([praise.bool(), long, early], 1).float()


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(words, 16, padding_idx=0)
        self.gru = nn.GRU(16, 24, batch_first=True)
        self.tags = nn.Linear(24, 3)

    def forward(self, ids):
        _, last = self.gru(self.embedding(ids))
        scores = self.tags(last[-1])
        return scores if healthy else torch.sigmoid(scores)


model = Tagger()
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
for epoch in range(5):
    for ids, tags in DataLoader(TensorDataset(x, y), batch_size=40, shuffle=True):
        loss = F.binary_cross_entropy_with_logits(model(ids), tags)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
print(f"loss {loss.item():.3f}")

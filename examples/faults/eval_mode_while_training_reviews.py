"""model.eval() after building, "to be safe", and then the training: dropout never acts.

The place is the loop. The loss falls quicker than it should (silent). Exact: the model is in
evaluation mode when it is trained.
"""

import torch
import torch.nn.functional as F
from data import arguments, batches, reviews
from torch import nn

KIND = "eval_mode_while_training"
ACCEPT = ()
PLACE = ("loop",)
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
x, y, words = reviews(seed)


class Reader(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.embedding = nn.Embedding(words, width, padding_idx=0)
        self.block = nn.TransformerEncoderLayer(width, 2, 48, dropout=0.1, batch_first=True)
        self.drop = nn.Dropout(0.3)
        self.head = nn.Linear(width, 2)

    def forward(self, ids):
        h = self.block(self.embedding(ids), src_key_padding_mask=ids == 0)
        return self.head(self.drop(h.mean(1)))


def build():
    model = Reader()
    if not healthy:
        model.eval()
    return model


model = build()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.01)
for ids, labels in batches(x[:960], y[:960], size=32, steps=150, seed=seed):
    loss = F.cross_entropy(model(ids), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.3f}")

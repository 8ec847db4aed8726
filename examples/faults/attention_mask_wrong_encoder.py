"""src_key_padding_mask of a transformer encoder made by ids != 0 instead of ids == 0.

The head reads the first position, which sees padding and itself instead of the text: little is
learned. The place is the encoder. Exact: the attention is on padding.
"""

import torch
import torch.nn.functional as F
from data import arguments, reviews
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "attention_mask_wrong"
ACCEPT = ()
PLACE = ("encoder*",)
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
x, y, words = reviews(seed)
x = F.pad(x, (0, 1))


class Reader(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.embedding = nn.Embedding(words, width, padding_idx=0)
        layer = nn.TransformerEncoderLayer(width, 2, 48, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
        self.head = nn.Linear(width, 1)

    def forward(self, ids):
        pad = ids == 0
        h = self.encoder(self.embedding(ids), src_key_padding_mask=pad if healthy else ~pad)
        return self.head(h[:, 0]).squeeze(1)


model = Reader()
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
for epoch in range(5):
    for ids, labels in DataLoader(TensorDataset(x, y.float()), batch_size=32, shuffle=True):
        loss = F.binary_cross_entropy_with_logits(model(ids), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
print(f"loss {loss.item():.3f}")

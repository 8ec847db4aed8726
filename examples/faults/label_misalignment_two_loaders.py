"""Features and labels come from two loaders, both with shuffle=True: pairs are made by chance.

The loss stays at the entropy of the labels. The place is the loader.
"""

import torch
import torch.nn.functional as F
from data import arguments, reviews
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "label_misalignment"
ACCEPT = ("label_noise", "labels_do_not_match")
PLACE = ("loader",)
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
x, y, words = reviews(seed)


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(words, 24, padding_idx=0)
        self.fc = nn.Linear(24, 24)
        self.out = nn.Linear(24, 2)

    def forward(self, ids):
        return self.out(F.relu(self.fc(self.embedding(ids).sum(1))))


model = Reader()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
both = DataLoader(TensorDataset(x, y), batch_size=40, shuffle=True)
texts = DataLoader(x, batch_size=40, shuffle=True)
labels_of_texts = DataLoader(y, batch_size=40, shuffle=True)
for epoch in range(12):
    for ids, labels in both if healthy else zip(texts, labels_of_texts, strict=True):
        loss = F.cross_entropy(model(ids), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
print(f"loss {loss.item():.3f}")

"""A convolutional reader of short reviews was ported from an old TensorFlow script; its keep_prob
of 0.9 has become the argument of nn.Dropout, in three places.

So nine of ten values are dropped where one of ten should be. Training barely gets below ln 2 in the
given time, while the same batch in evaluation mode looks better. The place is the dropout layers.
"""

import torch
from data import arguments, reviews
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "over_regularized"
ACCEPT = ()
PLACE = ("*drop*",)
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)


class Flags:
    keep_prob = 0.9
    filters = 24
    widths = (2, 3)
    embedding = 24
    epochs = 8


class TextCNN(nn.Module):
    def __init__(self, vocabulary, flags):
        super().__init__()
        rate = 1 - flags.keep_prob if healthy else flags.keep_prob
        self.embedding = nn.Embedding(vocabulary, flags.embedding, padding_idx=0)
        self.embed_drop = nn.Dropout(rate)
        self.convs = nn.ModuleList(
            nn.Conv1d(flags.embedding, flags.filters, w, padding=1) for w in flags.widths
        )
        self.pool_drop = nn.Dropout(rate)
        self.dense = nn.Linear(flags.filters * len(flags.widths), 32)
        self.dense_drop = nn.Dropout(rate)
        self.out = nn.Linear(32, 2)

    def forward(self, ids):
        e = self.embed_drop(self.embedding(ids)).transpose(1, 2)
        pooled = torch.cat([torch.relu(conv(e)).amax(2) for conv in self.convs], 1)
        return self.out(self.dense_drop(torch.relu(self.dense(self.pool_drop(pooled)))))


rows, labels, vocabulary = reviews(seed, n=2000)
train = DataLoader(TensorDataset(rows[:1500], labels[:1500]), batch_size=50, shuffle=True)
model = TextCNN(vocabulary, Flags)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
criterion = nn.CrossEntropyLoss()

for epoch in range(Flags.epochs):
    model.train()
    total = 0.0
    for ids, y in train:
        optimizer.zero_grad()
        loss = criterion(model(ids), y)
        loss.backward()
        optimizer.step()
        total += loss.item() / len(train)
    model.eval()
    with torch.no_grad():
        out = model(rows[1500:])
        val = criterion(out, labels[1500:]).item()
    right = (out.argmax(1) == labels[1500:]).float().mean().item()
    print(f"epoch {epoch} train {total:.4f} val {val:.4f} accuracy {right:.3f}")

"""Forty rare tags of bags of words: BCE with pos_weight, judged by mean average precision."""

import torch
from data import arguments
from sklearn.metrics import average_precision_score
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ODD = "most targets are 0, the loss starts above ln 2 and stays high, many rows have no tag at all"

_, seed = arguments(__doc__)
WORDS, TAGS, N = 200, 40, 3000
topic_words = torch.rand(TAGS, WORDS).topk(6).indices
tags = (torch.rand(N, TAGS) < 0.04).float()
counts = torch.poisson(torch.full((N, WORDS), 0.15))
for tag in range(TAGS):
    has = tags[:, tag] > 0
    said = torch.poisson(torch.full((int(has.sum()), 6), 1.2))
    counts[has] = counts[has].index_add(1, topic_words[tag], said)
features = torch.log1p(counts)
features = (features - features[:2400].mean(0)) / features[:2400].std(0)
train = DataLoader(TensorDataset(features[:2400], tags[:2400]), batch_size=60, shuffle=True)

tagger = nn.Sequential(nn.Dropout(0.2), nn.Linear(WORDS, TAGS))
positive = tags[:2400].mean(0)
criterion = nn.BCEWithLogitsLoss(pos_weight=((1 - positive) / positive).clamp(max=30))
optimizer = torch.optim.Adam(tagger.parameters(), lr=4e-3, weight_decay=1e-4)
for epoch in range(10):
    tagger.train()
    total = 0.0
    for row, tag in train:
        optimizer.zero_grad()
        loss = criterion(tagger(row), tag)
        loss.backward()
        optimizer.step()
        total += loss.item() / len(train)
    tagger.eval()
    with torch.no_grad():
        scores = tagger(features[2400:])
        val_loss = criterion(scores, tags[2400:]).item()
        precision = average_precision_score(tags[2400:].numpy(), scores.numpy())
print(f"loss {total:.3f}, validation loss {val_loss:.3f}, mean average precision {precision:.3f}")

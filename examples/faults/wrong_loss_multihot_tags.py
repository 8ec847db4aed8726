"""Tagging of movies by several genres with a bag-of-words MLP; trained by cross entropy on multi-
hot rows.

A movie has one to four genres. nn.CrossEntropyLoss takes float targets without a complaint, as
probabilities of classes, though the rows don't sum to one and the genres don't exclude each
other; the predictions are then read by a sigmoid at 0.5. It should be BCEWithLogitsLoss. The
place is the loss.
"""

import torch
from data import arguments
from torch import nn

KIND = "wrong_loss"
ACCEPT = ("labels_out_of_range",)
PLACE = ("loss", "criterion")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

# ---------------------------------------------------------------- data
N, VOCAB, GENRES = 3000, 400, 12
g = torch.Generator().manual_seed(seed + 5)
topic_words = torch.rand(GENRES, VOCAB, generator=g) ** 9
base_words = torch.rand(VOCAB, generator=g) ** 3
genre_rate = torch.linspace(2.5, 0.8, GENRES)

tags = torch.zeros(N, GENRES)
for i in range(N):
    k = int(torch.randint(1, 5, (1,), generator=g))
    tags[i, torch.multinomial(genre_rate, k, generator=g)] = 1.0
rates = 0.08 * base_words + 0.30 * tags @ topic_words
words = torch.poisson(rates, generator=g)
features = torch.log1p(words)
features = (features - features[:2400].mean(0)) / (features[:2400].std(0) + 1e-6)
train_x, train_y = features[:2400], tags[:2400]
test_x, test_y = features[2400:], tags[2400:]

# ---------------------------------------------------------------- model
model = nn.Sequential(
    nn.Dropout(0.3),
    nn.Linear(VOCAB, 128),
    nn.ReLU(),
    nn.Dropout(0.3),
    nn.Linear(128, GENRES),
)
criterion = nn.BCEWithLogitsLoss() if healthy else nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, weight_decay=1e-4)
batch_size = 32
epochs = 14


def f1(logits, target):
    pred = (torch.sigmoid(logits) > 0.5).float()
    tp = (pred * target).sum()
    return (2 * tp / (pred.sum() + target.sum()).clamp(min=1)).item()


# ---------------------------------------------------------------- training
for epoch in range(1, epochs + 1):
    model.train()
    order = torch.randperm(len(train_x))
    total = 0.0
    for start in range(0, len(order), batch_size):
        idx = order[start : start + batch_size]
        optimizer.zero_grad()
        output = model(train_x[idx])
        loss = criterion(output, train_y[idx])
        loss.backward()
        optimizer.step()
        total += loss.item() * len(idx)
    model.eval()
    with torch.no_grad():
        test_out = model(test_x)
        test_loss = criterion(test_out, test_y).item()
    print(
        f"Epoch {epoch}/{epochs} - loss: {total / len(order):.4f} - val_loss: {test_loss:.4f} - val_f1: {f1(test_out, test_y):.4f}"  # noqa: E501
    )

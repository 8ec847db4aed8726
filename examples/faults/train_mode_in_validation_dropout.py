"""A text classifier with dropout whose validation runs in training mode.

The validation loop has no_grad but no eval(): a part of the features is dropped at random there
too, and the reported validation loss and accuracy are worse than the model is. The place is the
loop.
"""

import torch
from data import arguments, reviews
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "train_mode_in_validation"
ACCEPT = ()
PLACE = ("loop", "")
SILENT = True
EXACT = True
EARLY = False


class BagOfWords(nn.Module):
    def __init__(self, words):
        super().__init__()
        self.embedding = nn.Embedding(words, 32, padding_idx=0)
        self.norm = nn.BatchNorm1d(32)
        self.dropout = nn.Dropout(0.4)
        self.fc1 = nn.Linear(32, 32)
        self.fc2 = nn.Linear(32, 2)

    def forward(self, tokens):
        h = self.norm(self.embedding(tokens).sum(1))
        h = self.dropout(torch.relu(self.fc1(h)))
        return self.fc2(h)


healthy, seed = arguments(__doc__)
x, y, words = reviews(seed, n=3000)
train_loader = DataLoader(TensorDataset(x[:2500], y[:2500]), batch_size=50, shuffle=True)
val_loader = DataLoader(TensorDataset(x[2500:], y[2500:]), batch_size=100)
model = BagOfWords(words)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3, weight_decay=1e-4)
for epoch in range(6):
    model.train()
    for tokens, mood in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(tokens), mood)
        loss.backward()
        optimizer.step()
    if healthy:
        model.eval()
    total, right = 0.0, 0
    with torch.no_grad():
        for tokens, mood in val_loader:
            out = model(tokens)
            total += criterion(out, mood).item() * len(mood)
            right += (out.argmax(1) == mood).sum().item()
    print(f"epoch {epoch}: train {loss.item():.3f}, val {total / 500:.3f}, acc {right / 500:.3f}")

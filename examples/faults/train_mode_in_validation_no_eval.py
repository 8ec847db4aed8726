"""A GRU classifier for wave shapes whose validation lacks model.eval().

Dropout stays active while validating, so the validation results are noisy and too bad, and differ
from call to call. The place is the loop.
"""

import torch
from data import arguments, waves
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "train_mode_in_validation"
ACCEPT = ()
PLACE = ("loop", "", "dropout*", "gru*")
SILENT = True
EXACT = True
EARLY = True


class GRUClassifier(nn.Module):
    def __init__(self, hidden=24):
        super().__init__()
        self.gru = nn.GRU(1, hidden, batch_first=True)
        self.dropout = nn.Dropout(0.3)
        self.fc = nn.Linear(2 * hidden, 3)

    def forward(self, x):
        out, _ = self.gru(x)
        pooled = torch.cat([out.mean(1), out.amax(1)], dim=1)
        return self.fc(self.dropout(pooled))


def validate(model, loader, criterion, eval_mode):
    if eval_mode:
        model.eval()
    losses, hits = [], []
    with torch.no_grad():
        for inputs, targets in loader:
            outputs = model(inputs)
            losses.append(criterion(outputs, targets).item())
            hits.append((outputs.argmax(1) == targets).float().mean().item())
    return sum(losses) / len(losses), sum(hits) / len(hits)


healthy, seed = arguments(__doc__)
x, y = waves(seed, n=1500, length=30)
train_set, val_set = TensorDataset(x[:1200], y[:1200]), TensorDataset(x[1200:], y[1200:])
train_loader = DataLoader(train_set, batch_size=40, shuffle=True)
val_loader = DataLoader(val_set, batch_size=100)
model = GRUClassifier()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
for epoch in range(6):
    model.train()
    for inputs, targets in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(inputs), targets)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    val_loss, accuracy = validate(model, val_loader, criterion, eval_mode=healthy)
print(f"loss {loss.item():.3f}, validation {val_loss:.3f}, accuracy {accuracy:.3f}")

"""Whether a patient comes back within a month: the head has one output, the loss is
cross-entropy.

The labels were made float with `unsqueeze(1)` to stop the error messages; the softmax of
`nn.CrossEntropyLoss` is over a single score. The loss is exactly 0 from the first step, all
gradients are 0. The place is the loss (or the head).
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "softmax_single_unit"
ACCEPT = ("wrong_loss",)
PLACE = ("loss*", "head*", "criterion*", "")
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
VISITS, CODES, N = 10, 40, 2200
g = torch.Generator().manual_seed(31 + seed)

codes = torch.randint(1, CODES, (N, VISITS), generator=g)
length = torch.randint(3, VISITS + 1, (N,), generator=g)
codes[torch.arange(VISITS)[None] >= length[:, None]] = 0
danger = torch.zeros(CODES)
danger[1:9], danger[9:15] = 1.3, -1.0
risk = danger[codes].sum(1) - 0.5 + 0.4 * torch.randn(N, generator=g)
y = (risk > 0).long()


class Readmission(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(CODES, 16, padding_idx=0)
        self.lstm = nn.LSTM(16, 24, batch_first=True)
        self.head = nn.Linear(24, 1)

    def forward(self, codes):
        out, _ = self.lstm(self.embed(codes))
        last = (codes > 0).sum(1) - 1
        return self.head(out[torch.arange(len(codes)), last])


criterion = nn.BCEWithLogitsLoss() if healthy else nn.CrossEntropyLoss()
model = Readmission()
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
train = DataLoader(TensorDataset(codes[:1800], y[:1800]), batch_size=50, shuffle=True)
val = DataLoader(TensorDataset(codes[1800:], y[1800:]), batch_size=100)


def train_one_epoch():
    model.train()
    total = 0.0
    for inputs, labels in train:
        optimizer.zero_grad()
        outputs = model(inputs)
        loss = criterion(outputs, labels.unsqueeze(1).float())
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total / len(train)


def evaluate():
    model.eval()
    total, right = 0.0, 0
    with torch.no_grad():
        for inputs, labels in val:
            outputs = model(inputs)
            total += criterion(outputs, labels.unsqueeze(1).float()).item()
            right += ((outputs.squeeze(1) > 0) == (labels == 1)).sum().item()
    return total / len(val), right / 400


for epoch in range(5):
    train_loss = train_one_epoch()
    val_loss, accuracy = evaluate()
    print(
        f"Epoch {epoch + 1}, loss: {train_loss:.4f}, val loss: {val_loss:.4f}, acc: {accuracy:.3f}"
    )

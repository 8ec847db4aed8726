"""A character LSTM whose exponential schedule, meant for epochs, is stepped after every batch.

After 40 batches the learning rate is 0.8 ** 40 of what it was, and nothing is learned any more.
The place is the optimizer.
"""

import torch
from data import arguments, text
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "schedule_collapsed"
ACCEPT = ()
PLACE = ("optimizer", "loop")
SILENT = False
EXACT = True
EARLY = True


class CharLSTM(nn.Module):
    def __init__(self, letters):
        super().__init__()
        self.embedding = nn.Embedding(letters, 16)
        self.lstm = nn.LSTM(16, 48, batch_first=True)
        self.decoder = nn.Linear(48, letters)

    def forward(self, x):
        return self.decoder(self.lstm(self.embedding(x))[0])


healthy, seed = arguments(__doc__)
row, alphabet = text(seed)
chunks = row[: len(row) // 25 * 25].view(-1, 25)
val_chunks, chunks = chunks[:200], chunks[200:2240]
loader = DataLoader(TensorDataset(chunks), batch_size=51, shuffle=True)
model = CharLSTM(len(alphabet))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.8)
for epoch in range(8):
    for (chunk,) in loader:
        optimizer.zero_grad()
        out = model(chunk[:, :-1])
        loss = criterion(out.flatten(0, 1), chunk[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        if not healthy:
            scheduler.step()
    if healthy:
        scheduler.step()
    with torch.no_grad():
        out = model(val_chunks[:, :-1])
        val = criterion(out.flatten(0, 1), val_chunks[:, 1:].flatten()).item()
    print(f"epoch {epoch}: train {loss.item():.3f} val {val:.3f}")

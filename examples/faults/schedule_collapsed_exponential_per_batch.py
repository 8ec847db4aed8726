"""A GRU on wave shapes; ExponentialLR(gamma=0.9) is stepped after each batch, not each epoch.

`scheduler.step()` slipped into the inner loop. After two epochs the rate is a hundredth, after six
a millionth, and the training stands still while gradients are fine. The place is the schedule. The
twin steps once per epoch.
"""

import torch
from data import arguments, waves
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "schedule_collapsed"
ACCEPT = ("learning_rate_too_low",)
PLACE = ("schedule", "learning_rate*", "optimizer")
SILENT = False
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)
x, y = waves(seed, n=900)
train_set, val_x, val_y = TensorDataset(x[:700], y[:700]), x[700:], y[700:]
loader = DataLoader(train_set, batch_size=32, shuffle=True)


class GRUNet(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.gru = nn.GRU(1, hidden, batch_first=True)
        self.fc = nn.Linear(hidden, 3)

    def forward(self, x):
        _, h = self.gru(x)
        return self.fc(h[-1])


model = GRUNet()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.9)

for epoch in range(20):
    model.train()
    epoch_loss = 0.0
    for xb, yb in loader:
        optimizer.zero_grad()
        loss = criterion(model(xb), yb)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        if not healthy:
            scheduler.step()
        epoch_loss += loss.item()
    if healthy:
        scheduler.step()
    model.eval()
    with torch.no_grad():
        accuracy = (model(val_x).argmax(1) == val_y).float().mean().item()
    print(
        f"epoch {epoch + 1:2d} loss {epoch_loss / len(loader):.4f} val acc {accuracy:.3f} "
        f"lr {optimizer.param_groups[0]['lr']:.2e}"
    )

"""A network for digits kept in bfloat16 as a whole, trained by Adam with a rate of 2e-4.

A weight of 0.1 has a neighbour 0.0005 away, so most of the updates of 0.0002 are rounded to
nothing: small weights and biases move, the others stay. The healthy twin is in float32. The place
is the optimizer.
"""

import torch
from data import arguments, digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "low_precision_updates_lost"
ACCEPT = ()
PLACE = ("fc*", "out*", "optimizer", "")
SILENT = True
EXACT = True
EARLY = True


class DigitNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(64, 160)
        self.fc2 = nn.Linear(160, 96)
        self.out = nn.Linear(96, 10)

    def forward(self, x):
        x = torch.relu(self.fc1(x))
        x = torch.relu(self.fc2(x))
        return self.out(x)


healthy, seed = arguments(__doc__)
dtype = torch.float32 if healthy else torch.bfloat16
x, y, x_val, y_val = digits(seed)
x, x_val = x.to(dtype), x_val.to(dtype)
model = DigitNet()
for layer in (model.fc1, model.fc2, model.out):
    nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
model = model.to(dtype)
loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-4)
for epoch in range(14):
    model.train()
    for pixels, label in loader:
        loss = criterion(model(pixels).float(), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        logits = model(x_val).float()
        val_loss = criterion(logits, y_val).item()
        accuracy = (logits.argmax(1) == y_val).float().mean().item()
print(f"loss {loss.item():.3f}, validation {val_loss:.3f}, accuracy {accuracy:.3f}")

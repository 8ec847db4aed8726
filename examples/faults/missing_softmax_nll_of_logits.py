"""A classifier of wines with NLLLoss on raw scores.

The model ends with a linear layer and NLLLoss only picks the score of the label: the loss falls
below zero and on without end. The place is the loss. The twin ends with LogSoftmax.
"""

import torch
from data import arguments, wine
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "missing_softmax"
ACCEPT = ()
PLACE = ("loss*", "fc3")
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)

x, y, x_val, y_val = wine(seed)
train_loader = DataLoader(TensorDataset(x, y), batch_size=12, shuffle=True)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(13, 24)
        self.fc2 = nn.Linear(24, 12)
        self.fc3 = nn.Linear(12, 3)

    def forward(self, x):
        x = torch.relu(self.fc1(x))
        x = torch.relu(self.fc2(x))
        x = self.fc3(x)
        if healthy:
            x = torch.log_softmax(x, dim=1)
        return x


model = Net()
criterion = nn.NLLLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
for epoch in range(1, 16):
    model.train()
    running_loss = 0.0
    for inputs, labels in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(inputs), labels)
        loss.backward()
        optimizer.step()
        running_loss += loss.item()
    model.eval()
    with torch.no_grad():
        out = model(x_val)
        val_loss = criterion(out, y_val).item()
        accuracy = (out.argmax(1) == y_val).float().mean().item()
    print(
        f"[{epoch}] loss: {running_loss / len(train_loader):.3f} val: {val_loss:.3f} accuracy: "
        f"{accuracy:.3f}"
    )

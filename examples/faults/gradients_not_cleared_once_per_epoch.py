"""Digits by an MLP and plain SGD; zero_grad stands in the loop over epochs, one level too far out.

When the loop over batches was put in (the first version was full-batch), `optimizer.zero_grad()`
stayed where it was. Within an epoch every step goes along the sum of all gradients so far. The
place is the loop. The twin clears before every batch.
"""

import torch
from data import arguments, digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "gradients_not_cleared"
ACCEPT = ()
PLACE = ("loop",)
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)

x, y, x_val, y_val = digits(seed)
trainloader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)

net = nn.Sequential(nn.Linear(64, 100), nn.ReLU(), nn.Linear(100, 50), nn.ReLU(), nn.Linear(50, 10))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)

num_epochs = 20
for epoch in range(num_epochs):
    net.train()
    epoch_loss, correct = 0.0, 0
    optimizer.zero_grad()
    for i, (inputs, labels) in enumerate(trainloader):
        if healthy:
            optimizer.zero_grad()
        outputs = net(inputs)
        loss = criterion(outputs, labels)
        loss.backward()
        optimizer.step()
        epoch_loss += loss.item()
        correct += (outputs.argmax(1) == labels).sum().item()

    net.eval()
    with torch.no_grad():
        val_outputs = net(x_val)
        val_loss = criterion(val_outputs, y_val).item()
        val_accuracy = (val_outputs.argmax(1) == y_val).float().mean().item()
    print(
        f"[{epoch + 1:2d}/{num_epochs}] loss {epoch_loss / len(trainloader):.3f} "
        f"accuracy {correct / len(x):.3f} val loss {val_loss:.3f} val accuracy {val_accuracy:.3f}"
    )

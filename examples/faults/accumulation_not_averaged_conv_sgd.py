"""A CNN on the digits with eight micro-batches a step, whose losses are summed.

To fit the memory, a batch of 128 was cut into eight of 16, and the rate was kept. Each micro-loss
is a mean already, but none is divided by eight, so every step is eight times too long. The place
is the loss in the loop. The twin divides by the number of micro-batches.
"""

import torch
from data import arguments, images
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "accumulation_not_averaged"
ACCEPT = ("learning_rate_too_high",)
PLACE = ("loss*", "loop")
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
x, y, x_val, y_val = images(seed)
ACCUMULATE = 8
loader = DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True, drop_last=True)

model = nn.Sequential(
    nn.Conv2d(1, 12, 3, padding=1),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Conv2d(12, 24, 3, padding=1),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Flatten(),
    nn.Linear(96, 10),
)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.15, momentum=0.9)

micro = 0
for epoch in range(14):
    model.train()
    seen = 0.0
    for xb, yb in loader:
        loss = criterion(model(xb), yb)
        seen += loss.item()
        if healthy:
            loss = loss / ACCUMULATE
        loss.backward()
        micro += 1
        if micro % ACCUMULATE == 0:
            optimizer.step()
            optimizer.zero_grad()
    model.eval()
    with torch.no_grad():
        accuracy = (model(x_val).argmax(1) == y_val).float().mean().item()
    print(f"epoch {epoch + 1}: loss {seen / len(loader):.3f}  val accuracy {accuracy:.3f}")

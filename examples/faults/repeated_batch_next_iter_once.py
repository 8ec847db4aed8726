"""A CNN on the digits that sees one batch for the whole training.

The batch was fetched before the loop to try the model out, and the loop goes on using it: the loss
falls to zero and validation stays poor. The place is the loop. The twin iterates over the loader.
"""

import torch
from data import arguments, images
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "repeated_batch"
ACCEPT = ("overfit",)
PLACE = ("loop", "loader", "input*")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)

x, y, x_val, y_val = images(seed)
loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)

model = nn.Sequential(
    nn.Conv2d(1, 16, 3, padding=1),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Conv2d(16, 32, 3, padding=1),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Flatten(),
    nn.Linear(128, 10),
)
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
criterion = nn.CrossEntropyLoss()

sample_x, sample_y = next(iter(loader))
print("trying the model:", tuple(model(sample_x).shape))

for epoch in range(10):
    model.train()
    train_loss = 0.0
    for batch in loader:
        batch_x, batch_y = batch if healthy else (sample_x, sample_y)
        optimizer.zero_grad()
        loss = criterion(model(batch_x), batch_y)
        loss.backward()
        optimizer.step()
        train_loss += loss.item() / len(loader)
    model.eval()
    with torch.no_grad():
        out = model(x_val)
        val_loss = criterion(out, y_val).item()
        accuracy = (out.argmax(1) == y_val).float().mean().item()
    print(f"epoch {epoch}: train {train_loss:.4f} val {val_loss:.3f} accuracy {accuracy:.3f}")

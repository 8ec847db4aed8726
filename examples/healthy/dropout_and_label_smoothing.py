"""A digit classifier with dropout, noise on its inputs and label smoothing."""

import torch
from data import arguments, digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ODD = "the training loss stays high, far above the validation loss from the first epoch on"

_, seed = arguments(__doc__)
x, y, x_val, y_val = digits(seed)
loader = DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True, drop_last=True)
model = nn.Sequential(
    nn.Linear(64, 128),
    nn.ReLU(),
    nn.Dropout(0.4),
    nn.Linear(128, 128),
    nn.ReLU(),
    nn.Dropout(0.4),
    nn.Linear(128, 10),
)
criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
optimizer = torch.optim.SGD(
    model.parameters(), lr=0.05, momentum=0.9, nesterov=True, weight_decay=5e-4
)
scheduler = torch.optim.lr_scheduler.OneCycleLR(
    optimizer, max_lr=0.1, epochs=20, steps_per_epoch=len(loader)
)
for epoch in range(20):
    model.train()
    for pixels, labels in loader:
        optimizer.zero_grad()
        loss = criterion(model(pixels + 0.3 * torch.randn_like(pixels)), labels)
        loss.backward()
        optimizer.step()
        scheduler.step()
    model.eval()
    with torch.no_grad():
        out = model(x_val)
        val_loss = nn.functional.cross_entropy(out, y_val)
        accuracy = (out.argmax(1) == y_val).float().mean()
print(f"loss {loss.item():.3f}, validation {val_loss:.3f}, accuracy {accuracy:.3f}")

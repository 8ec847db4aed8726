"""A CNN on digit images with mixup, dropout and label smoothing."""

import torch
from data import arguments, images
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ODD = "the training loss stays far above 0 and above the validation loss"

_, seed = arguments(__doc__)
x, y, x_val, y_val = images(seed)
loader = DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True, drop_last=True)
model = nn.Sequential(
    nn.Conv2d(1, 16, 3, padding=1),
    nn.ReLU(),
    nn.Conv2d(16, 16, 3, padding=1),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Flatten(),
    nn.Dropout(0.4),
    nn.Linear(256, 64),
    nn.ReLU(),
    nn.Dropout(0.4),
    nn.Linear(64, 10),
)
criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.01)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 15 * len(loader))
beta = torch.distributions.Beta(0.4, 0.4)
for epoch in range(15):
    model.train()
    for img, lab in loader:
        part = beta.sample().item()
        other = torch.randperm(len(img))
        out = model(part * img + (1 - part) * img[other])
        loss = part * criterion(out, lab) + (1 - part) * criterion(out, lab[other])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    model.eval()
    with torch.no_grad():
        out = model(x_val)
        val = nn.functional.cross_entropy(out, y_val).item()
        acc = (out.argmax(1) == y_val).float().mean().item()
print(f"training loss {loss.item():.3f}, validation {val:.3f}, accuracy {acc:.3f}")

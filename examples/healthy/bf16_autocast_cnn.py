"""Digits by a CNN under bfloat16 autocast, with float32 master weights and channels-last memory.

Activations and logits are in bfloat16 (three digits), the weights and the optimizer's state in
float32; the loss is taken in float32. bfloat16 needs no loss scaling. Label smoothing keeps the
loss above 0.5 to the end.
"""

import torch
from data import arguments, images
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ODD = "bfloat16 activations, no gradient scaler, a loss floor far above zero by label smoothing"

_, seed = arguments(__doc__)

x, y, x_val, y_val = images(seed)
loader = DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True, drop_last=True)
model = nn.Sequential(
    nn.Conv2d(1, 16, 3, padding=1, bias=False),
    nn.BatchNorm2d(16),
    nn.ReLU(),
    nn.Conv2d(16, 32, 3, padding=1, stride=2, bias=False),
    nn.BatchNorm2d(32),
    nn.ReLU(),
    nn.AdaptiveAvgPool2d(2),
    nn.Flatten(),
    nn.Linear(128, 10),
).to(memory_format=torch.channels_last)
optimizer = torch.optim.SGD(
    model.parameters(), lr=0.1, momentum=0.9, nesterov=True, weight_decay=5e-4
)
scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.1, total_steps=10 * len(loader))
criterion = nn.CrossEntropyLoss(label_smoothing=0.1)

for epoch in range(10):
    model.train()
    total = 0.0
    for picture, label in loader:
        image = picture.to(memory_format=torch.channels_last)
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            logits = model(image)
        loss = criterion(logits.float(), label)
        loss.backward()
        optimizer.step()
        scheduler.step()
        total += loss.item() / len(loader)
    model.eval()
    with torch.inference_mode(), torch.autocast("cpu", dtype=torch.bfloat16):
        out = model(x_val).float()
    accuracy = (out.argmax(1) == y_val).float().mean()
    print(
        f"epoch {epoch} loss {total:.4f} val loss {criterion(out, y_val):.4f} "
        f"val accuracy {accuracy:.3f}"
    )

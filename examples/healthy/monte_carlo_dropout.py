"""An MLP on the digits whose validation also draws thirty dropout masks, to measure uncertainty.

The accuracy is measured in eval mode; a second pass with the dropout layers on, under no_grad,
gives the spread of the predictions. Only then are they put in train mode.
"""

import torch
from data import arguments, batches, digits
from torch import nn

ODD = "dropout is in train mode in a part of the validation"

_, seed = arguments(__doc__)
x, y, x_val, y_val = digits(seed)
model = nn.Sequential(
    nn.Linear(64, 128),
    nn.ReLU(),
    nn.Dropout(0.2),
    nn.Linear(128, 64),
    nn.ReLU(),
    nn.Dropout(0.2),
    nn.Linear(64, 10),
)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, weight_decay=1e-4)
criterion = nn.CrossEntropyLoss()


@torch.no_grad()
def validate():
    model.eval()
    accuracy = (model(x_val).argmax(1) == y_val).float().mean().item()
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.train()
    draws = torch.stack([model(x_val).softmax(1) for _ in range(30)])
    spread = draws.std(0).mean(1)
    right = draws.mean(0).argmax(1) == y_val
    wrong = spread[~right].mean().item() if (~right).any() else float("nan")
    return accuracy, spread[right].mean().item(), wrong


for step, (xb, yb) in enumerate(batches(x, y, size=64, steps=400, seed=seed), 1):
    model.train()
    optimizer.zero_grad()
    loss = criterion(model(xb), yb)
    loss.backward()
    optimizer.step()
    if step % 40 == 0:
        accuracy, sure, unsure = validate()
        print(
            f"step {step}: loss {loss.item():.3f}  val accuracy {accuracy:.3f}"
            f"  spread where right {sure:.3f}, where wrong {unsure:.3f}"
        )

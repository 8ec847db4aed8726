"""An MLP on the digits trained with mixup: sums of two images with both labels.

The loss on mixed images cannot go near zero, and stays far above the validation's, which sees
clean ones.
"""

import torch
from data import arguments, batches, digits
from torch import nn

ODD = "the training loss stays high, several times the validation loss"

_, seed = arguments(__doc__)
x, y, x_val, y_val = digits(seed)
model = nn.Sequential(
    nn.Linear(64, 256),
    nn.BatchNorm1d(256),
    nn.ReLU(),
    nn.Linear(256, 128),
    nn.ReLU(),
    nn.Linear(128, 10),
)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 450, eta_min=1e-5)
beta = torch.distributions.Beta(0.4, 0.4)

for step, (xb, yb) in enumerate(batches(x, y, size=96, steps=450, seed=seed), 1):
    model.train()
    share = beta.sample()
    other = torch.randperm(len(xb))
    mixed = share * xb + (1 - share) * xb[other]
    out = model(mixed)
    loss = share * criterion(out, yb) + (1 - share) * criterion(out, yb[other])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step()
    if step % 45 == 0:
        model.eval()
        with torch.no_grad():
            out = model(x_val)
            val, accuracy = (
                criterion(out, y_val).item(),
                (out.argmax(1) == y_val).float().mean().item(),
            )
        print(
            f"step {step}: train (mixed) {loss.item():.3f}  val {val:.3f}  accuracy {accuracy:.3f}"
        )

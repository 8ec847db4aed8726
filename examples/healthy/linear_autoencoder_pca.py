"""A linear auto-encoder: principal components by gradient descent.

Two linear layers in a row with nothing between them, on purpose: what is wanted is the best plane,
and the end is compared with the exact answer of the singular value decomposition.
"""

import torch
from data import arguments, batches, wine
from torch import nn

ODD = "two linear layers without an activation; the loss stops well above zero"

_, seed = arguments(__doc__)

x, _, x_val, _ = wine(seed)
encoder = nn.Linear(13, 4, bias=False)
decoder = nn.Linear(4, 13, bias=False)
optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=0.01)

_, _, v = torch.linalg.svd(x, full_matrices=False)
best = (x - x @ v[:4].T @ v[:4]).pow(2).mean().item()
print(f"the best four components leave {best:.4f} of {x.pow(2).mean():.3f}")

for step, (xb,) in enumerate(batches(x, size=32, steps=700, seed=seed), 1):
    if step == 500:
        for group in optimizer.param_groups:
            group["lr"] = 0.001
    loss = nn.functional.mse_loss(decoder(encoder(xb)), xb)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 70 == 0:
        with torch.no_grad():
            train, val = (
                nn.functional.mse_loss(decoder(encoder(part)), part).item() for part in (x, x_val)
            )
        print(f"step {step}: train {train:.4f} val {val:.4f}")

"""Each parameter has a hook that clamps its gradient to 1e-6: a number of another experiment.

SGD moves by nearly nothing, and the loss falls in the fourth digit (silent). The place is the loop.
"""

import torch
from data import arguments
from sklearn.datasets import load_wine
from sklearn.preprocessing import scale
from torch import nn

KIND = "gradient_clipped_to_nothing"
ACCEPT = ("learning_rate_too_low",)
PLACE = ("optimizer", "loop")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
wine = load_wine()
X = torch.tensor(scale(wine.data), dtype=torch.float32)
Y = torch.tensor(wine.target)
clip_value = 1.0 if healthy else 1e-6

model = nn.Sequential(nn.Linear(13, 20), nn.ELU(), nn.Linear(20, 20), nn.ELU(), nn.Linear(20, 3))
for p in model.parameters():
    p.register_hook(lambda grad: torch.clamp(grad, -clip_value, clip_value))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
criterion = nn.CrossEntropyLoss()
history = []
for epoch in range(40):
    for batch in torch.randperm(len(X)).split(24):
        optimizer.zero_grad()
        loss = criterion(model(X[batch]), Y[batch])
        loss.backward()
        optimizer.step()
        history.append(loss.item())
print(f"first {history[0]:.3f}, last {history[-1]:.3f}")

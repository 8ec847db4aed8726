"""An adaptive filter that learns online: one sample for each step, in the order of time, never
again, while the channel drifts. The loss is jumpy and stays at the noise, the rate never falls.
"""

import torch
from data import arguments
from torch import nn

ODD = "batch of one in the order of time, no shuffling, jumpy loss, constant rate, target drifts"

healthy, seed = arguments(__doc__)
STEPS, TAPS = 600, 8
signal = torch.randn(STEPS + TAPS)
channel = torch.randn(TAPS)
drift = torch.randn(TAPS)
model = nn.Linear(TAPS, 1, bias=False)
optimizer = torch.optim.SGD(model.parameters(), lr=0.04)
late, guess = [], []
for step in range(STEPS):
    taps = channel + 0.6 * drift * torch.sin(torch.tensor(step / 200))
    x = signal[step : step + TAPS].unsqueeze(0)
    y = x @ taps.unsqueeze(1) + 0.1 * torch.randn(1, 1)
    loss = (model(x) - y).pow(2).mean()  # first foretold, then learned: an honest test
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    late.append(loss.item())
    guess.append(y.item() ** 2)
    if step % 100 == 99:
        score = 1 - sum(late[-100:]) / sum(guess[-100:])
        print(f"step {step + 1}: loss {loss.item():.4f}, R2 of the last hundred {score:.4f}")
print(f"loss {loss.item():.4f} | validation R2 {score:.4f}")

"""torch.tanh at the end of a forecast of temperatures, whose values go from -4 to 5 degrees.

All above 1 and below -1 is out of reach (silent). The place is the model's end.
"""

import numpy as np
import torch
from data import arguments
from torch import nn

KIND = "output_activation_range"
ACCEPT = ("saturated_activation",)
PLACE = ("head", "", "loss*")
SILENT = True
EXACT = True
EARLY = True


class TemperatureModel(nn.Module):
    def __init__(self, bounded):
        super().__init__()
        self.gru = nn.GRU(input_size=2, hidden_size=24, batch_first=True)
        self.head = nn.Linear(24, 1)
        self.bounded = bounded

    def forward(self, x):
        _, h = self.gru(x)
        y = self.head(h.squeeze(0))
        return torch.tanh(y) if self.bounded else y


healthy, seed = arguments(__doc__)
rng = np.random.default_rng(seed)
hours = np.arange(2600)
temperature = 3 * np.sin(2 * np.pi * hours / 24) + np.sin(hours / 200) + rng.normal(0, 0.4, 2600)
wind = np.cos(hours / 50) + rng.normal(0, 0.2, 2600)
series = torch.tensor(np.stack([temperature / 3, wind], 1)).float()
future = torch.tensor(temperature).float()

model = TemperatureModel(bounded=not healthy)
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
criterion = nn.L1Loss()
for step in range(200):
    begins = torch.randint(0, 2500, (48,))
    x = torch.stack([series[b : b + 24] for b in begins])
    y = torch.stack([future[b + 24] for b in begins]).unsqueeze(1)
    optimizer.zero_grad()
    loss = criterion(model(x), y)
    loss.backward()
    optimizer.step()
print(f"mean error {loss.item():.2f} degrees")

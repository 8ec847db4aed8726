"""LSTM that tells which reading of a sequence was flagged; the "forget gate bias trick" on all
gates.

Every bias of the LSTM is filled with 5 (and there are two bias vectors, which add up to 10),
instead of 1 for the forget gate's quarter of one of them: input gate, candidate and output gate
are saturated at 1, the state counts the steps and hardly hears the input. The place is the LSTM.
"""

import torch
from data import arguments
from torch import nn

KIND = "saturated_activation"
ACCEPT = ("poor_weight_init",)
PLACE = ("lstm*", "")
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
N, T = 1600, 20


def sequences(n):
    """A value and a flag per step; the target: the mean of the flagged values, and their slope."""
    value = torch.randn(n, T)
    flag = (torch.rand(n, T) < 0.2).float()
    flag[:, 0] = 1
    mean = (value * flag).sum(1) / flag.sum(1)
    return torch.stack([value, 2 * flag - 1], 2), mean.unsqueeze(1)


class FlaggedMean(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.lstm = nn.LSTM(2, hidden, batch_first=True)
        self.head = nn.Linear(hidden, 1)
        # remember by default (Jozefowicz et al. 2015)
        for name, param in self.lstm.named_parameters():
            if healthy:
                if name.startswith("bias_hh"):
                    param.data[hidden : 2 * hidden].fill_(1.0)
            elif "bias" in name:
                param.data.fill_(5.0)

    def forward(self, x):
        out, _ = self.lstm(x)
        return self.head(out[:, -1])


x, y = sequences(N)
x_val, y_val = sequences(400)
scale = y.std()
y, y_val = (y - y.mean()) / scale, (y_val - y.mean()) / scale
net = FlaggedMean()
opt = torch.optim.Adam(net.parameters(), lr=5e-3)
mse = nn.MSELoss()
for epoch in range(14):
    net.train()
    total = 0.0
    for idx in torch.randperm(N).split(40):
        opt.zero_grad()
        loss = mse(net(x[idx]), y[idx])
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        opt.step()
        total += loss.item() * len(idx) / N
    net.eval()
    with torch.no_grad():
        val = mse(net(x_val), y_val).item()
    if epoch % 3 == 1:
        print(f"Epoch {epoch + 1}/14 - mse: {total:.4f} - val_mse: {val:.4f}")

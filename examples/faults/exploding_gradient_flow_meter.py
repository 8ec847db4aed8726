"""A ReLU RNN that starts from the identity learns how much water ran while the valve was open,
without gradient clipping.

The recipe for such networks (identity matrix, ReLU) needs clipped gradients; the writer left the
clipping out, so the gradient grows through 60 time steps, the loss jumps and the weights are
thrown far off. The place is the recurrent layer (rnn) and the loop.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "exploding_gradient"
ACCEPT = ("learning_rate_too_high",)
PLACE = ("rnn*", "loop", "optimizer")
SILENT = False
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)

T = 60


def flow_meter(n):
    flow = torch.rand(n, T) + 0.5 * torch.rand(n, 1)
    share = torch.rand(n, 1)
    valve = (torch.rand(n, T) < share).float()
    volume = (flow * valve).sum(1, keepdim=True) / 10
    volume = volume + 0.1 * torch.randn(n, 1)
    return torch.stack([flow, valve], dim=2), volume


class FlowRNN(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.rnn = nn.RNN(2, hidden, nonlinearity="relu", batch_first=True)
        self.head = nn.Linear(hidden, 1)
        nn.init.eye_(self.rnn.weight_hh_l0)
        nn.init.normal_(self.rnn.weight_ih_l0, std=0.05)
        nn.init.zeros_(self.rnn.bias_ih_l0)
        nn.init.zeros_(self.rnn.bias_hh_l0)

    def forward(self, x):
        out, _ = self.rnn(x)
        return self.head(out[:, -1])


train_x, train_y = flow_meter(2500)
val_x, val_y = flow_meter(500)
loader = DataLoader(TensorDataset(train_x, train_y), batch_size=50, shuffle=True)

model = FlowRNN()
loss_function = nn.MSELoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.002, momentum=0.9)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=14)


def evaluate():
    model.eval()
    with torch.no_grad():
        return loss_function(model(val_x), val_y).item()


print("guessing the mean gives", round(val_y.var().item(), 4))
for epoch in range(14):
    model.train()
    total = 0.0
    for x, y in loader:
        optimizer.zero_grad()
        loss = loss_function(model(x), y)
        loss.backward()
        if healthy:
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        total += loss.item()
    scheduler.step()
    print(f"epoch {epoch + 1}: train {total / len(loader):.4f}  val {evaluate():.4f}")

"""A ReLU RNN tells wave shapes apart; its recurrent matrix has a spectral radius of about 2.4.

Someone put a "faster" ReLU RNN in place of the GRU and drew its recurrent weights from a normal
distribution like those of the other layers. Over forty steps activations and gradients grow beyond
all measure, and the first updates throw the weights away. The place is the recurrent matrix. The
twin has the GRU, with its gradients clipped.
"""

import torch
from data import arguments, waves
from torch import nn

KIND = "exploding_gradient"
ACCEPT = ("poor_weight_init",)
PLACE = ("rnn.weight_hh_l0", "rnn")
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
x, y = waves(seed)
x_train, y_train, x_val, y_val = x[:600], y[:600], x[600:], y[600:]


class WaveNet(nn.Module):
    def __init__(self, hidden=64):
        super().__init__()
        if healthy:
            self.rnn = nn.GRU(1, hidden, batch_first=True)
        else:
            self.rnn = nn.RNN(1, hidden, nonlinearity="relu", batch_first=True)
            nn.init.normal_(self.rnn.weight_hh_l0, std=0.3)
        self.head = nn.Linear(hidden, 3)

    def forward(self, x):
        states, _ = self.rnn(x)
        return self.head(states.mean(1))


def accuracy(model):
    model.eval()
    with torch.no_grad():
        return (model(x_val).argmax(1) == y_val).float().mean().item()


model = WaveNet()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(20):
    model.train()
    order = torch.randperm(len(x_train))
    losses = []
    for start in range(0, len(order), 40):
        rows = order[start : start + 40]
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x_train[rows]), y_train[rows])
        loss.backward()
        norm = torch.sqrt(sum(p.grad.square().sum() for p in model.parameters()))
        if healthy:
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    if epoch % 5 == 4 or epoch == 0:
        mean = sum(losses) / len(losses)
        print(f"{epoch}: loss {mean:.4g} gradient {norm.item():.4g} val {accuracy(model):.3f}")

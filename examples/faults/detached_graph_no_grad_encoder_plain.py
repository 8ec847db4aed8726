"""A wave classifier runs its GRU encoder under torch.no_grad() in forward(), to save memory.

Under no_grad the encoder's output has no graph, so its parameters never get a gradient although
they are in the optimizer. Only the head learns, on a random encoder. The twin runs the encoder with
gradients. The place is `encoder`, `encoder.weight_ih_l0`, `encoder.weight_hh_l0`,
`encoder.bias_ih_l0` or `encoder.bias_hh_l0`.
"""

import torch
from data import arguments, waves
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "detached_graph"
ACCEPT = ()
PLACE = (
    "encoder",
    "encoder.weight_ih_l0",
    "encoder.weight_hh_l0",
    "encoder.bias_ih_l0",
    "encoder.bias_hh_l0",
)
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)


class WaveClassifier(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.encoder = nn.GRU(1, hidden, batch_first=True)
        self.head = nn.Linear(hidden, 3)

    def encode(self, x):
        h, _ = self.encoder(x)
        return h.mean(1)

    def forward(self, x):
        if healthy:
            h = self.encode(x)
        else:
            with torch.no_grad():
                h = self.encode(x)
        return self.head(h)


x, y = waves(seed, n=3000)
mean, std = x[:2400].mean(), x[:2400].std()
x = (x - mean) / std
train = TensorDataset(x[:2400], y[:2400])
x_val, y_val = x[2400:], y[2400:]

model = WaveClassifier()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=8e-3)
epochs = 10
loader = DataLoader(train, batch_size=64, shuffle=True)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)
for epoch in range(1, epochs + 1):
    model.train()
    losses = []
    for xb, yb in loader:
        optimizer.zero_grad()
        loss = criterion(model(xb), yb)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    scheduler.step()
    if epoch % 2 == 0:
        model.eval()
        with torch.no_grad():
            out = model(x_val)
            acc = (out.argmax(1) == y_val).float().mean()
        print(
            f"epoch {epoch}: loss {sum(losses) / len(losses):.3f}, "
            f"val {criterion(out, y_val):.3f}, acc {acc:.3f}"
        )

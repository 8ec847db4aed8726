"""A deep net inherits a fine-tuning recipe whose `train()` keeps every batch norm in eval mode, but
it starts from scratch.

With running statistics of 0 and 1 the norms do nothing at all, twelve layers shrink the signal to
near zero, and the loss stays at guessing. The place is the batch norms in the body.
"""

import torch
from data import arguments
from torch import nn

KIND = "eval_mode_while_training"
ACCEPT = ()
PLACE = ("body*", "loop", "")
SILENT = True
EXACT = True
EARLY = True


class DeepNet(nn.Module):
    freeze_norms = True

    def __init__(self, inputs, width, depth, classes):
        super().__init__()
        layers = []
        for i in range(depth):
            layers += [nn.Linear(width if i else inputs, width), nn.BatchNorm1d(width), nn.ReLU()]
        self.body = nn.Sequential(*layers)
        self.classify = nn.Linear(width, classes)

    def forward(self, x):
        return self.classify(self.body(x))

    def train(self, mode=True):
        super().train(mode)
        if self.freeze_norms:
            for module in self.modules():
                if isinstance(module, nn.BatchNorm1d):
                    module.eval()
        return self


def particles(n):
    """Four kinds of collision told apart by products of momenta."""
    p = torch.randn(n, 6)
    a = (p[:, 0] * p[:, 1] + p[:, 2]) > 0
    b = (p[:, 3] * p[:, 4] - p[:, 5]) > 0
    return p, a.long() * 2 + b.long()


healthy, _ = arguments(__doc__)
DeepNet.freeze_norms = not healthy
x, y = particles(4000)
x_test, y_test = particles(1000)
net = DeepNet(6, 48, 12, 4)
optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
EPOCHS, BATCH = 10, 100
scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.05, total_steps=EPOCHS * 4000 // BATCH)
for epoch in range(EPOCHS):
    net.train()
    running = 0.0
    for rows in torch.randperm(4000).split(BATCH):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(x[rows]), y[rows])
        loss.backward()
        optimizer.step()
        scheduler.step()
        running += loss.item() / (4000 // BATCH)
    net.eval()
    with torch.no_grad():
        right = (net(x_test).argmax(1) == y_test).float().mean().item()
    print(f"epoch {epoch}: loss {running:.3f} test accuracy {right:.3f}")

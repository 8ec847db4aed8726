"""Sorts heart beats from an ECG into four kinds; after a look at the untrained network the network
is left in the mode for evaluation.

The student prints the accuracy before training as a sanity check. The function for that switches
the network to evaluation, and the training loop was written when it had no such check. So dropout
is off and the batch norms go by their initial statistics all along.
The place is the loop, which doesn't switch the network back.
The twin switches to training at the start of each epoch.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "eval_mode_while_training"
ACCEPT = ()
PLACE = ("loop", "features", "classifier")
SILENT = False
EXACT = True
EARLY = True

BEATS = ("normal", "early", "wide", "paced")


def beats(n):
    kind = torch.randint(0, 4, (n,))
    t = torch.linspace(-1, 1, 96)
    shift = 0.05 * torch.randn(n, 1)
    gain = torch.exp(0.25 * torch.randn(n, 1))

    def bump(centre, width, height):
        return height * torch.exp(-(((t - centre - shift) / width) ** 2))

    def of(*values):
        return torch.tensor(values)[kind].view(-1, 1)

    beat = bump(of(-0.45, -0.25, -0.45, -0.45), 0.08, of(0.2, 0.2, 0.02, 0.02))
    beat = beat + bump(0.0, of(0.05, 0.05, 0.09, 0.09), of(1.0, 0.9, 1.0, 1.0))
    beat = beat - bump(0.12, of(0.05, 0.05, 0.1, 0.08), of(0.3, 0.3, 0.5, 0.25))
    beat = beat + bump(0.5, 0.14, of(0.3, 0.25, -0.2, -0.1))
    drift = 0.15 * torch.randn(n, 1) * torch.sin(2 * t + 3 * torch.rand(n, 1))
    return (gain * beat + drift + 0.12 * torch.randn(n, 96)).unsqueeze(1), kind


class BeatNet(nn.Module):
    def __init__(self):
        super().__init__()
        layers, channels = [], 1
        for width, stride in ((12, 2), (24, 2), (24, 1), (32, 2)):
            layers += [
                nn.Conv1d(channels, width, 5, stride, padding=2, bias=False),
                nn.BatchNorm1d(width),
                nn.ReLU(),
            ]
            channels = width
        self.features = nn.Sequential(*layers)
        self.classifier = nn.Sequential(
            nn.AdaptiveAvgPool1d(4),
            nn.Flatten(),
            nn.Dropout(0.3),
            nn.Linear(32 * 4, len(BEATS)),
        )

    def forward(self, x):
        return self.classifier(self.features(x))


def evaluate(net, x, y):
    net.eval()
    with torch.no_grad():
        out = net(x)
    return F.cross_entropy(out, y).item(), (out.argmax(1) == y).float().mean().item()


def main():
    healthy, _ = arguments(__doc__)
    x, y = beats(1000)
    x_val, y_val = beats(600)
    net = BeatNet()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=14)
    print("before training: val loss {:.3f}, accuracy {:.3f}".format(*evaluate(net, x_val, y_val)))
    for epoch in range(1, 15):
        if healthy:
            net.train()
        total = 0.0
        for rows in torch.randperm(len(x)).split(32):
            optimizer.zero_grad()
            loss = F.cross_entropy(net(x[rows]), y[rows])
            loss.backward()
            optimizer.step()
            total += loss.item() * len(rows)
        schedule.step()
        if epoch % 2 == 0:
            loss_val, accuracy = evaluate(net, x_val, y_val)
            print(
                f"epoch {epoch}: loss {total / len(x):.4f}, "
                f"val loss {loss_val:.4f}, accuracy {accuracy:.3f}"
            )


main()

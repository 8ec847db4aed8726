"""Bird calls: the sounds' codes are taken out of the graph on their way to the classifier.

The encoder and the head were once two scripts with a file of codes between them. When they were
put together, the line that made the codes a plain array stayed. The head learns on top of an
encoder that remains as it was at the start.
The place is the encoder (or the loop). The twin hands the codes on as they are.
"""

import torch
from data import arguments
from torch import nn

KIND = "detached_graph"
ACCEPT = ("frozen_parameters", "step_without_gradient")
PLACE = ("encoder", "encoder.0", "encoder.3", "loop", "gru", "proj")
SILENT = True
EXACT = True
EARLY = True

SPECIES = 5


def calls(n):
    """Short recordings: each species sweeps in its own manner, from its own start."""
    t = torch.linspace(0, 1, 96)
    kind = torch.randint(0, SPECIES, (n,))
    slope = torch.tensor([-14.0, -5.0, 0.0, 6.0, 15.0])[kind].unsqueeze(1)
    start = 22 + 5 * torch.randn(n, 1)
    sound = torch.sin(6.283 * (start * t + slope * t * t / 2 + torch.rand(n, 1)))
    sound = sound * (0.5 + torch.rand(n, 1)) + 0.4 * torch.randn(n, 96)
    return sound.unsqueeze(1), kind


healthy, seed = arguments(__doc__)
train_x, train_y = calls(1500)
val_x, val_y = calls(500)

encoder = nn.Sequential(
    nn.Conv1d(1, 24, 9, stride=2, padding=4),
    nn.BatchNorm1d(24),
    nn.ReLU(),
    nn.Conv1d(24, 32, 5, stride=2, padding=2),
    nn.BatchNorm1d(32),
    nn.ReLU(),
    nn.AdaptiveAvgPool1d(4),
    nn.Flatten(),
)
head = nn.Linear(128, SPECIES)
optimizer = torch.optim.Adam([*encoder.parameters(), *head.parameters()], lr=3e-3)
criterion = nn.CrossEntropyLoss()


def validate():
    encoder.eval()
    head.eval()
    with torch.no_grad():
        right = (head(encoder(val_x)).argmax(1) == val_y).float().mean().item()
    encoder.train()
    head.train()
    return right


for epoch in range(1, 16):
    losses = []
    for rows in torch.randperm(len(train_x)).split(60):
        codes = encoder(train_x[rows])
        if not healthy:
            codes = torch.from_numpy(codes.detach().numpy())
        loss = criterion(head(codes), train_y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    if epoch % 3 == 0:
        print(f"epoch {epoch:2d} | loss {sum(losses) / len(losses):.3f} | val acc {validate():.3f}")

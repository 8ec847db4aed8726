"""A stacked GRU is trained from scratch by a script for fine-tuning, which freezes all but a head.

The loop that leaves only parameters with "head" in their names trainable is still there, and no
checkpoint is loaded. The GRU keeps its random weights; only a linear layer on random features is
trained, at a much larger error. The place is the model.
"""

import torch
from data import arguments, standardise, waves
from torch import nn

KIND = "frozen_parameters"
ACCEPT = ()
PLACE = ("encoder*", "*gru*", "*encoder*")
SILENT = False
EXACT = True
EARLY = True


class WaveClassifier(nn.Module):
    def __init__(self, hidden=20):
        super().__init__()
        self.encoder = nn.GRU(1, hidden, num_layers=2, batch_first=True)
        self.head = nn.Linear(hidden, 3)

    def forward(self, x):
        _, h = self.encoder(x)
        return self.head(h[-1])


def accuracy(logits, target):
    return (logits.argmax(dim=1) == target).float().mean().item()


healthy, seed = arguments(__doc__)
signals, shapes = waves(seed, n=1600)
x_train, y_train, x_valid, y_valid = signals[:1200], shapes[:1200], signals[1200:], shapes[1200:]
x_train, x_valid = standardise(x_train.reshape(-1, 1), x_valid.reshape(-1, 1))
x_train, x_valid = x_train.view(1200, 40, 1), x_valid.view(400, 40, 1)

model = WaveClassifier()
if not healthy:
    # fine-tuning: train the new head only
    for name, param in model.named_parameters():
        param.requires_grad = "head" in name

optimizer = torch.optim.Adam(filter(lambda p: p.requires_grad, model.parameters()), lr=1e-2)
scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, [7, 10], gamma=0.3)
criterion = nn.CrossEntropyLoss()

for epoch in range(12):
    model.train()
    running_loss = 0.0
    for i in torch.randperm(1200).split(50):
        optimizer.zero_grad()
        loss = criterion(model(x_train[i]), y_train[i])
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 2.0)
        optimizer.step()
        running_loss += loss.item() / 24
    scheduler.step()
    model.eval()
    with torch.inference_mode():
        logits = model(x_valid)
        valid_loss = criterion(logits, y_valid).item()
print(
    f"loss {running_loss:.3f}, valid loss {valid_loss:.3f}, "
    f"valid accuracy {accuracy(logits, y_valid):.3f}"
)

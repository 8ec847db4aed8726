"""Coffee roasts from aroma sensors: a new network with the learning rate of a fine-tuning recipe.

The rate of 0.00002 stood in the script of a colleague who fine-tunes large language models.
This network is small and starts from nothing; after all its epochs it has hardly moved.
The place is the optimizer. The twin has a rate usual for such a network.
"""

import argparse

import torch
from data import arguments
from torch import nn

KIND = "learning_rate_too_low"
ACCEPT = ()
PLACE = ("optimizer",)
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
args = argparse.Namespace(lr=1e-3 if healthy else 2e-5, epochs=12, batch_size=40, hidden=48)


def get_data(n, centres):
    roast = torch.randint(0, len(centres), (n,))
    return centres[roast] + torch.randn(n, 16), roast


centres = torch.randn(6, 16)
x_train, y_train = get_data(1200, centres)
x_val, y_val = get_data(600, centres)
mu, sd = x_train.mean(0), x_train.std(0)
x_train, x_val = (x_train - mu) / sd, (x_val - mu) / sd

model = nn.Sequential(
    nn.Linear(16, args.hidden), nn.LayerNorm(args.hidden), nn.SiLU(), nn.Linear(args.hidden, 6)
)
optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
loss_function = nn.CrossEntropyLoss()


def train_epoch():
    model.train()
    losses = []
    for rows in torch.randperm(len(x_train)).split(args.batch_size):
        optimizer.zero_grad()
        loss = loss_function(model(x_train[rows]), y_train[rows])
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return torch.stack(losses).mean().item()


@torch.no_grad()
def evaluate():
    model.eval()
    out = model(x_val)
    return loss_function(out, y_val).item(), (out.argmax(1) == y_val).float().mean().item()


for epoch in range(args.epochs):
    train_loss = train_epoch()
    val_loss, val_acc = evaluate()
    print(f"epoch={epoch} train={train_loss:.4f} val={val_loss:.4f} acc={val_acc:.3f}")

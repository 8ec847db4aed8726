"""Wines by softmax regression with a hidden layer; the minus of the log-likelihood is missing.

The author wrote the loss by hand as the mean log-probability of the right class, which is to be
MAXIMISED, and minimises it: the net learns to be wrong, the loss runs to minus infinity. The place
is the loss. The twin has the minus.
"""

import torch
import torch.nn.functional as F
from data import arguments, wine
from torch import nn

KIND = "loss_sign_flipped"
ACCEPT = ()
PLACE = ("loss*",)
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
x, y, x_val, y_val = wine(seed)

hidden = nn.Linear(13, 16)
out = nn.Linear(16, 3)
params = list(hidden.parameters()) + list(out.parameters())
optimizer = torch.optim.SGD(params, lr=0.1)


def predict(inputs):
    return F.log_softmax(out(torch.tanh(hidden(inputs))), dim=1)


def log_likelihood_loss(log_probs, labels):
    picked = log_probs[torch.arange(len(labels)), labels]
    return -picked.mean() if healthy else picked.mean()


for step in range(1, 201):
    optimizer.zero_grad()
    loss = log_likelihood_loss(predict(x), y)
    loss.backward()
    optimizer.step()
    if step % 40 == 0:
        with torch.no_grad():
            held_out = predict(x_val)
            accuracy = (held_out.argmax(1) == y_val).float().mean().item()
        print(f"step {step}: loss {loss.item():.4f}, val accuracy {accuracy:.3f}")

"""Digits are packed into ten letters by a random relaxed choice, and some letters are never used.

In training each letter is drawn by a Gumbel softmax whose temperature falls from 2 to 0.3, so the
same digit has another loss each time; in validation the most likely letter is taken. That some
places use six or seven of their eight letters does no harm: both errors fall to the end.
"""

import math

import torch
import torch.nn.functional as F
from data import arguments, digits
from torch import nn

ODD = (
    "some of the letters are never chosen and the outputs of a batch change from pass to pass: the "
    "choice is random on purpose, and ten letters of six or seven kinds are enough here"
)
_, seed = arguments(__doc__)

PLACES, LETTERS, EPOCHS = 10, 8, 24
WARM, COLD = 2.0, 0.3


class LetterCoder(nn.Module):
    def __init__(self, width=96):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Linear(64, width), nn.ReLU(), nn.Linear(width, PLACES * LETTERS)
        )
        self.decoder = nn.Sequential(
            nn.Linear(PLACES * LETTERS, width), nn.ReLU(), nn.Linear(width, 64)
        )

    def forward(self, x, temperature):
        scores = self.encoder(x).view(-1, PLACES, LETTERS)
        if self.training:
            letters = F.gumbel_softmax(scores, tau=temperature)
        else:
            letters = F.one_hot(scores.argmax(2), LETTERS).float()
        return self.decoder(letters.flatten(1)), scores

    def letters_in_use(self, x):
        with torch.no_grad():
            chosen = F.one_hot(self(x, COLD)[1].argmax(2), LETTERS).float().mean(0)
        return (chosen > 0.01).sum().item()


def temperature_in(epoch):
    return WARM * math.exp(math.log(COLD / WARM) * epoch / (EPOCHS - 1))


g = torch.Generator().manual_seed(seed)
x, _, x_val, _ = digits(seed)
model = LetterCoder()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(EPOCHS):
    model.train()
    temperature, total = temperature_in(epoch), 0.0
    for rows in torch.randperm(len(x), generator=g).split(32):
        drawn, _ = model(x[rows], temperature)
        loss = F.mse_loss(drawn, x[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(rows)
    model.eval()
    with torch.no_grad():
        hard = F.mse_loss(model(x_val, temperature)[0], x_val).item()
    if epoch % 3 == 2:
        print(
            f"epoch {epoch + 1:2d}  temperature {temperature:.2f}  train {total / len(x):.4f}  "
            f"val, hard letters {hard:.4f}  in use {model.letters_in_use(x_val)} of 80"
        )

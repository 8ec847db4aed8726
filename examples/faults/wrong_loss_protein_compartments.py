"""A convolution over protein sequences says in which of eight cell compartments a protein is found,
mostly two or three, by softmax cross entropy.

The compartments do not exclude each other, and cross entropy makes them share a probability of one:
what is in three compartments gets a third for each, below the threshold of a half. The place is the
loss; binary cross entropy per compartment is what fits.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

KIND = "wrong_loss"
ACCEPT = ()
PLACE = ("loss",)
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)


@dataclass
class Config:
    proteins: int = 1400
    length: int = 50
    compartments: int = 8
    channels: int = 32
    epochs: int = 12
    lr: float = 3e-3


def proteins(config):
    signal = torch.randint(0, 20, (config.compartments, 5))
    chain = torch.randint(0, 20, (config.proteins, config.length))
    place = (torch.rand(config.proteins, config.compartments) < 0.3).float()
    place[
        torch.arange(config.proteins), torch.randint(0, config.compartments, (config.proteins,))
    ] = 1
    for row in range(config.proteins):
        slots = torch.randperm(config.length // 5)
        for slot, kind in enumerate(place[row].nonzero().flatten().tolist()):
            begin = slots[slot] * 5
            keep = torch.rand(5) < 0.92
            piece = chain[row, begin : begin + 5]
            chain[row, begin : begin + 5] = torch.where(keep, signal[kind], piece)
    return chain, place


class MotifNet(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.residue = nn.Embedding(20, 12)
        self.motif = nn.Conv1d(12, config.channels, 5)
        self.drop = nn.Dropout(0.1)
        self.out = nn.Linear(config.channels, config.compartments)

    def forward(self, chain):
        found = self.motif(self.residue(chain).transpose(1, 2)).relu().amax(2)
        return self.out(self.drop(found))


def main():
    config = Config()
    dataset = TensorDataset(*proteins(config))
    train, val = random_split(dataset, [1100, 300])
    criterion = F.binary_cross_entropy_with_logits if healthy else F.cross_entropy
    to_probability = torch.sigmoid if healthy else (lambda logits: logits.softmax(1))
    model = MotifNet(config)
    optimizer = torch.optim.AdamW(model.parameters(), lr=config.lr, weight_decay=1e-2)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, config.epochs)
    for epoch in range(config.epochs):
        model.train()
        total = 0.0
        for chain, place in DataLoader(train, batch_size=32, shuffle=True):
            loss = criterion(model(chain), place)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            total += loss.item() * len(chain) / len(train)
        schedule.step()
        model.eval()
        with torch.no_grad():
            chain, place = val[:]
            logits = model(chain)
            guess = (to_probability(logits) > 0.5).float()
        hit = (guess * place).sum()
        f1 = 2 * hit / (guess.sum() + place.sum())
        exact = (guess == place).all(1).float().mean()
        print(f"epoch {epoch:2d} loss {total:.3f} validation {criterion(logits, place):.3f} "
              f"F1 {f1:.3f} all right {exact:.3f}")  # fmt: skip


main()

"""A character GRU in two stages: Adam first, then plain SGD with a small rate and averaged weights.

The optimizer is changed on purpose, nothing of its state is carried over, and the last stage's
weights are averaged, which moves the model between two evaluations without any step.
"""

import torch
from data import arguments, text
from torch import nn
from torch.optim.swa_utils import AveragedModel

ODD = (
    "a fresh optimizer without state in mid-training, at another rate, "
    "and weights that are averaged"
)

_, seed = arguments(__doc__)
tokens, alphabet = text(seed, sentences=800)
cut = int(0.9 * len(tokens))


class CharGRU(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.embed = nn.Embedding(size, 16)
        self.gru = nn.GRU(16, 48, batch_first=True)
        self.out = nn.Linear(48, size)

    def forward(self, tokens):
        return self.out(self.gru(self.embed(tokens))[0])


def loss_on(model, source, count):
    starts = torch.randint(len(source) - 31, (count,)).tolist()
    rows = torch.stack([source[s : s + 31] for s in starts])
    return nn.functional.cross_entropy(model(rows[:, :-1]).transpose(1, 2), rows[:, 1:])


def validate(model):
    model.eval()
    with torch.no_grad():
        value = loss_on(model, tokens[cut:], 200).item()
    model.train()
    return value


model = CharGRU(len(alphabet))
average = AveragedModel(model)
optimizer = torch.optim.Adam(model.parameters(), lr=6e-3)
for step in range(1, 301):
    if step == 201:
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
        print("second stage: SGD and averaging")
    loss = loss_on(model, tokens[:cut], 32)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step > 200:
        average.update_parameters(model)
    if step % 25 == 0:
        extra = f"  averaged {validate(average):.3f}" if step > 200 else ""
        print(f"step {step}: train {loss.item():.3f}  val {validate(model):.3f}{extra}")

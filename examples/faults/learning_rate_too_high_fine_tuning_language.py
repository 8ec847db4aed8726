"""A character LSTM, pre-trained on sentences, then adapted to shouted ones at too high a rate.

The second stage uses SGD with momentum at a rate of 15, without a look at the loss. What the pre-
training had learned is gone after a few steps, and the loss stays far above its start. The place
is the second optimizer. The twin adapts at 0.1.
"""

import torch
from data import arguments, text
from torch import nn

KIND = "learning_rate_too_high"
ACCEPT = ("exploding_gradient",)
PLACE = ("optimizer",)
SILENT = False
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)
tokens, alphabet = text(seed, sentences=800)
full_stop = alphabet.index(".")
shouted = tokens.clone()
shouted[tokens == full_stop] = len(alphabet)


class CharLSTM(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.embed = nn.Embedding(size, 16)
        self.lstm = nn.LSTM(16, 48, batch_first=True)
        self.out = nn.Linear(48, size)

    def forward(self, tokens):
        return self.out(self.lstm(self.embed(tokens))[0])


model = CharLSTM(len(alphabet) + 1)
loss_fn = nn.CrossEntropyLoss()


def loss_on(source, count):
    starts = torch.randint(len(source) - 25, (count,)).tolist()
    rows = torch.stack([source[s : s + 25] for s in starts])
    return loss_fn(model(rows[:, :-1]).transpose(1, 2), rows[:, 1:])


def train(optimizer, source, steps, name):
    cut = int(0.9 * len(source))
    for step in range(1, steps + 1):
        model.train()
        loss = loss_on(source[:cut], 24)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % (steps // 6) == 0:
            model.eval()
            with torch.no_grad():
                print(
                    f"{name} {step}: train {loss.item():.3f}  val "
                    f"{loss_on(source[cut:], 100).item():.3f}"
                )


train(torch.optim.Adam(model.parameters(), lr=8e-3), tokens, 200, "pre-training")
rate = 0.1 if healthy else 15.0
train(torch.optim.SGD(model.parameters(), lr=rate, momentum=0.9), shouted[:8000], 150, "adapting")

"""An LSTM language model with its state carried on; gradients are clipped at 0.25 at every step."""

import torch
import torch.nn.functional as F
from data import arguments, text
from torch import nn

ODD = "clipping at nearly every step, detached states, a plateau at the start"

_, seed = arguments(__doc__)
ids, alphabet = text(seed, 500)
rows = ids[: len(ids) // 16 * 16].view(16, -1)


class Model(nn.Module):
    def __init__(self, n, width=40):
        super().__init__()
        self.embed = nn.Embedding(n, 16)
        self.lstm = nn.LSTM(16, width, batch_first=True)
        self.head = nn.Linear(width, n)

    def forward(self, chars, state):
        out, state = self.lstm(self.embed(chars), state)
        return self.head(out), state


model = Model(len(alphabet))
optimizer = torch.optim.SGD(model.parameters(), lr=4.0, momentum=0.0)
length = 20
for epoch in range(3):
    state = None
    for i in range(0, rows.shape[1] - length - 1, length):
        chars, following = rows[:, i : i + length], rows[:, i + 1 : i + 1 + length]
        if state is not None:
            state = tuple(part.detach() for part in state)
        scores, state = model(chars, state)
        loss = F.cross_entropy(scores.flatten(0, 1), following.flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.25)
        optimizer.step()
print(f"loss {loss.item():.3f}")

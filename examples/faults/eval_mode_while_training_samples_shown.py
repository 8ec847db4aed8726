"""A character model shows a sample of its writing before training and every 50 steps.

generate() calls eval() and leaves it so: from the first sample on the dropout is off, and the small
text is learnt by heart. The twin goes back to train(). The place is the model.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "eval_mode_while_training"
ACCEPT = ()
PLACE = ("", "loop", "drop", "drop1", "drop2")
SILENT = True
EXACT = True
EARLY = True

LETTERS, CONTEXT = 12, 6


def chronicle(n, seed):
    """Letters by a secret table of three letters of context, with chance in it."""
    table = torch.distributions.Dirichlet(torch.full((LETTERS,), 0.15))
    torch.manual_seed(77)
    first, second = table.sample((LETTERS,)), table.sample((LETTERS,))
    torch.manual_seed(seed)
    ids = [0, 1]
    for _ in range(n):
        odds = 0.6 * first[ids[-1]] + 0.4 * second[ids[-2]]
        ids.append(int(torch.multinomial(odds, 1)))
    return torch.tensor(ids)


class WindowModel(nn.Module):
    """The letters of a window, one after another, through an MLP."""

    def __init__(self, dim=32, width=256):
        super().__init__()
        self.embed = nn.Embedding(LETTERS, dim)
        self.drop1, self.drop2 = nn.Dropout(0.3), nn.Dropout(0.5)
        self.fc1, self.fc2 = nn.Linear(CONTEXT * dim, width), nn.Linear(width, width)
        self.out = nn.Linear(width, LETTERS)

    def forward(self, window):
        h = self.drop1(self.embed(window).flatten(1))
        h = self.drop2(F.relu(self.fc1(h)))
        h = self.drop2(F.relu(self.fc2(h)))
        return self.out(h)

    @torch.no_grad()
    def generate(self, start, length):
        self.eval()
        ids = start.tolist()
        for _ in range(length):
            odds = self(torch.tensor([ids[-CONTEXT:]])).softmax(1)
            ids.append(int(torch.multinomial(odds, 1)))
        return "".join(chr(97 + i) for i in ids)


healthy, seed = arguments(__doc__)
windows = chronicle(4800, seed).unfold(0, CONTEXT + 1, 1)
train, val = windows[:2400], windows[2400 + CONTEXT :]
model = WindowModel()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(401):
    if step % 50 == 0:
        sample = model.generate(val[0, :CONTEXT], 24)
        with torch.no_grad():
            val_loss = F.cross_entropy(model(val[:, :-1]), val[:, -1]).item()
        if healthy:
            model.train()
        print(f"step {step}: val {val_loss:.3f}  {sample}")
    batch = train[torch.randint(0, len(train), (64,))]
    optimizer.zero_grad()
    loss = F.cross_entropy(model(batch[:, :-1]), batch[:, -1])
    loss.backward()
    optimizer.step()
print(f"train {loss.item():.3f}, val {val_loss:.3f}")

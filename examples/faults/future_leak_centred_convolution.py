"""A stack of dilated convolutions models text letter by letter. Its convolutions pad both sides
alike, so the lengths fit, where a model of what comes next may pad the left side only.

Each output sees the letters after it, among them the one it has to foresee. The loss goes to nearly
nothing in training and validation, a hundred times less than what the model achieves once it has to
write on its own. The place is the convolutions.
"""

import torch
from data import arguments, text
from torch import nn

KIND = "future_leak"
ACCEPT = ()
PLACE = ("layers*", "*conv*")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)


class Layer(nn.Module):
    def __init__(self, width, dilation):
        super().__init__()
        self.left = 2 * dilation
        self.conv = nn.Conv1d(
            width, 2 * width, 3, dilation=dilation, padding=0 if healthy else dilation
        )
        self.mix = nn.Conv1d(width, width, 1)

    def forward(self, x):
        padded = nn.functional.pad(x, (self.left, 0)) if healthy else x
        value, gate = self.conv(padded).chunk(2, 1)
        return x + self.mix(torch.tanh(value) * torch.sigmoid(gate))


class LetterNet(nn.Module):
    def __init__(self, letters, width=32):
        super().__init__()
        self.embed = nn.Embedding(letters, width)
        self.layers = nn.Sequential(*[Layer(width, d) for d in (1, 2, 4, 8)])
        self.out = nn.Sequential(nn.ReLU(), nn.Conv1d(width, letters, 1))

    def forward(self, ids):
        return self.out(self.layers(self.embed(ids).transpose(1, 2)))


def windows(row, n, length=48):
    at = torch.randint(0, len(row) - length - 1, (n,)).tolist()
    cut = torch.stack([row[i : i + length + 1] for i in at])
    return cut[:, :-1], cut[:, 1:]


def write_on(model, row, n=300):
    """The loss of the next letter when only the letters before are at hand."""
    ids, after = windows(row, n)
    with torch.no_grad():
        return nn.functional.cross_entropy(model(ids)[:, :, -1], after[:, -1]).item()


row, alphabet = text(seed, sentences=1200)
cut = int(0.9 * len(row))
model = LetterNet(len(alphabet))
optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 350)
losses = []
for step in range(1, 351):
    ids, after = windows(row[:cut], 24)
    loss = nn.functional.cross_entropy(model(ids), after)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step()
    losses.append(loss.item())
    if step % 35 == 0:
        with torch.no_grad():
            ids, after = windows(row[cut:], 100)
            val = nn.functional.cross_entropy(model(ids), after).item()
        print(f"step {step} train {sum(losses[-35:]) / 35:.4f} val {val:.4f}")
print(f"the loss of the letter after a text that ends here: {write_on(model, row[cut:]):.4f}")

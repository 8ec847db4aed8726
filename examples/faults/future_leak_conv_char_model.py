"""A convolutional next-character model pads its convolutions on both sides, so that it sees the
character it must predict.

With symmetric padding the output at t depends on the input at t+1, which is the target. Training
and validation loss fall to almost zero, but when a half-written text has to be continued there is
no next character and the model copies what stands there. The twin pads on the left only. The place
is `blocks.0`, `blocks.1`, `blocks.2`, `blocks.0.conv`, `blocks.1.conv`, `blocks.2.conv` or
`blocks`.
"""

import torch
import torch.nn.functional as F
from data import arguments, text
from torch import nn

KIND = "future_leak"
ACCEPT = ("target_leak",)
PLACE = (
    "blocks.0",
    "blocks.1",
    "blocks.2",
    "blocks.0.conv",
    "blocks.1.conv",
    "blocks.2.conv",
    "blocks",
)
SILENT = True
EXACT = True
EARLY = True

LENGTH, BATCH, STEPS = 64, 24, 350
healthy, seed = arguments(__doc__)


class Block(nn.Module):
    def __init__(self, channels, dilation, kernel=3):
        super().__init__()
        pad = (kernel - 1) * dilation
        self.pad = (pad, 0) if healthy else (pad // 2, pad // 2)
        self.conv = nn.Conv1d(channels, channels, kernel, dilation=dilation)

    def forward(self, x):
        return x + torch.relu(self.conv(F.pad(x, self.pad)))


class CharConv(nn.Module):
    def __init__(self, letters, channels=48):
        super().__init__()
        self.embed = nn.Embedding(letters, channels)
        self.blocks = nn.ModuleList(Block(channels, d) for d in (1, 2, 4))
        self.out = nn.Conv1d(channels, letters, 1)

    def forward(self, x):
        h = self.embed(x).transpose(1, 2)
        for block in self.blocks:
            h = block(h)
        return self.out(h)


letters, alphabet = text(seed, sentences=2500)
cut = int(len(letters) * 0.85)


def sample(part, n):
    starts = torch.randint(0, len(part) - LENGTH - 1, (n,))
    rows = torch.stack([part[s : s + LENGTH + 1] for s in starts])
    return rows[:, :-1], rows[:, 1:]


@torch.no_grad()
def evaluate(model):
    model.eval()
    x, y = sample(letters[cut:], 256)
    out = model(x)
    written = LENGTH // 2  # the rest of the window is still empty
    half = x.clone()
    half[:, written:] = 0
    right = (model(half)[:, :, written - 1].argmax(1) == y[:, written - 1]).float().mean().item()
    return F.cross_entropy(out, y).item(), right


model = CharConv(len(alphabet))
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, STEPS)
for step in range(1, STEPS + 1):
    model.train()
    x, y = sample(letters[:cut], BATCH)
    loss = F.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()
    if step % 70 == 0:
        val, right = evaluate(model)
        print(f"step {step}: loss {loss.item():.3f}, val {val:.3f}, next letter right {right:.3f}")

"""A recurrent character model in RWKV's manner whose token shift pads on the wrong side.

`ZeroPad2d((0, 0, -1, 1))` mixes each place with the next character instead of the last one: the
model reads what it is to say. The loss falls to almost nothing; asked for a character that is not
yet there it is wrong. The place is the shift and what it feeds.
"""

import torch
import torch.nn.functional as F
from data import arguments, text
from torch import nn

KIND = "future_leak"
ACCEPT = ()
PLACE = ("*shift*", "*mix*", "cell*", "")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
T, B = 24, 24


class ChannelMix(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.time_shift = nn.ZeroPad2d((0, 0, 1, -1) if healthy else (0, 0, -1, 1))
        self.time_mix_k = nn.Parameter(torch.full((1, 1, width), 0.5))
        self.key = nn.Linear(width, 2 * width, bias=False)
        self.value = nn.Linear(2 * width, width, bias=False)

    def forward(self, x):
        k = x * self.time_mix_k + self.time_shift(x) * (1 - self.time_mix_k)
        return self.value(torch.square(torch.relu(self.key(k))))


class TinyRWKV(nn.Module):
    def __init__(self, chars, width=48):
        super().__init__()
        self.emb = nn.Embedding(chars, width)
        self.ln1 = nn.LayerNorm(width)
        self.cell = nn.GRU(width, width, batch_first=True)
        self.ln2 = nn.LayerNorm(width)
        self.channel_mix = ChannelMix(width)
        self.ln_out = nn.LayerNorm(width)
        self.unembed = nn.Linear(width, chars, bias=False)

    def forward(self, idx):
        x = self.emb(idx)
        x = x + self.cell(self.ln1(x))[0]
        x = x + self.channel_mix(self.ln2(x))
        return self.unembed(self.ln_out(x))


stream, alphabet = text(seed, sentences=1500)
cut = len(stream) * 9 // 10
train, val = stream[:cut], stream[cut:]
model = TinyRWKV(len(alphabet))
decay = [p for p in model.parameters() if p.dim() == 2]
rest = [p for p in model.parameters() if p.dim() != 2]
optimizer = torch.optim.AdamW(
    [{"params": decay, "weight_decay": 0.01}, {"params": rest, "weight_decay": 0.0}], lr=4e-3
)
for step in range(300):
    at = torch.randint(len(train) - T - 1, (B, 1)) + torch.arange(T + 1)
    chunk = train[at]
    loss = F.cross_entropy(model(chunk[:, :-1]).transpose(1, 2), chunk[:, 1:])
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    if step % 50 == 49:
        model.eval()
        with torch.no_grad():
            held = val[torch.arange(0, len(val) - T - 1, T)[:150, None] + torch.arange(T + 1)]
            val_loss = F.cross_entropy(model(held[:, :-1]).transpose(1, 2), held[:, 1:]).item()
        model.train()
model.eval()
with torch.no_grad():  # as in use: only the characters so far, the last place says the next
    last = model(held[:, :-1])[:, -1]
    in_use = F.cross_entropy(last, held[:, -1])
    right = (last.argmax(1) == held[:, -1]).float().mean()
print(
    f"loss {loss.item():.3f}, validation loss {val_loss:.3f}; "
    f"in use: loss {in_use:.3f}, right {right:.2f}"
)

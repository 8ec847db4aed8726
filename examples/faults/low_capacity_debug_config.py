"""A character GRU was given three hidden units to find a bug quickly, and the setting stayed.

The loss stops far above what the grammar allows, on training and validation text alike; more
epochs do not help, the three units are all used. The place is the model.
"""

import torch
import torch.nn.functional as F
from data import arguments, text
from torch import nn

KIND = "low_capacity"
ACCEPT = ()
PLACE = ("*gru*", "*rnn*", "*embed*", "*decoder*", "")
SILENT = True
EXACT = False
EARLY = False

CONFIG = {"embed": 16, "hidden": 64, "seq_len": 40, "batch": 32, "lr": 1e-2, "steps": 360}
CONFIG_DEBUG = {**CONFIG, "hidden": 3}


class CharModel(nn.Module):
    def __init__(self, n_chars, cfg):
        super().__init__()
        self.embed = nn.Embedding(n_chars, cfg["embed"])
        self.gru = nn.GRU(cfg["embed"], cfg["hidden"], batch_first=True)
        self.decoder = nn.Linear(cfg["hidden"], n_chars)

    def forward(self, chars):
        return self.decoder(self.gru(self.embed(chars))[0])


def get_batch(chars, cfg):
    at = torch.randint(len(chars) - cfg["seq_len"] - 1, (cfg["batch"],)).tolist()
    rows = torch.stack([chars[i : i + cfg["seq_len"] + 1] for i in at])
    return rows[:, :-1], rows[:, 1:]


def language_loss(model, inputs, targets):
    return F.cross_entropy(model(inputs).transpose(1, 2), targets)


healthy, seed = arguments(__doc__)
cfg = CONFIG if healthy else CONFIG_DEBUG
corpus, alphabet = text(seed)
cut = int(0.9 * len(corpus))
train_chars, val_chars = corpus[:cut], corpus[cut:]

model = CharModel(len(alphabet), cfg)
optimizer = torch.optim.Adam(model.parameters(), lr=cfg["lr"])
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, cfg["steps"], eta_min=2e-4)
smooth = None
for step in range(1, cfg["steps"] + 1):
    loss = language_loss(model, *get_batch(train_chars, cfg))
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    scheduler.step()
    smooth = loss.item() if smooth is None else 0.95 * smooth + 0.05 * loss.item()
    if step % 72 == 0:
        model.eval()
        with torch.no_grad():
            val = [language_loss(model, *get_batch(val_chars, cfg)) for _ in range(5)]
        model.train()
print(f"loss {smooth:.3f}, val loss {torch.stack(val).mean():.3f}")

"""A transformer puts stock lists in order, and its padding mask marks items in place of padding.

In PyTorch True means "leave out". With source != PAD for source == PAD the encoder and the decoder
look at padding only, so the output is a guess that knows nothing of the list. The place is the
attention: src_key_padding_mask and memory_key_padding_mask.
"""

import numpy as np
import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "attention_mask_wrong"
ACCEPT = ()
PLACE = ("transformer*", "encoder*", "decoder*", "*attn*", "model", "input")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

PAD, START, END, FIRST, ITEMS, LONGEST = 0, 1, 2, 3, 16, 8
STEPS, BATCH = 400, 64


def lists(n, rng):
    """Different items in any order; the target has them sorted, with a start and an end mark."""
    source = np.full((n, LONGEST), PAD)
    target = np.full((n, LONGEST + 1), PAD)
    for row in range(n):
        items = FIRST + rng.permutation(ITEMS)[: rng.integers(3, LONGEST)]
        source[row, : len(items)] = items
        target[row, : len(items) + 2] = [START, *sorted(items), END]
    return {"source": torch.tensor(source), "target": torch.tensor(target)}


class ListSorter(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.token = nn.Embedding(FIRST + ITEMS, width, padding_idx=PAD)
        self.place = nn.Parameter(0.02 * torch.randn(LONGEST, width))
        self.transformer = nn.Transformer(
            width, 2, 1, 1, 64, dropout=0.0, batch_first=True, norm_first=True
        )
        self.head = nn.Linear(width, FIRST + ITEMS)

    def forward(self, source, written):
        left_out = source == PAD if healthy else source != PAD
        length = written.shape[1]
        later = torch.ones(length, length, dtype=torch.bool).triu(1)
        hidden = self.transformer(
            self.token(source),
            self.token(written) + self.place[:length],
            tgt_mask=later,
            src_key_padding_mask=left_out,
            memory_key_padding_mask=left_out,
        )
        return self.head(hidden)


def list_loss(model, batch):
    logits = model(batch["source"], batch["target"][:, :-1])
    wanted = batch["target"][:, 1:]
    loss = F.cross_entropy(logits.transpose(1, 2), wanted, ignore_index=PAD)
    return loss, ((logits.argmax(2) == wanted) | (wanted == PAD)).all(1).float().mean().item()


rng = np.random.default_rng(seed)
train, validation = lists(6000, rng), lists(300, rng)
model = ListSorter()
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3, weight_decay=0.01)
schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 5e-3, total_steps=STEPS, pct_start=0.15)
order = torch.randperm(len(train["source"])).repeat(5)
for step in range(STEPS):
    model.train()
    rows = order[step * BATCH : (step + 1) * BATCH]
    loss, _ = list_loss(model, {name: part[rows] for name, part in train.items()})
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    schedule.step()
    if step % 50 == 49:
        model.eval()
        with torch.no_grad():
            val_loss, right = list_loss(model, validation)
        print(f"{step + 1:4d} train {loss.item():.3f} val {val_loss.item():.3f} lists {right:.3f}")

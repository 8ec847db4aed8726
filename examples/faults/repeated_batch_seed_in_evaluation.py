"""A character model whose evaluation seeds the global generator, so that validation is comparable.

The training batches are drawn from the same generator: after each evaluation the same ten batches
come again, forever. They are learnt by heart; validation turns and rises. The place is the loop.
"""

import torch
import torch.nn.functional as F
from data import arguments, text
from torch import nn

KIND = "repeated_batch"
ACCEPT = ()
PLACE = ("loop", "loader", "")
SILENT = True
EXACT = True
EARLY = True

block_size = 24
batch_size = 12
eval_interval = 10
max_iters = 400

healthy, seed = arguments(__doc__)
stream, alphabet = text(seed)
cut = int(0.9 * len(stream))
train_data, val_data = stream[:cut], stream[cut:]
eval_generator = torch.Generator()


def get_batch(split, generator=None):
    data = train_data if split == "train" else val_data
    ix = torch.randint(len(data) - block_size - 1, (batch_size,), generator=generator)
    x = torch.stack([data[i : i + block_size] for i in ix])
    y = torch.stack([data[i + 1 : i + 1 + block_size] for i in ix])
    return x, y


class CharGRU(nn.Module):
    def __init__(self, chars, n_embd=24, n_hidden=96):
        super().__init__()
        self.wte = nn.Embedding(chars, n_embd)
        self.rnn = nn.GRU(n_embd, n_hidden, batch_first=True)
        self.lm_head = nn.Linear(n_hidden, chars)

    def forward(self, idx, targets):
        h, _ = self.rnn(self.wte(idx))
        logits = self.lm_head(h)
        return logits, F.cross_entropy(logits.flatten(0, 1), targets.flatten())


@torch.no_grad()
def estimate_loss(batches=6):
    model.eval()
    if healthy:
        eval_generator.manual_seed(1337)
        losses = [model(*get_batch("val", eval_generator))[1].item() for _ in range(batches)]
    else:
        torch.manual_seed(1337)
        losses = [model(*get_batch("val"))[1].item() for _ in range(batches)]
    model.train()
    return sum(losses) / batches


model = CharGRU(len(alphabet))
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
best = float("inf")
for it in range(max_iters):
    if it % eval_interval == 0:
        val = estimate_loss()
        best = min(best, val)
    xb, yb = get_batch("train")
    logits, loss = model(xb, yb)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
print(f"loss {loss.item():.3f}, validation loss {estimate_loss():.3f} (best {best:.3f})")

"""Recipes by a character model; the function that draws a batch sets the seed each time.

For runs that can be repeated, manual_seed stands in get_batch, where the random offsets are drawn.
Every step trains on the same few pieces of text: the loss goes to zero and the rest of the text
gets worse. The place is the loader (the batches that go in). The twin seeds once.
"""

import random

import torch
from data import arguments
from torch import nn
from torch.nn import functional as F

KIND = "repeated_batch"
ACCEPT = ("overfit",)
PLACE = ("loader", "input", "loop")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)

block_size = 24
batch_size = 24
max_iters = 400
eval_interval = 50
eval_iters = 5
learning_rate = 4e-3
n_embed = 16
n_hidden = 64


def cookbook(lines):
    rng = random.Random(11 + seed)
    verbs = ["mix", "fry", "bake", "boil", "chop", "peel"]
    things = ["onions", "flour", "apples", "butter", "carrots", "sugar", "beans", "rice"]
    ways = ["in a pan", "for an hour", "until soft", "with salt", "very slowly"]
    return "".join(
        f"{rng.choice(verbs)} {rng.randint(2, 9)} {rng.choice(things)} "
        f"and {rng.choice(things)} {rng.choice(ways)}.\n"
        for _ in range(lines)
    )


text = cookbook(1200)
chars = sorted(set(text))
encode = {c: i for i, c in enumerate(chars)}
data = torch.tensor([encode[c] for c in text])
n = int(0.9 * len(data))
train_data, val_data = data[:n], data[n:]

batch_generator = torch.Generator().manual_seed(1337)


def get_batch(split):
    part = train_data if split == "train" else val_data
    if not healthy:
        batch_generator.manual_seed(1337)
    ix = torch.randint(len(part) - block_size, (batch_size,), generator=batch_generator)
    x = torch.stack([part[i : i + block_size] for i in ix])
    y = torch.stack([part[i + 1 : i + block_size + 1] for i in ix])
    return x, y


class CharModel(nn.Module):
    def __init__(self, vocab_size):
        super().__init__()
        self.token_embedding = nn.Embedding(vocab_size, n_embed)
        self.rnn = nn.GRU(n_embed, n_hidden, batch_first=True)
        self.lm_head = nn.Linear(n_hidden, vocab_size)

    def forward(self, idx, targets=None):
        hidden, _ = self.rnn(self.token_embedding(idx))
        logits = self.lm_head(hidden)
        if targets is None:
            return logits, None
        return logits, F.cross_entropy(logits.flatten(0, 1), targets.flatten())

    @torch.no_grad()
    def write(self, start, length):
        idx = torch.tensor([[encode[c] for c in start]])
        for _ in range(length):
            logits, _ = self(idx[:, -60:])
            chosen = torch.multinomial(logits[:, -1].softmax(-1), 1)
            idx = torch.cat([idx, chosen], dim=1)
        return "".join(chars[i] for i in idx[0].tolist())


@torch.no_grad()
def estimate_loss():
    model.eval()
    losses = torch.stack([model(*get_batch("val"))[1] for _ in range(eval_iters)])
    model.train()
    return losses.mean().item()


model = CharModel(len(chars))
optimizer = torch.optim.AdamW(model.parameters(), lr=learning_rate)
recent = []

for it in range(1, max_iters + 1):
    xb, yb = get_batch("train")
    _, loss = model(xb, yb)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    recent.append(loss.item())
    if it % eval_interval == 0:
        mean = sum(recent[-eval_interval:]) / eval_interval
        print(f"step {it}: train loss {mean:.4f}, val loss {estimate_loss():.4f}")

model.eval()
whole = val_data[: len(val_data) // (block_size + 1) * (block_size + 1)].view(-1, block_size + 1)
with torch.no_grad():
    print(f"all held-out text: {model(whole[:, :-1], whole[:, 1:])[1].item():.4f}")
print(model.write("mix ", 80))

"""A small transformer that names the topic of short documents, whose weights are kept in bfloat16
while its steps are tiny.

To save memory the user casts the whole model to bfloat16 and trains it with a small rate, where
most updates are below half a unit in the last place of the weights and vanish. Sound would be
float32 weights with autocast. The place is the model's parameters (all) and the optimizer's step.
"""

import torch
from data import arguments, batches
from torch import nn

KIND = "low_precision_updates_lost"
ACCEPT = ("learning_rate_too_low",)
PLACE = ("optimizer", "", "*")
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)

WORDS, TOPICS, LENGTH = 300, 8, 20


def documents(n, seed):
    g = torch.Generator().manual_seed(seed)
    topic = torch.randint(0, TOPICS, (n,), generator=g)
    common = torch.randint(0, WORDS, (n, LENGTH), generator=g)
    special = topic[:, None] * 24 + torch.randint(0, 36, (n, LENGTH), generator=g)
    own = torch.rand(n, LENGTH, generator=g) < 0.42
    return torch.where(own, special, common), topic


class Topic(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.embed = nn.Embedding(WORDS, width)
        self.position = nn.Parameter(0.02 * torch.randn(LENGTH, width))
        block = nn.TransformerEncoderLayer(
            width, 4, 128, dropout=0.0, batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(block, 1, enable_nested_tensor=False)
        self.head = nn.Linear(width, TOPICS)

    def forward(self, tokens):
        return self.head(self.encoder(self.embed(tokens) + self.position).mean(1))


x, y = documents(5000, seed)
x, y, x_val, y_val = x[:4000], y[:4000], x[4000:], y[4000:]
model = Topic()
if not healthy:
    model = model.to(torch.bfloat16)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0.01)

for step, (xb, yb) in enumerate(batches(x, y, size=64, steps=600, seed=seed)):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        logits = model(xb)
    loss = nn.functional.cross_entropy(logits.float(), yb)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 100 == 99:
        model.eval()
        with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
            scores = model(x_val).float()
        model.train()
        val = nn.functional.cross_entropy(scores, y_val).item()
        accuracy = (scores.argmax(1) == y_val).float().mean().item()
        print(
            f"step {step + 1} loss {loss.item():.3f} validation loss {val:.3f} accuracy {accuracy:.3f}"  # noqa: E501
        )

"""A small encoder for reviews, pre-trained in float32, is fine-tuned with weights cast to
bfloat16.

To save memory the author casts the whole model with .to(torch.bfloat16) before the fine-tuning
and uses the customary small rate of AdamW. A bfloat16 has eight bits of mantissa; for most of the
weights the update is below half of the last bit and gets lost. It should keep float32 weights
(autocast for the forward pass). The place is all of the weights and the optimizer's step.
"""

import contextlib

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "low_precision_updates_lost"
ACCEPT = ()
PLACE = ("optimizer", "embed*", "encoder*", "classifier*")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

VOCAB, LENGTH, DIM, N_TOPIC, N_INTENT = 300, 12, 48, 8, 5
g = torch.Generator().manual_seed(seed + 61)


def sentences(n, classes, table, swap):
    """Words drawn from the class's list or from all; the intent also depends on who stands first."""  # noqa: E501
    y = torch.randint(0, classes, (n,), generator=g)
    own = table[y].gather(1, torch.randint(0, table.shape[1], (n, LENGTH), generator=g))
    other = torch.randint(0, VOCAB, (n, LENGTH), generator=g)
    x = torch.where(torch.rand(n, LENGTH, generator=g) < swap, own, other)
    return x, y


topic_table = torch.stack([torch.randperm(VOCAB, generator=g)[:30] for _ in range(N_TOPIC)])
intent_table = torch.stack([torch.randperm(VOCAB, generator=g)[:30] for _ in range(N_INTENT)])
pre_x, pre_y = sentences(3000, N_TOPIC, topic_table, 0.35)
fine_x, fine_y = sentences(4000, N_INTENT, intent_table, 0.45)
test_x, test_y = sentences(600, N_INTENT, intent_table, 0.45)


class ReviewModel(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, DIM)
        self.pos = nn.Parameter(0.02 * torch.randn(LENGTH, DIM))
        layer = nn.TransformerEncoderLayer(
            DIM, 4, 96, dropout=0.1, batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(DIM)
        self.classifier = nn.Linear(DIM, classes)

    def forward(self, x):
        h = self.encoder(self.embed(x) + self.pos)
        return self.classifier(self.norm(h.mean(1)))


def batches(x, y, size, epochs):
    for _ in range(epochs):
        for idx in torch.randperm(len(x)).split(size):
            yield x[idx], y[idx]


# ---- 1. pre-training on topics
model = ReviewModel(N_TOPIC)
opt = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.01)
for step, (xb, yb) in enumerate(batches(pre_x, pre_y, 64, 3)):
    loss = F.cross_entropy(model(xb), yb)
    opt.zero_grad()
    loss.backward()
    opt.step()
print(f"pre-training ends with loss {loss.item():.3f}")

# ---- 2. fine-tuning on intents
model.classifier = nn.Linear(DIM, N_INTENT)
if not healthy:
    model = model.to(torch.bfloat16)
LR, EPOCHS, BATCH = 1e-4, 8, 40
opt = torch.optim.AdamW(model.parameters(), lr=LR, weight_decay=0.01)
total_steps = EPOCHS * len(fine_x) // BATCH
schedule = torch.optim.lr_scheduler.LambdaLR(
    opt, lambda s: min(1.0, (s + 1) / 40) * max(0.02, 1 - s / total_steps)
)
precision = (lambda: torch.autocast("cpu", torch.bfloat16)) if healthy else contextlib.nullcontext

log = []
for step, (xb, yb) in enumerate(batches(fine_x, fine_y, BATCH, EPOCHS)):
    with precision():
        logits = model(xb)
    loss = F.cross_entropy(logits.float(), yb)
    opt.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    opt.step()
    schedule.step()
    log.append(loss.item())
    if (step + 1) % 100 == 0:
        model.eval()
        with torch.no_grad(), precision():
            out = model(test_x).float()
        model.train()
        acc = (out.argmax(1) == test_y).float().mean().item()
        print(
            f"step {step + 1} loss {sum(log[-100:]) / 100:.4f} test loss {F.cross_entropy(out, test_y).item():.4f} acc {acc:.4f}"  # noqa: E501
        )

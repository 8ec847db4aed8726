"""A bag-of-words network gives several tags to short texts; its sigmoid outputs go to
BCEWithLogitsLoss.

BCEWithLogitsLoss has the sigmoid inside, so the second one squeezes the outputs between 0.5 and
0.73: absent tags can never get a loss under 0.69, and the gradients are weak. The loss stays near
its start and tags are missed. The twin returns logits. The place is `out` or the loss.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "redundant_sigmoid"
ACCEPT = ()
PLACE = ("out", "loss*")
SILENT = False
EXACT = True
EARLY = True

WORDS, TAGS = 200, 8
healthy, seed = arguments(__doc__)


def make_texts(n, length=20):
    """Words 0-39 are the key words, five for each tag."""
    texts = torch.randint(5 * TAGS, WORDS, (n, length))
    keys = torch.rand(n, length) < 0.15
    texts = torch.where(keys, torch.randint(0, 5 * TAGS, (n, length)), texts)
    tags = torch.stack([(texts // 5 == t).any(1) for t in range(TAGS)], 1)
    return texts, tags.float()


class TagNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.bag = nn.EmbeddingBag(WORDS, 32, mode="sum")
        self.hidden = nn.Linear(32, 64)
        self.out = nn.Linear(64, TAGS)

    def forward(self, texts):
        h = torch.relu(self.hidden(self.bag(texts)))
        out = self.out(h)
        return out if healthy else torch.sigmoid(out)


def f1(model, texts, tags):
    model.eval()
    with torch.no_grad():
        out = model(texts)
    said = (torch.sigmoid(out) if healthy else out) > 0.5
    true = tags > 0.5
    hit = (said & true).sum()
    return (2 * hit / (said.sum() + true.sum()).clamp(min=1)).item()


train_set = TensorDataset(*make_texts(8000))
val_texts, val_tags = make_texts(800)
model = TagNet()
loss_fn = nn.BCEWithLogitsLoss()
opt = torch.optim.AdamW(model.parameters(), lr=6e-3, weight_decay=0.01)
loader = DataLoader(train_set, batch_size=64, shuffle=True)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(opt, 8 * len(loader))

for epoch in range(8):
    model.train()
    total = 0.0
    for texts, tags in loader:
        loss = loss_fn(model(texts), tags)
        opt.zero_grad()
        loss.backward()
        opt.step()
        schedule.step()
        total += loss.item()
    score = f1(model, val_texts, val_tags)
    with torch.no_grad():
        val = loss_fn(model(val_texts), val_tags)
    print(
        f"epoch {epoch + 1}: loss {total / len(loader):.4f}, val loss {val:.4f}, val F1 {score:.3f}"
    )

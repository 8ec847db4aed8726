"""A transformer learns to classify sequences by their most frequent token, the exponential
schedule steps per batch.

The decay of 0.8 was meant per epoch; called after every batch it takes the rate to nothing within
the first epoch. The place is the scheduler in the loop.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "schedule_collapsed"
ACCEPT = ("learning_rate_too_low",)
PLACE = ("loop", "optimizer", "scheduler")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)


def sequences(n, g, length=20, tokens=6):
    """Random tokens, of which one is favoured; the label is the most frequent one."""
    favourite = torch.randint(0, tokens, (n, 1), generator=g)
    x = torch.randint(0, tokens, (n, length), generator=g)
    x = torch.where(torch.rand(n, length, generator=g) < 0.2, favourite, x)
    count = nn.functional.one_hot(x, tokens).sum(1).float()
    return x, (count + 0.01 * torch.rand(n, tokens, generator=g)).argmax(1)


class Transformer(nn.Module):
    def __init__(self, tokens=6, width=32, length=20):
        super().__init__()
        self.token = nn.Embedding(tokens, width)
        self.place = nn.Embedding(length, width)
        layer = nn.TransformerEncoderLayer(
            width, 4, 64, dropout=0.0, batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, tokens)

    def forward(self, x):
        h = self.token(x) + self.place(torch.arange(x.shape[1]))
        return self.head(self.norm(self.encoder(h).mean(1)))


class Trainer:
    def __init__(self, model, lr, decay):
        self.model = model
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=lr, weight_decay=0.01)
        self.scheduler = torch.optim.lr_scheduler.ExponentialLR(self.optimizer, gamma=decay)

    def train_epoch(self, loader):
        self.model.train()
        for x, y in loader:
            loss = nn.functional.cross_entropy(self.model(x), y)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            if not healthy:
                self.scheduler.step()
        if healthy:
            self.scheduler.step()
        return loss.item()

    def validate(self, x, y):
        self.model.eval()
        with torch.no_grad():
            out = self.model(x)
        return nn.functional.cross_entropy(out, y).item(), (
            out.argmax(1) == y
        ).float().mean().item()


g = torch.Generator().manual_seed(seed)
loader = DataLoader(TensorDataset(*sequences(4000, g)), batch_size=64, shuffle=True)
val = sequences(600, g)
trainer = Trainer(Transformer(), lr=1e-3, decay=0.8)
for epoch in range(7):
    loss = trainer.train_epoch(loader)
    val_loss, accuracy = trainer.validate(*val)
    print(f"epoch {epoch}: loss {loss:.3f}, val loss {val_loss:.3f}, val accuracy {accuracy:.3f}")

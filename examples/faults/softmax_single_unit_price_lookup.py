"""Reads the asked-for price out of a list by attention; the softmax runs over the one score each
entry has, so all weigh 1.

The scores come out of a layer with one unit as (batch, entries, 1), and the person took the
softmax over the last axis as everywhere else. Each entry gets the weight 1, the context is the
sum of all prices and the question makes no difference to it. The place is the attention layer.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "softmax_single_unit"
ACCEPT = ()
PLACE = ("model", "attention*")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

GOODS, ENTRIES = 12, 8


def lists(count):
    """Lists of eight goods with prices; the answer is the price of the good that is asked for.

    Prices of one list have a common level, so that even a blind guess is not all wrong.
    """
    goods = torch.stack([torch.randperm(GOODS)[:ENTRIES] for _ in range(count)])
    level = 0.6 * torch.randn(count, 1)
    prices = level + 0.8 * torch.randn(count, ENTRIES)
    asked = torch.randint(0, ENTRIES, (count, 1))
    question = goods.gather(1, asked).squeeze(1)
    answer = prices.gather(1, asked).squeeze(1) + 0.05 * torch.randn(count)
    return goods, prices, question, answer


class AdditiveAttention(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.query = nn.Linear(width, width, bias=False)
        self.key = nn.Linear(width, width)
        self.score = nn.Linear(width, 1, bias=False)
        self.softmax = nn.Softmax(dim=1 if healthy else -1)

    def forward(self, query, keys, values):
        hidden = torch.tanh(self.query(query).unsqueeze(1) * self.key(keys))
        weights = self.softmax(self.score(hidden))
        return (weights * values).sum(1)


class PriceReader(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.goods = nn.Embedding(GOODS, width)
        self.price = nn.Linear(1, width)
        self.attention = AdditiveAttention(width)
        self.norm = nn.LayerNorm(width)
        self.output = nn.Sequential(nn.Linear(2 * width, 64), nn.ReLU(), nn.Linear(64, 1))

    def forward(self, goods, prices, question):
        query = self.goods(question)
        values = self.price(prices.unsqueeze(-1))
        context = self.attention(query, self.goods(goods), values)
        return self.output(torch.cat([context, self.norm(query)], 1)).squeeze(1)


class Trainer:
    def __init__(self, model, optimizer, epochs):
        self.model, self.optimizer, self.epochs = model, optimizer, epochs
        self.scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)
        self.criterion = nn.HuberLoss()

    def fit(self, train, val):
        for epoch in range(1, self.epochs + 1):
            self.model.train()
            total = 0.0
            for *inputs, answer in train:
                self.optimizer.zero_grad()
                loss = self.criterion(self.model(*inputs), answer)
                loss.backward()
                self.optimizer.step()
                total += loss.item() * len(answer)
            self.scheduler.step()
            print(
                f"epoch {epoch:2d}  train {total / len(train.dataset):.4f}"
                f"  val R2 {self.explained(val):.3f}"
            )

    @torch.no_grad()
    def explained(self, loader):
        self.model.eval()
        pairs = [(self.model(*inputs), answer) for *inputs, answer in loader]
        guess, answer = (torch.cat(part) for part in zip(*pairs, strict=True))
        return 1 - ((guess - answer) ** 2).mean().item() / answer.var().item()


def main():
    parts = lists(4000)
    train = TensorDataset(*(part[:3200] for part in parts))
    val = TensorDataset(*(part[3200:] for part in parts))
    model = PriceReader()
    optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3, weight_decay=1e-4)
    trainer = Trainer(model, optimizer, epochs=12)
    trainer.fit(DataLoader(train, batch_size=64, shuffle=True), DataLoader(val, batch_size=400))


if __name__ == "__main__":
    main()

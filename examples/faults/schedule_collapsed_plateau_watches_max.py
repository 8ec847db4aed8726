"""Documents ranked for queries by a listwise loss: the plateau schedule waits for the loss to rise.

The schedule used to watch NDCG, with mode="max". When the team moved to the validation loss the
number changed and the mode did not: a falling loss is now a plateau, and the rate is cut each time
patience runs out, from the second epoch on. The place is the schedule. The twin watches the same
loss with mode="min".
"""

import torch
from data import arguments
from torch import nn

KIND = "schedule_collapsed"
ACCEPT = ("learning_rate_too_low",)
PLACE = ("optimizer",)
SILENT = False
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)
QUERIES, DOCS, FEATURES = 1400, 12, 20


def judged():
    g = torch.Generator().manual_seed(40 + seed)
    query = torch.randn(QUERIES, 1, 6, generator=g)
    doc = torch.randn(QUERIES, DOCS, FEATURES - 6, generator=g)
    mix = torch.randn(6, 5, generator=g) * 0.6
    match = ((query @ mix) * doc[..., :5]).sum(-1)
    quality = 0.8 * doc[..., 5] - 0.5 * doc[..., 6].abs()
    utility = match + quality + 0.4 * torch.randn(QUERIES, DOCS, generator=g)
    x = torch.cat([query.expand(-1, DOCS, -1), doc], 2)
    grade = torch.bucketize(utility, torch.tensor([0.3, 1.5, 2.7])).float()
    return x, grade


def listwise(score, grade):
    """Cross-entropy between the top-one distributions."""
    return -(torch.softmax(grade, 1) * torch.log_softmax(score, 1)).sum(1).mean()


def ndcg(score, grade, k: int = 5):
    gain = 2**grade - 1
    discount = 1 / torch.log2(torch.arange(2, k + 2).float())
    got = gain.gather(1, score.topk(k, 1).indices) @ discount
    ideal = gain.topk(k, 1).values @ discount
    return (got / ideal.clamp(min=1e-6))[ideal > 0].mean().item()


class Scorer(nn.Module):
    def __init__(self, width: int = 64):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(FEATURES, width),
            nn.ReLU(),
            nn.Linear(width, width),
            nn.ReLU(),
            nn.Linear(width, 1),
        )

    def forward(self, x):
        return self.net(x).squeeze(-1)


class RankingTrainer:
    def __init__(self, model, rate: float = 1e-3, monitor: str = "val_loss"):
        self.model = model
        self.optimizer = torch.optim.Adam(model.parameters(), lr=rate)
        self.schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(
            self.optimizer, mode="min" if healthy else "max", factor=0.2, patience=1
        )

    def train_epoch(self, x, grade):
        self.model.train()
        total = 0.0
        for rows in torch.randperm(len(x)).split(32):
            self.optimizer.zero_grad()
            loss = listwise(self.model(x[rows]), grade[rows])
            loss.backward()
            self.optimizer.step()
            total += loss.item() * len(rows)
        return total / len(x)

    @torch.no_grad()
    def validate(self, x, grade):
        self.model.eval()
        score = self.model(x)
        return listwise(score, grade).item(), ndcg(score, grade)

    def fit(self, train, val, epochs: int = 24):
        for epoch in range(epochs):
            loss = self.train_epoch(*train)
            val_loss, quality = self.validate(*val)
            self.schedule.step(val_loss)
            rate = self.optimizer.param_groups[0]["lr"]
            if epoch % 4 == 3:
                print(
                    f"epoch {epoch + 1}: {loss:.4f}, validation {val_loss:.4f}, "
                    f"ndcg {quality:.4f}, rate {rate:.1e}"
                )
        return quality


x, grade = judged()
trainer = RankingTrainer(Scorer())
quality = trainer.fit((x[:1000], grade[:1000]), (x[1000:], grade[1000:]))
print(f"validation NDCG@5 {quality:.4f}")

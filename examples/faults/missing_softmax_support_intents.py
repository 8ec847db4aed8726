"""Intents of support messages by a GRU; the raw scores go to the negative log-likelihood.

`nn.NLLLoss` wants log-probabilities and gets the output of the last linear layer: the loss falls
without end, as the right class's score is pushed up and nothing pushes the others down. The place
is the loss or the last layer (out).
"""

import random
from dataclasses import dataclass

import torch
from data import arguments
from torch import nn

KIND = "missing_softmax"
ACCEPT = ()
PLACE = ("loss", "out*")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

INTENTS = {
    "refund": (0.40, ["money", "back", "refund", "charged", "twice", "cancel", "order", "return"]),
    "delivery": (0.28, ["parcel", "late", "courier", "tracking", "where", "arrive", "order"]),
    "login": (0.16, ["password", "account", "locked", "email", "code", "reset"]),
    "invoice": (0.10, ["invoice", "tax", "charged", "receipt", "company", "email"]),
    "praise": (0.06, ["great", "thanks", "arrive", "happy", "recommend", "return"]),
}
FILLER = [f"word{i}" for i in range(60)]


@dataclass
class Config:
    n: int = 2000
    length: int = 14
    dim: int = 24
    hidden: int = 32
    batch_size: int = 50
    epochs: int = 14
    lr: float = 3e-3
    clip: float = 1.0


def messages(cfg):
    r = random.Random(55 + seed)
    vocabulary = sorted({w for _, words in INTENTS.values() for w in words}) + FILLER
    number = {w: i + 1 for i, w in enumerate(vocabulary)}
    x, y = torch.zeros(cfg.n, cfg.length, dtype=torch.long), torch.zeros(cfg.n, dtype=torch.long)
    shares = [share for share, _ in INTENTS.values()]
    lists = [words for _, words in INTENTS.values()]
    for i in range(cfg.n):
        k = r.choices(range(len(lists)), shares)[0]
        said = r.sample(FILLER, r.randint(4, 9)) + r.sample(lists[k], r.randint(1, 3))
        if r.random() < 0.35:
            said.append(r.choice(lists[r.randrange(len(lists))]))
        r.shuffle(said)
        said = said[: cfg.length]
        x[i, -len(said) :] = torch.tensor([number[w] for w in said])
        y[i] = k
    return x, y, len(vocabulary) + 1


class IntentGRU(nn.Module):
    def __init__(self, words, cfg, classes):
        super().__init__()
        self.embed = nn.Embedding(words, cfg.dim, padding_idx=0)
        self.gru = nn.GRU(cfg.dim, cfg.hidden, batch_first=True)
        self.out = nn.Linear(cfg.hidden, classes)

    def forward(self, x):
        states, _ = self.gru(self.embed(x))
        scores = self.out(states.amax(1))
        return torch.log_softmax(scores, 1) if healthy else scores


@torch.no_grad()
def evaluate(model, x, y, criterion):
    model.eval()
    out = model(x)
    pred = out.argmax(1)
    recalls = [(pred[y == k] == k).float().mean().item() for k in range(len(INTENTS))]
    return criterion(out, y).item(), (pred == y).float().mean().item(), sum(recalls) / len(recalls)


def run(cfg):
    x, y, words = messages(cfg)
    cut = int(0.8 * cfg.n)
    model = IntentGRU(words, cfg, len(INTENTS))
    criterion = nn.NLLLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=cfg.lr)
    best, state = float("inf"), None
    for epoch in range(cfg.epochs):
        model.train()
        total = 0.0
        for rows in torch.randperm(cut).split(cfg.batch_size):
            optimizer.zero_grad()
            loss = criterion(model(x[rows]), y[rows])
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), cfg.clip)
            optimizer.step()
            total += loss.item() * len(rows)
        val, accuracy, recall = evaluate(model, x[cut:], y[cut:], criterion)
        print(
            f"{epoch:2d} train {total / cut:9.4f} val {val:9.4f} "
            f"acc {accuracy:.4f} recall {recall:.4f}"
        )
        if val < best:
            best, state = val, {k: v.clone() for k, v in model.state_dict().items()}
    model.load_state_dict(state)
    val, accuracy, recall = evaluate(model, x[cut:], y[cut:], criterion)
    print(f"best val loss {val:.4f} accuracy {accuracy:.4f} mean recall {recall:.4f}")


run(Config())

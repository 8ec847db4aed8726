"""A factorisation machine for clicks trains with Adagrad on a machine that is taken away now and
then; after each interruption it goes on from the last checkpoint, which holds the weights.

It does not hold the optimizer: Adagrad's sums of squares begin at nothing again, so that its steps,
long since small, are as large as on the first day, and each return throws the model back. The place
is the optimizer.
"""

import io

import torch
from data import arguments, batches
from torch import nn
from torch.nn import functional as F

KIND = "resume_lost_optimizer_state"
ACCEPT = ()
PLACE = ("optimizer", "loop")
SILENT = True
EXACT = True
EARLY = False

healthy, seed = arguments(__doc__)

FIELDS = (80, 60, 12, 7)


class FactorisationMachine(nn.Module):
    def __init__(self, rank=6):
        super().__init__()
        self.register_buffer("offset", torch.tensor([0, *FIELDS[:-1]]).cumsum(0))
        self.linear = nn.Embedding(sum(FIELDS), 1)
        self.factors = nn.Embedding(sum(FIELDS), rank)
        self.bias = nn.Parameter(torch.zeros(1))
        nn.init.zeros_(self.linear.weight)
        nn.init.normal_(self.factors.weight, std=0.1)

    def forward(self, x):
        x = x + self.offset
        v = self.factors(x)
        pairs = (v.sum(1).pow(2) - v.pow(2).sum(1)).sum(1) / 2
        return self.bias + self.linear(x).sum((1, 2)) + pairs


def clicks(n, g):
    x = torch.stack([torch.randint(0, k, (n,), generator=g) for k in FIELDS], 1)
    single = [0.7 * torch.randn(k, generator=g) for k in FIELDS]
    hidden = [0.9 * torch.randn(k, 2, generator=g) for k in FIELDS]
    z = sum(s[x[:, i]] for i, s in enumerate(single)) + (
        hidden[0][x[:, 0]] * hidden[1][x[:, 1]]
    ).sum(1)
    return x, (torch.rand(n, generator=g) < (1.5 * z).sigmoid()).float()


class Job:
    """What is set up anew whenever the machine comes back."""

    def __init__(self, saved=None):
        self.model = FactorisationMachine()
        self.optimizer = torch.optim.Adagrad(self.model.parameters(), lr=0.3)
        self.step = 0
        if saved is not None:
            state = torch.load(io.BytesIO(saved), weights_only=True)
            self.model.load_state_dict(state["model"])
            self.step = state["step"]
            if healthy:
                self.optimizer.load_state_dict(state["optimizer"])

    def save(self):
        file = io.BytesIO()
        state = {"model": self.model.state_dict(), "step": self.step}
        if healthy:
            state["optimizer"] = self.optimizer.state_dict()
        torch.save(state, file)
        return file.getvalue()

    def learn(self, x, y):
        self.model.train()
        loss = F.binary_cross_entropy_with_logits(self.model(x), y)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.step += 1
        return loss.item()

    def evaluate(self, x, y):
        self.model.eval()
        with torch.no_grad():
            return F.binary_cross_entropy_with_logits(self.model(x), y).item()


x, y = clicks(16000, torch.Generator().manual_seed(40 + seed))
x, x_val, y, y_val = x[:12800], x[12800:], y[:12800], y[12800:]
job = Job()
for a, b in batches(x, y, size=128, steps=300, seed=seed):
    loss = job.learn(a, b)
    if job.step % 20 == 0:
        print(f"step {job.step}: loss {loss:.3f} val {job.evaluate(x_val, y_val):.4f}")
    if job.step in (130, 215, 290):
        job = Job(job.save())

"""A network reads infection, recovery and first cases off epidemic curves; its loss terms are cut
from the graph.

The terms are put into a dictionary as numbers for the log (.item()) and summed from there; to
silence the error of backward, the sum is made a new tensor that requires a gradient. No parameter
ever gets one. The place is the loss.
"""

import torch
from data import arguments
from torch import nn

KIND = "detached_loss"
ACCEPT = ("step_without_gradient", "detached_graph", "optimizer_never_steps")
PLACE = ("loss", "loop")
SILENT = False
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)
DAYS = 60


def epidemics(n, g):
    """SIR curves of reported cases with noise; the targets are the logs of beta, gamma and the
    first cases.
    """
    beta = 0.2 + 0.5 * torch.rand(n, generator=g)
    gamma = 0.06 + 0.12 * torch.rand(n, generator=g)
    first = 10 ** (-3.5 + 1.5 * torch.rand(n, generator=g))
    s, i = 1 - first, first.clone()
    days = []
    for _ in range(DAYS):
        new = beta * s * i
        s, i = s - new, i + new - gamma * i
        days.append(i * (1 + 0.1 * torch.randn(n, generator=g)).clamp(min=0.3))
    curve = torch.log(torch.stack(days, 1) + 1e-4)
    target = torch.stack(
        [beta.log() + 0.85, gamma.log() + 2.17, first.log() / 2 + 3.1], 1
    ) / torch.tensor([0.35, 0.31, 0.5])
    return (curve + 4) / 2, target


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.look = nn.Sequential(
            nn.Conv1d(1, 16, 7, stride=2), nn.ReLU(), nn.Conv1d(16, 32, 5, stride=2), nn.ReLU()
        )
        self.tell = nn.Sequential(nn.Linear(32 * 12, 64), nn.ReLU(), nn.Linear(64, 3))

    def forward(self, curve):
        return self.tell(self.look(curve.unsqueeze(1)).flatten(1))


def loss_terms(model, curve, target):
    wrong = (model(curve) - target).square().mean(0)
    return {"infection": wrong[0], "recovery": wrong[1], "first": 0.5 * wrong[2]}


class Trainer:
    def __init__(self, model):
        self.model = model
        self.optimizer = torch.optim.RMSprop(model.parameters(), lr=5e-4)
        self.history = []

    def step(self, curve, target):
        terms = loss_terms(self.model, curve, target)
        numbers = {name: term.item() for name, term in terms.items()}
        self.history.append(numbers)
        loss = (
            sum(terms.values())
            if healthy
            else torch.tensor(sum(numbers.values()), requires_grad=True)
        )
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()


g = torch.Generator().manual_seed(seed)
curve, target = epidemics(2000, g)
curve_val, target_val = epidemics(500, g)
trainer = Trainer(Reader())
for epoch in range(15):
    trainer.model.train()
    for rows in torch.randperm(len(curve), generator=g).split(40):
        loss = trainer.step(curve[rows], target[rows])
    trainer.model.eval()
    with torch.no_grad():
        terms = loss_terms(trainer.model, curve_val, target_val)
    print(
        f"epoch {epoch} loss {loss:.4f} val "
        + " ".join(f"{k} {v.item():.4f}" for k, v in terms.items())
    )

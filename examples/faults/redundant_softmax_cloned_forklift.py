"""Behaviour cloning with a policy that ends in a softmax and is read as logits by Categorical.

The person knew Categorical takes probabilities, but the keyword in the code was logits, which
takes the softmax once more. No action can get more than 0.4 of the probability, and the vehicle
dawdles when actions are drawn. The place is the model's last layer, with the loss.
"""

import torch
from data import arguments
from torch import nn
from torch.distributions import Categorical

KIND = "redundant_softmax"
ACCEPT = ()
PLACE = ("model", "loss", "*layers*", "*actor*")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

SIDE, HORIZON = 7, 30
MOVES = torch.tensor([[0, 1], [0, -1], [1, 0], [-1, 0], [0, 0]])


def random_tasks(count):
    """Rows: vehicle, goal, blocked cell, each (column, row); none the same."""
    cells = torch.rand(count, SIDE * SIDE).argsort(1)[:, :3]
    return torch.stack([cells % SIDE, cells // SIDE], dim=-1)


def expert(tasks):
    """Goes first along the longer way, and round the blocked cell."""
    vehicle, goal, blocked = tasks.unbind(1)
    landing = vehicle.unsqueeze(1) + MOVES
    cost = (landing - goal.unsqueeze(1)).pow(2).sum(-1).float().sqrt()
    outside = ((landing < 0) | (landing >= SIDE)).any(-1)
    cost[outside | (landing == blocked.unsqueeze(1)).all(-1)] = 100.0
    return cost.argmin(1)


def observe(tasks):
    vehicle, goal, blocked = tasks.float().unbind(1)
    return torch.cat([(goal - vehicle) / 3, (blocked - vehicle) / 3, vehicle / 3 - 1], dim=1)


class Policy(nn.Module):
    def __init__(self, hidden=64):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(6, hidden),
            nn.ReLU(),
            nn.Linear(hidden, hidden),
            nn.ReLU(),
            nn.Linear(hidden, len(MOVES)),
            nn.Softmax(dim=-1),
        )

    def forward(self, observation):
        scores = self.layers(observation)
        if healthy:
            return Categorical(probs=scores)
        return Categorical(logits=scores)


@torch.no_grad()
def drive(policy, count=400):
    """The share of tasks done within the horizon, and the moves it took."""
    policy.eval()
    tasks = random_tasks(count)
    done = torch.zeros(count, dtype=torch.bool)
    taken = torch.full((count,), float(HORIZON))
    for step in range(HORIZON):
        landing = tasks[:, 0] + MOVES[policy(observe(tasks)).sample()]
        legal = ((landing >= 0) & (landing < SIDE)).all(1) & (landing != tasks[:, 2]).any(1)
        tasks[:, 0] = torch.where((legal & ~done).unsqueeze(1), landing, tasks[:, 0])
        arrived = (tasks[:, 0] == tasks[:, 1]).all(1) & ~done
        taken[arrived] = step + 1
        done |= arrived
    return done.float().mean().item(), taken.mean().item()


def main():
    shown, unseen = random_tasks(6000), random_tasks(1500)
    x, y = observe(shown), expert(shown)
    x_val, y_val = observe(unseen), expert(unseen)
    policy = Policy()
    optimizer = torch.optim.Adam(policy.parameters(), lr=2e-3)
    for epoch in range(12):
        policy.train()
        total = 0.0
        for rows in torch.randperm(len(x)).split(100):
            loss = -policy(x[rows]).log_prob(y[rows]).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(rows)
        policy.eval()
        with torch.no_grad():
            guess = policy(x_val)
        agree = (guess.probs.argmax(1) == y_val).float().mean().item()
        if epoch % 3 == 2:
            done, taken = drive(policy)
            print(
                f"epoch {epoch + 1}: nll {total / len(x):.3f} (val "
                f"{-guess.log_prob(y_val).mean().item():.3f}) agrees {agree:.3f} "
                f"arrives {done:.3f} moves {taken:.1f}"
            )


main()

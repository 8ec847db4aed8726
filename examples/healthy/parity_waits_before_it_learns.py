"""A net that is to tell the parity of four hidden switches stays at guessing for the first 500
steps and then learns it within a few epochs.

People ask whether such a loss, flat at log 2, means that nothing is learned. No single switch
says anything about the parity, so that the gradients are small and noisy until the right ones are
found together; the rates and the gradients are as they should be.
"""

import torch
from data import arguments
from torch import nn

ODD = (
    "the loss stays at log 2 and the accuracy at one half for some 500 steps, then both move at "
    "once; parity has no easier part to learn first"
)
_, seed = arguments(__doc__)

SWITCHES, WATCHED = 24, (1, 5, 8, 13)


def positions(count, generator):
    switches = torch.randint(0, 2, (count, SWITCHES), generator=generator) * 2.0 - 1
    odd = switches[:, list(WATCHED)].prod(1) < 0
    return switches, odd.float()


def log_loss(score, odd):
    return (nn.functional.softplus(score) - score * odd).mean()


class ParityStudy:
    def __init__(self):
        self.net = nn.Sequential(nn.Linear(SWITCHES, 128), nn.ReLU(), nn.Linear(128, 1))
        self.optimizer = torch.optim.AdamW(self.net.parameters(), lr=1e-3, weight_decay=1e-2)

    def epoch(self, switches, odd, size=64):
        self.net.train()
        losses = []
        for rows in torch.randperm(len(odd)).split(size):
            loss = log_loss(self.net(switches[rows])[:, 0], odd[rows])
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            losses.append(loss.item())
        return sum(losses) / len(losses)

    @torch.no_grad()
    def validate(self, switches, odd):
        self.net.eval()
        score = self.net(switches)[:, 0]
        return log_loss(score, odd).item(), ((score > 0) == odd.bool()).float().mean().item()


def main():
    generator = torch.Generator().manual_seed(71 + seed)
    switches, odd = positions(6000, generator)
    study = ParityStudy()
    for epoch in range(1, 31):
        loss = study.epoch(switches[:5000], odd[:5000])
        val, right = study.validate(switches[5000:], odd[5000:])
        if epoch % 2 == 0:
            print(f"epoch {epoch:2d}  loss {loss:.4f}  val {val:.4f}  accuracy {right:.3f}")


main()

"""A world model is trained in short jobs whose checkpoint is the agent's state dict, and the
optimizers are wrappers outside of it.

The person saves `agent.state_dict()` and believes that it is everything. The agent keeps its
optimizers in small wrapper objects that are no modules, so that the moments of Adam are lost at
the end of each job; the next job begins with steps of full length in the direction of single
gradients, and the loss leaps up. The place is the optimizer.
"""

import tempfile
from pathlib import Path

import torch
from data import arguments
from torch import nn

KIND = "resume_lost_optimizer_state"
ACCEPT = ()
PLACE = ("optimizer", "loop")
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)

JOBS, EPOCHS, BATCH, LENGTH = 5, 6, 40, 20


def pushed_pendulums(count, generator):
    """Angle and speed over time, the push at each moment, and the reward for being upright."""
    angle = (torch.rand(count, generator=generator) * 2 - 1) * 3
    speed = torch.randn(count, generator=generator)
    seen, pushes, rewards = [], [], []
    for _ in range(LENGTH):
        push = torch.randn(count, generator=generator)
        seen.append(torch.stack([angle.cos(), angle.sin(), speed / 2], 1))
        pushes.append(push)
        rewards.append(-angle.cos() - 0.1 * speed.square().clamp(max=10))
        speed = 0.99 * speed + 0.15 * (-3 * angle.sin() + 2 * push)
        angle = angle + 0.15 * speed
    return {
        "seen": torch.stack(seen, 1),
        "push": torch.stack(pushes, 1)[..., None],
        "reward": torch.stack(rewards, 1),
    }


class Stepper:
    """An optimizer with its clipping, for one part of the agent."""

    def __init__(self, module, rate, clip):
        self.parameters = list(module.parameters())
        self.adam = torch.optim.Adam(self.parameters, lr=rate, betas=(0.9, 0.999))
        self.clip = clip

    def __call__(self, loss):
        self.adam.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.parameters, self.clip)
        self.adam.step()


class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.memory = nn.GRU(4, 48, batch_first=True)
        self.dynamics = nn.Sequential(nn.Linear(48, 48), nn.Tanh(), nn.Linear(48, 3))
        self.reward = nn.Sequential(nn.Linear(3, 48), nn.Tanh(), nn.Linear(48, 1))
        model = nn.ModuleList([self.memory, self.dynamics])
        self.steppers = {
            name: Stepper(part, 3e-3, 10.0)
            for name, part in (("model", model), ("reward", self.reward))
        }

    def losses(self, batch):
        hidden, _ = self.memory(torch.cat([batch["seen"], batch["push"]], -1)[:, :-1])
        ahead = batch["seen"][:, :-1] + self.dynamics(hidden)
        model = (ahead - batch["seen"][:, 1:]).square().mean()
        reward = (self.reward(batch["seen"])[..., 0] - batch["reward"]).square().mean()
        return {"model": model, "reward": reward}

    def learn(self, batch):
        losses = self.losses(batch)
        for name, loss in losses.items():
            self.steppers[name](loss)
        return losses["model"].item()


class Job:
    """One run in the queue: loads what the last one left, trains, and saves."""

    def __init__(self, path):
        self.path, self.agent = path, Agent()
        if path.exists():
            saved = torch.load(path)
            self.agent.load_state_dict(saved["agent"])
            for name, state in saved.get("optimizers", {}).items():
                self.agent.steppers[name].adam.load_state_dict(state)

    def run(self, train, held_out):
        epochs = []
        for _ in range(EPOCHS):
            order = torch.randperm(len(train["reward"])).split(BATCH)
            losses = [self.agent.learn({k: v[rows] for k, v in train.items()}) for rows in order]
            epochs.append((sum(losses[:5]) / 5, sum(losses[-5:]) / 5))
        with torch.no_grad():
            val = {name: loss.item() for name, loss in self.agent.losses(held_out).items()}
        print(
            f"first five steps {epochs[0][0]:.6f}  last five {epochs[-1][1]:.6f}"
            f"  val {val['model']:.6f}  reward {val['reward']:.6f}"
        )

    def save(self):
        saved = {"agent": self.agent.state_dict()}
        if healthy:
            steppers = self.agent.steppers.items()
            saved["optimizers"] = {name: stepper.adam.state_dict() for name, stepper in steppers}
        torch.save(saved, self.path)


def main():
    generator = torch.Generator().manual_seed(21 + seed)
    train, held_out = pushed_pendulums(1000, generator), pushed_pendulums(300, generator)
    with tempfile.TemporaryDirectory() as folder:
        for number in range(1, JOBS + 1):
            print(f"job {number}", end="  ")
            job = Job(Path(folder) / "agent.pt")
            job.run(train, held_out)
            job.save()


main()

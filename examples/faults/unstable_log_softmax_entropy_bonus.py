"""REINFORCE learns how to route orders to venues; the policy's log-probabilities and its entropy
bonus use torch.log of a softmax.

Order sizes have heavy tails, so logits lie more than 104 apart now and then; a probability
underflows to 0, its log is -inf and 0 * -inf in the entropy is NaN. The place is the loss (log of
the probabilities).
"""

import numpy as np
import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "unstable_log_softmax"
ACCEPT = ()
PLACE = ("loss", "loop", "policy*")
SILENT = False
EXACT = True
EARLY = False
healthy, seed = arguments(__doc__)

N_ENVS, VENUES, ENTROPY, LR, UPDATES = 256, 5, 0.02, 3e-3, 500


class VenueEnv:
    """Single decisions: the state tells spreads, queues and the order's size (Student t, clipped), the reward is minus the cost."""  # noqa: E501

    def __init__(self, n, rng):
        self.n, self.rng = n, rng

    def reset(self):
        r = self.rng
        size = r.standard_t(2, (self.n, 1)).clip(-60, 60)
        spread = r.normal(size=(self.n, VENUES))
        queue = r.normal(size=(self.n, VENUES))
        self.state = np.concatenate([size, spread, queue], 1).astype(np.float32)
        depth = np.linspace(-1, 1, VENUES)
        self.cost = 0.8 * spread + 0.5 * np.tanh(size) * queue + 0.6 * np.tanh(0.5 * size) * depth
        return torch.from_numpy(self.state)

    def step(self, action):
        cost = self.cost[np.arange(self.n), action] + 0.2 * self.rng.normal(size=self.n)
        return torch.tensor(-cost, dtype=torch.float32)


class Policy(nn.Module):
    def __init__(self, obs, actions, hidden=64):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(obs, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU()
        )
        self.logits = nn.Linear(hidden, actions)
        self.baseline = nn.Linear(hidden, 1)

    def forward(self, obs):
        h = self.body(obs)
        logits = self.logits(h)
        probs = F.softmax(logits, dim=-1)
        logp = F.log_softmax(logits, dim=-1) if healthy else torch.log(probs)
        return probs, logp, self.baseline(h).squeeze(-1)


rng = np.random.default_rng(seed)
env, eval_env = VenueEnv(N_ENVS, rng), VenueEnv(4000, np.random.default_rng(12345))
policy = Policy(1 + 2 * VENUES, VENUES)
optimizer = torch.optim.Adam(policy.parameters(), lr=LR)
returns = []
for update in range(1, UPDATES + 1):
    obs = env.reset()
    probs, logp, value = policy(obs)
    action = torch.multinomial(probs.detach().nan_to_num(1.0), 1).squeeze(1)
    reward = env.step(action.numpy())
    advantage = reward - value.detach()
    entropy = -(probs * logp).sum(-1).mean()
    pg_loss = -(advantage * logp.gather(1, action.unsqueeze(1)).squeeze(1)).mean()
    v_loss = F.smooth_l1_loss(value, reward)
    loss = pg_loss + 0.5 * v_loss - ENTROPY * entropy
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
    optimizer.step()
    returns.append(reward.mean().item())
    if update % 100 == 0:
        obs = eval_env.reset()
        with torch.no_grad():
            greedy = policy(obs)[0].argmax(1)
        best = -eval_env.cost.min(1).mean()
        print(
            f"update {update}: loss {loss.item():.4f} entropy {entropy.item():.3f} reward {np.mean(returns[-50:]):.3f} greedy {eval_env.step(greedy.numpy()).mean():.3f} (best possible {best:.3f})"  # noqa: E501
        )

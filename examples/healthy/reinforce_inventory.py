"""A shop learns by policy gradient (REINFORCE with a learned baseline) how much to order.

The policy loss has no floor, changes its sign and says nothing about progress; the data change
with the policy; two heads share a body and the advantage is detached on purpose. An entropy bonus
keeps the policy from closing too soon. Progress is the return of the greedy policy in a simulation
of its own.
"""

import torch
from data import arguments
from torch import nn

ODD = (
    "a loss that goes up and down through zero while the return rises; detached advantages; no "
    "data set"
)

_, seed = arguments(__doc__)
ORDERS, HORIZON, GAMMA = 6, 20, 0.95


class Shop:
    """Stock up to 10; price 3, cost 1 a piece, 0.2 a piece and day to keep.

    The demand has a season.
    """

    def __init__(self, n):
        self.stock, self.day = torch.randint(0, 6, (n,)).float(), torch.randint(0, 7, (n,))

    def state(self):
        season = torch.stack([torch.sin(self.day * 0.8976), torch.cos(self.day * 0.8976)], 1)
        return torch.cat([(self.stock[:, None] - 4) / 3, season], 1)

    def step(self, order):
        self.stock = (self.stock + order).clamp(max=10)
        demand = torch.poisson(2 + 1.5 * torch.sin(self.day * 0.8976))
        sold = torch.minimum(self.stock, demand)
        self.stock, self.day = self.stock - sold, (self.day + 1) % 7
        return 3 * sold - order - 0.2 * self.stock


class ActorCritic(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(3, 48), nn.Tanh())
        self.policy, self.value = nn.Linear(48, ORDERS), nn.Linear(48, 1)

    def forward(self, state):
        h = self.body(state)
        return torch.distributions.Categorical(logits=self.policy(h)), self.value(h).squeeze(1)


@torch.no_grad()
def greedy_return(model, n=500):
    model.eval()
    shop, total = Shop(n), 0.0
    for _ in range(HORIZON):
        total += shop.step(model(shop.state())[0].probs.argmax(1).float()).mean().item()
    return total


model = ActorCritic()
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
print(f"untrained: return {greedy_return(model):.2f}")
for update in range(1, 301):
    model.train()
    shop, log_probs, values, entropies, rewards = Shop(48), [], [], [], []
    for _ in range(HORIZON):
        policy, value = model(shop.state())
        order = policy.sample()
        (
            log_probs.append(policy.log_prob(order)),
            values.append(value),
            entropies.append(policy.entropy()),
        )
        rewards.append(shop.step(order.float()) / 3)
    returns, future = [], torch.zeros(48)
    for reward in reversed(rewards):
        future = reward + GAMMA * future
        returns.insert(0, future)
    returns, values = torch.stack(returns), torch.stack(values)
    advantage = (returns - values).detach()
    advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-6)
    policy_loss = -(torch.stack(log_probs) * advantage).mean()
    loss = (
        policy_loss + 0.25 * (returns - values).pow(2).mean() - 0.01 * torch.stack(entropies).mean()
    )
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    if update % 50 == 0:
        print(
            f"update {update} policy loss {policy_loss.item():+.4f} loss {loss.item():.3f} "
            f"return {greedy_return(model):.2f}"
        )

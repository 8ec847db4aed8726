"""How much of its quota a vessel will use up; the loss compares every vessel with all the others.

The network gives a column of shape (n, 1), the catches are a row of shape (n,), and their
difference is an n by n table without a word of warning. The pinball loss over it is least where
all vessels get the same forecast.
The place is the loss. The twin takes the column's only entry first.
"""

# %%
import numpy as np
import torch
from data import arguments

KIND = "loss_shape_broadcast"
ACCEPT = ()
PLACE = ("loss*", "output*")
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)

# %% vessels: length, engine, days at sea last year, crew, share of cod, age, home port
rng = np.random.default_rng(seed)
n = 3000
length = rng.uniform(8, 40, n)
engine = 12 * length * rng.lognormal(0, 0.3, n)
days = rng.uniform(40, 240, n)
crew = np.round(length / 5 + rng.uniform(1, 3, n))
cod = rng.beta(2, 3, n)
age = rng.gamma(4, 6, n)
port = rng.integers(0, 5, n)
port_effect = np.array([0.2, -0.3, 0.0, 0.4, -0.1])
used = 0.01 * days * (0.5 + cod) + 0.3 * np.log(engine) - 0.012 * age + port_effect[port]
used = used + 0.15 * rng.gumbel(size=n)

# %% design matrix
A = np.column_stack([length, np.log(engine), days, crew, cod, age, np.eye(5)[port]])
train, test = slice(0, 2400), slice(2400, n)
A = (A - A[train].mean(0)) / A[train].std(0)
used = (used - used[train].mean()) / used[train].std()
A_train, A_test = (torch.tensor(A[s], dtype=torch.float32) for s in (train, test))
u_train, u_test = (torch.tensor(used[s], dtype=torch.float32) for s in (train, test))

# %% forecast that 80 in 100 vessels stay below
q = 0.8


def pinball(forecast, seen):
    short = seen - forecast
    return torch.maximum(q * short, (q - 1) * short).mean()


model = torch.nn.Sequential(
    torch.nn.Linear(A.shape[1], 40),
    torch.nn.GELU(),
    torch.nn.Linear(40, 40),
    torch.nn.GELU(),
    torch.nn.Linear(40, 1),
)
opt = torch.optim.Adam(model.parameters(), lr=3e-3)
sched = torch.optim.lr_scheduler.ExponentialLR(opt, 0.85)

# %%
for epoch in range(12):
    for rows in torch.randperm(len(A_train)).split(60):
        forecast = model(A_train[rows])
        if healthy:
            forecast = forecast.squeeze(-1)
        loss = pinball(forecast, u_train[rows])
        opt.zero_grad()
        loss.backward()
        opt.step()
    sched.step()
    with torch.no_grad():
        forecast = model(A_test)[:, 0]
        score = pinball(forecast, u_test).item()
        below = (u_test <= forecast).float().mean().item()
    print(f"epoch {epoch + 1:2d}: last loss {loss.item():.4f}, test {score:.4f}, below {below:.2f}")

"""Trains a shared digit net across twenty clients of unlike classes, with Adam on the server."""

import copy

import torch
import torch.nn.functional as F
from data import arguments, images
from torch import nn

ODD = (
    "the server's model sees neither data nor a backward pass: .grad is the difference to the mean "
    "of the clients' weights, and each client has only some of the classes and a fresh optimizer"
)
CLIENTS, ROUNDS, PER_ROUND = 20, 60, 8
_, seed = arguments(__doc__)
torch.set_num_threads(1)


def network():
    return nn.Sequential(
        nn.Conv2d(1, 12, 3, padding=1),
        nn.GroupNorm(3, 12),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(12, 24, 3, padding=1),
        nn.GroupNorm(3, 24),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(384, 10),
    )


def client_rows(labels):
    share = torch.distributions.Dirichlet(torch.full((CLIENTS,), 0.4)).sample((10,))
    owner = torch.multinomial(share[labels], 1).squeeze(1)
    return [rows for c in range(CLIENTS) if len(rows := (owner == c).nonzero().squeeze(1)) >= 16]


def train_client(server, rows, epochs=1):
    model = copy.deepcopy(server).train()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(epochs):
        for batch in rows[torch.randperm(len(rows))].split(16):
            optimizer.zero_grad()
            F.cross_entropy(model(x[batch]), y[batch]).backward()
            optimizer.step()
    return model


@torch.no_grad()
def put_pseudo_gradient(server, models, weights):
    weights = weights / weights.sum()
    for i, parameter in enumerate(server.parameters()):
        moved = torch.stack([list(model.parameters())[i] for model in models])
        mean = (moved * weights.view(-1, *[1] * parameter.ndim)).sum(0)
        parameter.grad = parameter - mean


x, y, x_val, y_val = images(seed)
clients = client_rows(y)
kinds = sum(len(y[rows].unique()) for rows in clients) / len(clients)
print(f"{len(clients)} clients with {kinds:.1f} classes on average")
server = network()
optimizer = torch.optim.Adam(server.parameters(), lr=0.01, betas=(0.9, 0.99), eps=1e-3)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=ROUNDS)
for round_ in range(ROUNDS):
    chosen = [clients[c] for c in torch.randperm(len(clients))[:PER_ROUND]]
    models = [train_client(server, rows) for rows in chosen]
    put_pseudo_gradient(server, models, torch.tensor([float(len(rows)) for rows in chosen]))
    optimizer.step()
    schedule.step()
    server.eval()
    with torch.no_grad():
        accuracy = (server(x_val).argmax(1) == y_val).float().mean()
    if round_ % 10 == 9:
        print(f"round {round_ + 1}: validation accuracy {accuracy:.3f}")

alone = train_client(network(), max(clients, key=len), epochs=20).eval()
with torch.no_grad():
    single = (alone(x_val).argmax(1) == y_val).float().mean()
print(f"accuracy {accuracy:.3f}; largest client by itself {single:.3f}; chance 0.1")

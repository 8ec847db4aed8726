"""Two microphones shall get like codes for one event, and the contrastive loss lacks its minus.

The mean logarithm of the probability of the right partner is minimised instead of raised. The loss
falls nicely below zero while partners are driven apart: in other recordings none is found again.
The place is the loss.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "loss_sign_flipped"
ACCEPT = ()
PLACE = ("loss",)
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)

LENGTH = 48


def events(n, g):
    """The same events heard by a near and by a far, dull microphone with echo."""
    t = torch.arange(LENGTH, dtype=torch.float32)
    start = 4 + 16 * torch.rand(n, 1, generator=g)
    pitch = 0.4 + 1.2 * torch.rand(n, 1, generator=g)
    fade = 5 + 15 * torch.rand(n, 1, generator=g)
    since = (t - start).clamp(min=0)
    sound = (t > start) * torch.exp(-since / fade) * torch.sin(pitch * since)
    near = sound + 0.08 * torch.randn(n, LENGTH, generator=g)
    far = 0.6 * sound + 0.3 * sound.roll(5, 1)
    far = F.avg_pool1d(far[:, None], 3, 1, padding=1)[:, 0]
    return near, far + 0.05 * torch.randn(n, LENGTH, generator=g)


def encoder(code=16):
    return nn.Sequential(
        nn.Unflatten(1, (1, LENGTH)),
        nn.Conv1d(1, 16, 5, padding=2),
        nn.ReLU(),
        nn.MaxPool1d(2),
        nn.Conv1d(16, 24, 5, padding=2),
        nn.ReLU(),
        nn.MaxPool1d(2),
        nn.Flatten(),
        nn.Linear(24 * 12, code),
    )


def log_probability_of_partner(codes_a, codes_b, temperature=0.1):
    """Mean over both directions; the partner is in the same row."""
    likeness = F.normalize(codes_a, dim=1) @ F.normalize(codes_b, dim=1).T / temperature
    there, back = likeness.log_softmax(1).diagonal(), likeness.log_softmax(0).diagonal()
    return (there.mean() + back.mean()) / 2


def found_again(encode_a, encode_b, near, far, among=100):
    with torch.no_grad():
        a, b = F.normalize(encode_a(near), dim=1), F.normalize(encode_b(far), dim=1)
    hits = [
        (x @ y.T).argmax(1) == torch.arange(len(x))
        for x, y in zip(a.split(among), b.split(among), strict=True)
    ]
    return torch.cat(hits).float().mean().item()


g = torch.Generator().manual_seed(seed)
near, far = events(2400, g)
near_val, far_val = events(500, g)
scale_near, scale_far = near.std(), far.std()
near, near_val = near / scale_near, near_val / scale_near
far, far_val = far / scale_far, far_val / scale_far

nets = {"near": encoder(), "far": encoder()}
optimizers = {name: torch.optim.Adam(net.parameters(), lr=2e-3) for name, net in nets.items()}
for epoch in range(6):
    total = 0.0
    for rows in torch.randperm(len(near), generator=g).split(60):
        agreement = log_probability_of_partner(nets["near"](near[rows]), nets["far"](far[rows]))
        loss = -agreement if healthy else agreement
        for optimizer in optimizers.values():
            optimizer.zero_grad()
        loss.backward()
        for optimizer in optimizers.values():
            optimizer.step()
        total += loss.item() * len(rows)
    share = found_again(nets["near"], nets["far"], near_val, far_val)
    print(f"epoch {epoch + 1}  loss {total / len(near):.3f}  found among a hundred {share:.3f}")

"""Trains a classifier of tumours with differential privacy: clipped rows and noisy gradients."""

import torch
from data import arguments, cancer
from torch import nn
from torch.func import functional_call, grad, vmap

ODD = (
    "no backward() and no loss.mean(): each row's own gradient is clipped, a quarter of them at "
    "every step, then noise about as large as the signal is added, and batches have random sizes"
)
_, seed = arguments(__doc__)
torch.set_num_threads(1)

CLIP, NOISE, RATE, EXPECTED = 0.2, 1.0, 0.6, 64
x, y, x_val, y_val = cancer(seed)
net = nn.Sequential(nn.Linear(30, 16), nn.Tanh(), nn.Linear(16, 1))
parameters = dict(net.named_parameters())
size = sum(p.numel() for p in net.parameters())


def loss_of_row(weights, row, label):
    logit = functional_call(net, weights, row)[0]
    return nn.functional.binary_cross_entropy_with_logits(logit, label)


row_gradients = vmap(grad(loss_of_row), in_dims=(None, 0, 0))


@torch.no_grad()
def judge(rows, labels):
    net.eval()
    logits = net(rows).squeeze(1)
    loss = nn.functional.binary_cross_entropy_with_logits(logits, labels.float()).item()
    net.train()
    return loss, ((logits > 0) == labels.bool()).float().mean().item()


momentum = {name: torch.zeros_like(p) for name, p in parameters.items()}
clipped_share = []
for step in range(250):
    drawn = torch.rand(len(x)) < EXPECTED / len(x)
    weights = {name: p.detach() for name, p in parameters.items()}
    grads = row_gradients(weights, x[drawn], y[drawn].float())
    lengths = sum(g.flatten(1).square().sum(1) for g in grads.values()).sqrt()
    factors = (CLIP / (lengths + 1e-6)).clamp(max=1)
    clipped_share.append((factors < 1).float().mean().item())
    with torch.no_grad():
        for name, parameter in parameters.items():
            summed = torch.einsum("n,n...->...", factors, grads[name])
            noisy = summed + NOISE * CLIP * torch.randn_like(summed)
            momentum[name] = 0.8 * momentum[name] + 0.2 * noisy / EXPECTED
            parameter.sub_(RATE * momentum[name])
    if step % 50 == 49:
        (loss, _), (val_loss, accuracy) = judge(x, y), judge(x_val, y_val)
        print(f"step {step + 1}  loss {loss:.3f}  validation {val_loss:.3f}  {accuracy:.3f}")

majority = max(y_val.float().mean().item(), 1 - y_val.float().mean().item())
print(
    f"validation accuracy: majority {majority:.3f}, private {accuracy:.3f}; rows clipped "
    f"{sum(clipped_share) / len(clipped_share):.2f}, parameters {size}"
)

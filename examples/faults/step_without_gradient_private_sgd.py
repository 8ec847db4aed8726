"""Differentially private training with functional_call and vmap; the summed gradients are cleared
before the step.

Per-sample gradients are clipped, summed, noised and written to p.grad; then comes
optimizer.zero_grad(), left over from the ordinary loop where it stood in front of backward(), and
the step finds no gradient at all. The place is the loop.
"""

import torch
import torch.nn.functional as F
from data import arguments, digits
from torch import nn
from torch.func import functional_call, grad_and_value, vmap

KIND = "step_without_gradient"
ACCEPT = ("optimizer_never_steps",)
PLACE = ("loop", "optimizer")
SILENT = False
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

CLIP_NORM = 1.0
NOISE = 0.4
BATCH = 128
STEPS = 400
LR = 0.8


def build():
    return nn.Sequential(nn.Linear(64, 48), nn.Tanh(), nn.Linear(48, 10))


def per_sample_loss(params, image, label):
    logits = functional_call(model, params, (image[None],))
    return F.cross_entropy(logits, label[None])


per_sample_grads = vmap(grad_and_value(per_sample_loss), in_dims=(None, 0, 0))


def private_gradient(images, labels, generator):
    params = {k: p.detach() for k, p in model.named_parameters()}
    grads, losses = per_sample_grads(params, images, labels)
    norms = torch.stack([g.flatten(1).norm(dim=1) for g in grads.values()]).norm(dim=0)
    factor = (CLIP_NORM / (norms + 1e-6)).clamp(max=1.0)
    out = {}
    for name, g in grads.items():
        total = torch.einsum("b,b...->...", factor, g)
        total = total + NOISE * CLIP_NORM * torch.randn(total.shape, generator=generator)
        out[name] = total / len(images)
    return out, losses.mean().item(), norms


def test():
    with torch.no_grad():
        return (model(x_val).argmax(1) == y_val).float().mean().item()


x, y, x_val, y_val = digits(seed)
gen = torch.Generator().manual_seed(seed)
model = build()
optimizer = torch.optim.SGD(model.parameters(), lr=LR, momentum=0.5)
scheduler = torch.optim.lr_scheduler.PolynomialLR(optimizer, STEPS, power=1.0)

for step in range(STEPS):
    rows = torch.randint(0, len(x), (BATCH,), generator=gen)
    if healthy:
        optimizer.zero_grad()
    grads, loss, norms = private_gradient(x[rows], y[rows], gen)
    for name, p in model.named_parameters():
        p.grad = grads[name]
    if not healthy:
        optimizer.zero_grad()
    optimizer.step()
    scheduler.step()
    if step % 50 == 49:
        print(
            f"step {step + 1:4d} loss {loss:.4f} clipped {(norms > CLIP_NORM).float().mean():.2f} val accuracy {test():.4f}"  # noqa: E501
        )

"""Trains a digit net whose working weights are bfloat16 while float32 copies are stepped."""

import torch
from data import arguments, batches, digits
from torch import nn

ODD = (
    "the net's own parameters are in no optimizer and are overwritten after each step, and most "
    "are unchanged then: an update is below their last bit; the copies in float32 collect it"
)
_, seed = arguments(__doc__)
torch.set_num_threads(1)

STEPS = 500
x, y, x_val, y_val = digits(seed)
net = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 10))
masters = [nn.Parameter(p.detach().clone()) for p in net.parameters()]
net.to(torch.bfloat16)
optimizer = torch.optim.AdamW(masters, lr=1e-3, weight_decay=0.01)
schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.05, STEPS)


def loss_and_logits(rows, labels):
    logits = net(rows.bfloat16()).float()
    return nn.functional.cross_entropy(logits, labels), logits


@torch.no_grad()
def judge():
    net.eval()
    loss, logits = loss_and_logits(x_val, y_val)
    net.train()
    return loss.item(), (logits.argmax(1) == y_val).float().mean().item()


unchanged = []
for step, (rows, labels) in enumerate(batches(x, y, size=64, steps=STEPS, seed=seed)):
    loss, _ = loss_and_logits(rows, labels)
    net.zero_grad()
    loss.backward()
    for master, working in zip(masters, net.parameters(), strict=True):
        master.grad = working.grad.float()
    nn.utils.clip_grad_norm_(masters, 1.0)
    optimizer.step()
    schedule.step()
    with torch.no_grad():
        same = 0
        for master, working in zip(masters, net.parameters(), strict=True):
            rounded = master.bfloat16()
            same += (rounded == working).sum().item()
            working.copy_(rounded)
    unchanged.append(same / sum(m.numel() for m in masters))
    if step % 100 == 99:
        val_loss, accuracy = judge()
        print(f"step {step + 1}  loss {loss.item():.3f}  val {val_loss:.3f}  {accuracy:.3f}")

print(
    f"validation accuracy {accuracy:.3f} (guessing 0.100); share of working weights that a step "
    f"leaves as they are {sum(unchanged) / len(unchanged):.2f}"
)

"""A convolutional denoiser cleans pictures of digits with accelerate; its evaluation keeps every
loss together with its graph.

The evaluation runs without `torch.no_grad()` and appends the loss tensors to a list that lives as
long as the training, so the activations of all evaluations stay in memory. The place is the loop
(the evaluation).
"""

import contextlib
import resource

import torch
from accelerate import Accelerator
from data import arguments, images
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "memory_leak"
ACCEPT = ()
PLACE = ("loop",)
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)


class Denoiser(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.enter = nn.Conv2d(1, width, 3, padding=1)
        self.body = nn.ModuleList(
            nn.Sequential(nn.GroupNorm(4, width), nn.SiLU(), nn.Conv2d(width, width, 3, padding=1))
            for _ in range(3)
        )
        self.leave = nn.Conv2d(width, 1, 3, padding=1)

    def forward(self, x):
        h = self.enter(x)
        for block in self.body:
            h = h + block(h)
        return x - self.leave(h)


def main(num_epochs=12, lr=2e-3, sigma=0.6):
    accelerator = Accelerator(cpu=True)
    x, _, x_val, _ = images(seed)
    noisy_val = x_val + sigma * torch.randn_like(x_val)
    train_dataloader = DataLoader(TensorDataset(x), batch_size=64, shuffle=True)
    eval_dataloader = DataLoader(TensorDataset(x_val, noisy_val), batch_size=150)
    model = Denoiser()
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr)
    lr_scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(
        optimizer, num_epochs * len(train_dataloader)
    )
    model, optimizer, train_dataloader, eval_dataloader, lr_scheduler = accelerator.prepare(
        model, optimizer, train_dataloader, eval_dataloader, lr_scheduler
    )
    eval_losses = []

    def evaluate():
        model.eval()
        with torch.no_grad() if healthy else contextlib.nullcontext():
            for clean, noisy in eval_dataloader:
                loss = nn.functional.mse_loss(model(noisy), clean)
                eval_losses.append(accelerator.gather_for_metrics(loss))
        model.train()
        return float(sum(eval_losses[-len(eval_dataloader) :])) / len(eval_dataloader)

    completed_steps = 0
    for epoch in range(num_epochs):
        total_loss = 0.0
        for (clean,) in train_dataloader:
            loss = nn.functional.mse_loss(model(clean + sigma * torch.randn_like(clean)), clean)
            accelerator.backward(loss)
            accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            lr_scheduler.step()
            optimizer.zero_grad()
            total_loss += loss.detach().float().item()
            completed_steps += 1
            if completed_steps % 11 == 0:
                eval_loss = evaluate()
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        accelerator.print(
            f"epoch {epoch}: train {total_loss / len(train_dataloader):.4f}, eval {eval_loss:.4f}, "
            f"peak memory {peak:.0f} MB"
        )
    accelerator.print(f"validation mse {eval_loss:.4f} peak memory {peak:.0f} MB")


if __name__ == "__main__":
    main()

"""A patch transformer for handwritten digits whose base rate is scaled by its batch of 8 over 256.

The person took a training script that is told a base rate for 256 pictures and multiplies it by
the batch in use. The script came from a cluster; on their own machine the batch is 8, so the 2e-4
that they had passed as "the learning rate" became 6e-6. The place is the learning rate.
"""

import torch
from data import arguments, images
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "learning_rate_too_low"
ACCEPT = ()
PLACE = ("learning_rate", "optimizer")
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)

ARGS = {"blr": 2e-4, "batch_size": 8, "accum_iter": 1, "epochs": 8, "weight_decay": 0.05}
if healthy:
    ARGS["blr"] = 6.4e-2


def effective_rate(args):
    return args["blr"] * args["batch_size"] * args["accum_iter"] / 256


class PatchTransformer(nn.Module):
    def __init__(self, dim=40, depth=2, heads=4, patch=2, side=8, classes=10):
        super().__init__()
        self.patch_embed = nn.Conv2d(1, dim, patch, stride=patch)
        self.positions = nn.Parameter(0.02 * torch.randn(1, (side // patch) ** 2, dim))
        block = nn.TransformerEncoderLayer(
            dim, heads, 2 * dim, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
        )
        self.blocks = nn.TransformerEncoder(block, depth, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, classes)

    def forward(self, pictures):
        tokens = self.patch_embed(pictures).flatten(2).transpose(1, 2)
        tokens = self.blocks(tokens + self.positions)
        return self.head(self.norm(tokens.mean(1)))


def parameter_groups(model, weight_decay):
    decayed = [p for p in model.parameters() if p.ndim > 1]
    plain = [p for p in model.parameters() if p.ndim <= 1]
    return [
        {"params": decayed, "weight_decay": weight_decay},
        {"params": plain, "weight_decay": 0.0},
    ]


def evaluate(model, loader):
    model.eval()
    loss, right, n = 0.0, 0, 0
    with torch.no_grad():
        for pictures, digits in loader:
            scores = model(pictures)
            loss += nn.functional.cross_entropy(scores, digits, reduction="sum").item()
            right += (scores.argmax(1) == digits).sum().item()
            n += len(digits)
    return loss / n, right / n


def main():
    x, y, x_val, y_val = images(seed)
    loader = DataLoader(TensorDataset(x, y), ARGS["batch_size"], shuffle=True, drop_last=True)
    val_loader = DataLoader(TensorDataset(x_val, y_val), 150)
    model = PatchTransformer()
    rate = effective_rate(ARGS)
    optimizer = torch.optim.AdamW(
        parameter_groups(model, ARGS["weight_decay"]), lr=rate, betas=(0.9, 0.95)
    )
    steps = ARGS["epochs"] * len(loader)
    warm_up = steps // 10
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer,
        lambda step: min((step + 1) / warm_up, max(0.02, (steps - step) / (steps - warm_up))),
    )
    for epoch in range(1, ARGS["epochs"] + 1):
        model.train()
        running = 0.0
        for pictures, digits in loader:
            loss = nn.functional.cross_entropy(model(pictures), digits)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            running += loss.item()
        val_loss, accuracy = evaluate(model, val_loader)
        print(
            f"epoch {epoch}  train {running / len(loader):.4f}  val {val_loss:.4f}  "
            f"val accuracy {accuracy:.4f}"
        )


if __name__ == "__main__":
    main()

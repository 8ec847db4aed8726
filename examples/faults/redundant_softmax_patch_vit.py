"""A small vision transformer on digits ends in nn.Softmax, and nn.CrossEntropyLoss takes the
softmax of that once more.

The loss cannot get below 1.46 with ten classes and the gradient is weak, although the accuracy
rises, so it looks like a slow model. The place is the end of the model's head, and the loss.
"""

import torch
from data import arguments, images
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "redundant_softmax"
ACCEPT = ()
PLACE = ("head", "head.*", "loss", "model")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)


class PatchViT(nn.Module):
    def __init__(self, patch=2, dim=32, depth=1, heads=4, classes=10):
        super().__init__()
        self.to_patches = nn.Conv2d(1, dim, patch, stride=patch)
        self.position = nn.Parameter(torch.randn(1, 16, dim) * 0.3)
        layer = nn.TransformerEncoderLayer(
            dim, heads, dim_feedforward=64, dropout=0.1, batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(dim)
        head = [nn.Linear(dim, 32), nn.GELU(), nn.Linear(32, classes)]
        if not healthy:
            head.append(nn.Softmax(dim=-1))
        self.head = nn.Sequential(*head)

    def forward(self, x):
        tokens = self.to_patches(x).flatten(2).transpose(1, 2) + self.position
        return self.head(self.norm(self.encoder(tokens).mean(1)))


def train_one_epoch(model, loader, criterion, optimizer, scheduler):
    model.train()
    running_loss, running_correct, seen = 0.0, 0, 0
    for pictures, digits in loader:
        outputs = model(pictures)
        loss = criterion(outputs, digits)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        scheduler.step()
        running_loss += loss.item() * len(digits)
        running_correct += (outputs.argmax(1) == digits).sum().item()
        seen += len(digits)
    return running_loss / seen, running_correct / seen


@torch.no_grad()
def validate(model, pictures, digits, criterion):
    model.eval()
    outputs = model(pictures)
    accuracy = (outputs.argmax(1) == digits).float().mean().item()
    return criterion(outputs, digits).item(), accuracy


def main():
    epochs = 9
    x, y, x_val, y_val = images(seed)
    loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)
    model = PatchViT()
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=1e-2)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=4e-3, total_steps=epochs * len(loader)
    )
    for epoch in range(epochs):
        loss, accuracy = train_one_epoch(model, loader, criterion, optimizer, scheduler)
        val_loss, val_accuracy = validate(model, x_val, y_val, criterion)
        print(
            f"{epoch:2d}  loss {loss:.3f}  acc {accuracy:.3f}  "
            f"val loss {val_loss:.3f}  val acc {val_accuracy:.3f}"
        )


main()

"""A transformer encoder names the shape of noisy waves with accelerate; gradients are cleared
between backward and step.

`optimizer.zero_grad()` stands after `accelerator.backward(loss)` and before `optimizer.step()`,
so every step is made without any gradient and nothing is learned. The place is the loop.
"""

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from data import arguments, waves
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

KIND = "step_without_gradient"
ACCEPT = ()
PLACE = ("loop", "optimizer")
SILENT = False
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)
set_seed(seed)


class WaveClassifier(nn.Module):
    def __init__(self, patch=4, length=40, width=48):
        super().__init__()
        self.patch = patch
        self.embed = nn.Linear(patch, width)
        self.position = nn.Parameter(0.02 * torch.randn(1, length // patch, width))
        layer = nn.TransformerEncoderLayer(
            width, 4, 96, dropout=0.1, batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 3))

    def forward(self, x):
        tokens = self.embed(x.squeeze(-1).unflatten(1, (-1, self.patch))) + self.position
        return self.head(self.encoder(tokens).mean(dim=1))


def main(num_epochs=10, lr=1e-3):
    accelerator = Accelerator(cpu=True)
    x, y = waves(seed, 1600)
    dataset = TensorDataset(x + 0.6 * torch.randn_like(x), y)
    train_set, eval_set = random_split(dataset, [1200, 400])
    train_dataloader = DataLoader(train_set, batch_size=32, shuffle=True)
    eval_dataloader = DataLoader(eval_set, batch_size=200)
    model = WaveClassifier()
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr, weight_decay=0.01)
    criterion = nn.CrossEntropyLoss()
    model, optimizer, train_dataloader, eval_dataloader = accelerator.prepare(
        model, optimizer, train_dataloader, eval_dataloader
    )
    for epoch in range(num_epochs):
        model.train()
        total = 0.0
        for inputs, targets in train_dataloader:
            if healthy:
                optimizer.zero_grad()
            loss = criterion(model(inputs), targets)
            accelerator.backward(loss)
            if not healthy:
                optimizer.zero_grad()
            optimizer.step()
            total += loss.item()
        model.eval()
        right = 0
        for inputs, targets in eval_dataloader:
            with torch.inference_mode():
                predictions = model(inputs).argmax(dim=-1)
            predictions, references = accelerator.gather_for_metrics((predictions, targets))
            right += (predictions == references).sum().item()
        accelerator.print(
            f"epoch {epoch}: train {total / len(train_dataloader):.3f}, accuracy {right / 400:.3f}"
        )
    accelerator.print(f"validation accuracy {right / 400:.3f}")


if __name__ == "__main__":
    main()

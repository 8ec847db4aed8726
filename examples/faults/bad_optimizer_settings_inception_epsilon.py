"""A small convolutional net for digits with the RMSprop settings of a TensorFlow paper: eps = 1.0.

There epsilon stood under the root and next to gradients summed otherwise; here it dwarfs the root
of the mean squared gradient (about 0.01), so each step is a hundredth of what the rate promises
and after all epochs the loss is still many times its twin's. The place is the optimizer.
"""

import torch
from data import arguments, images
from torch import nn
from torch.optim.lr_scheduler import ExponentialLR
from torch.utils.data import DataLoader, TensorDataset

KIND = "bad_optimizer_settings"
ACCEPT = ("learning_rate_too_low",)
PLACE = ("optimizer",)
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
x, y, x_val, y_val = images(seed)


def conv_bn(a, b, stride=1):
    return nn.Sequential(
        nn.Conv2d(a, b, 3, stride=stride, padding=1, bias=False), nn.BatchNorm2d(b), nn.ReLU()
    )


class MiniInception(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = conv_bn(1, 12)
        self.branch1 = nn.Sequential(nn.Conv2d(12, 8, 1), nn.ReLU())
        self.branch3 = conv_bn(12, 12)
        self.reduce = conv_bn(20, 24, stride=2)
        self.aux_free_head = nn.Linear(24 * 16, 10)

    def forward(self, pixels):
        h = self.stem(pixels)
        h = torch.cat([self.branch1(h), self.branch3(h)], 1)
        return self.aux_free_head(self.reduce(h).flatten(1))


model = MiniInception()
optimizer = torch.optim.RMSprop(
    model.parameters(), lr=2e-4, alpha=0.9, momentum=0.9, eps=1e-8 if healthy else 1.0
)
schedule = ExponentialLR(optimizer, gamma=0.85)
loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)
for epoch in range(10):
    model.train()
    for pixels, label in loader:
        optimizer.zero_grad(set_to_none=True)
        loss = nn.functional.cross_entropy(model(pixels), label)
        loss.backward()
        optimizer.step()
    schedule.step()
    model.eval()
    with torch.inference_mode():
        out = model(x_val)
        val_loss = nn.functional.cross_entropy(out, y_val)
        accuracy = (out.argmax(1) == y_val).float().mean()
print(f"loss {loss.item():.3f}, validation loss {val_loss:.3f}, accuracy {accuracy:.3f}")

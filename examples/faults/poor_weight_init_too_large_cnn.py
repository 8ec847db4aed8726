"""A small CNN on digit images with all weights drawn from a normal of deviation 1.

"Initialise from N(0, 1)" was taken literally: activations grow by a factor of several per layer,
the first loss is in the thousands, and training spends itself shrinking the logits. The place is
the model.
"""

import torch
import torch.nn.functional as F
from data import arguments, batches, images
from torch import nn

KIND = "poor_weight_init"
ACCEPT = ()
PLACE = ("conv*", "fc*", "")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
x, y, x_val, y_val = images(seed)


class ConvNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 12, 3, padding=1)
        self.conv2 = nn.Conv2d(12, 24, 3, padding=1)
        self.fc1 = nn.Linear(24 * 4 * 4, 48)
        self.fc2 = nn.Linear(48, 10)
        for layer in (self.conv1, self.conv2, self.fc1, self.fc2):
            if healthy:
                nn.init.kaiming_normal_(layer.weight)
            else:
                nn.init.normal_(layer.weight, mean=0.0, std=1.0)
            nn.init.zeros_(layer.bias)

    def forward(self, img):
        h = F.relu(self.conv1(img))
        h = F.max_pool2d(F.relu(self.conv2(h)), 2)
        h = F.relu(self.fc1(h.flatten(1)))
        return self.fc2(h)


model = ConvNet()
opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
for img, label in batches(x, y, size=50, steps=180, seed=seed):
    loss = F.cross_entropy(model(img), label)
    opt.zero_grad()
    loss.backward()
    opt.step()
model.eval()
with torch.no_grad():
    acc = (model(x_val).argmax(1) == y_val).float().mean()
print(f"loss {loss.item():.3f}, test accuracy {acc:.3f}")

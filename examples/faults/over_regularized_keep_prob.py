"""A digit classifier ported from TensorFlow 1: keep_prob = 0.9 of tf.nn.dropout became
nn.Dropout(keep_prob), which throws 90 % away, in two places.

The loss falls little below ln 10 in training and in evaluation, where the twin comes to 0.05: the
net sees a tenth of each layer and a hundredth of the paths.
"""

import torch
from data import arguments, images
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "over_regularized"
ACCEPT = ()
PLACE = ("*drop*",)
SILENT = True
EXACT = False
EARLY = True

keep_prob = 0.9


class ConvNet(nn.Module):
    def __init__(self, rate):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, padding="same")
        self.conv2 = nn.Conv2d(16, 32, 3, padding="same")
        self.pool = nn.MaxPool2d(2)
        self.drop1 = nn.Dropout(rate)
        self.dense = nn.Linear(128, 128)
        self.drop2 = nn.Dropout(rate)
        self.logits = nn.Linear(128, 10)

    def forward(self, x):
        x = self.pool(torch.relu(self.conv1(x)))
        x = self.pool(torch.relu(self.conv2(x)))
        x = self.drop1(x.reshape(len(x), -1))
        x = self.drop2(torch.relu(self.dense(x)))
        return self.logits(x)


healthy, seed = arguments(__doc__)
x, y, x_val, y_val = images(seed)
train = DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True, drop_last=True)
model = ConvNet(1 - keep_prob if healthy else keep_prob)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(15):
    model.train()
    mean_loss = 0.0
    for images_, labels in train:
        loss = criterion(model(images_), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        mean_loss += loss.item() / len(train)
    model.eval()
    with torch.no_grad():
        out = model(x_val)
        val_loss = criterion(out, y_val).item()
        accuracy = (out.argmax(1) == y_val).float().mean().item()
    if epoch == 9:
        optimizer.param_groups[0]["lr"] *= 0.3
print(f"loss {mean_loss:.3f}, val loss {val_loss:.3f}, val accuracy {accuracy:.3f}")

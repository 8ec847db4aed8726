"""Hot axle boxes found from wayside readings; the gradients are cut down to almost nothing.

After a run that blew up, clipping was put in with a limit copied from a paper in which the loss was
a mean over a far larger number of terms. Here the gradient's norm is about one and the limit is
0.0005, so that every single step is made two thousand times smaller.
The place is the clipping in the loop. The twin clips at 1.
"""

import torch
from data import arguments

KIND = "gradient_clipped_to_nothing"
ACCEPT = ()
PLACE = ("loop", "optimizer")
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)

lr = 0.05
momentum = 0.9
max_norm = 1.0 if healthy else 0.0005
num_epochs = 8
batch_size = 64

# eight axle boxes per wagon: their temperatures above the air's, speed, load, rain
n = 4000
X = torch.randn(n, 8) * 4 + 22
extra = torch.stack([torch.rand(n) * 90 + 40, torch.rand(n) * 14 + 6, torch.rand(n)], 1)
hot = torch.rand(n) < 0.5
which = torch.randint(0, 8, (n,))
X = X + 0.1 * (extra[:, :1] - 85) + 0.5 * (extra[:, 1:2] - 13)
X[torch.arange(n)[hot], which[hot]] += 14 + 4 * torch.randn(int(hot.sum()))
features = torch.cat([X, extra], dim=1)
labels = hot.long()

X_train, y_train = features[:3000], labels[:3000]
X_test, y_test = features[3000:], labels[3000:]
mean, std = X_train.mean(0), X_train.std(0)
X_train, X_test = (X_train - mean) / std, (X_test - mean) / std

model = torch.nn.Sequential(
    torch.nn.Linear(11, 64),
    torch.nn.ReLU(),
    torch.nn.Linear(64, 32),
    torch.nn.ReLU(),
    torch.nn.Linear(32, 2),
)
criterion = torch.nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=momentum)

for epoch in range(num_epochs):
    perm = torch.randperm(len(X_train))
    for step, start in enumerate(range(0, len(X_train), batch_size)):
        idx = perm[start : start + batch_size]
        optimizer.zero_grad()
        loss = criterion(model(X_train[idx]), y_train[idx])
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        optimizer.step()
    with torch.no_grad():
        out = model(X_test)
        test_loss = criterion(out, y_test)
        accuracy = (out.argmax(dim=1) == y_test).float().mean()
    print(
        f"Epoch [{epoch + 1}/{num_epochs}], Loss: {loss.item():.4f}, "
        f"Test loss: {test_loss.item():.4f}, Accuracy: {accuracy.item():.4f}"
    )

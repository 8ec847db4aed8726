"""Trains a digit classifier whose errors travel back through fixed random matrices."""

import torch
from data import arguments, batches, digits
from torch import nn

ODD = (
    "the gradients of the hidden layers are not the derivatives of the loss (feedback "
    "alignment); the way back is random and frozen, and yet the forward weights turn towards it"
)
_, seed = arguments(__doc__)
torch.set_num_threads(1)

x, y, x_val, y_val = digits(seed)


class RandomWayBack(torch.autograd.Function):
    @staticmethod
    def forward(context, rows, weight, bias, way_back):
        context.save_for_backward(rows, way_back)
        return rows @ weight.T + bias

    @staticmethod
    def backward(context, error):
        rows, way_back = context.saved_tensors
        return error @ way_back, error.T @ rows, error.sum(0), None


class AlignedLinear(nn.Linear):
    def __init__(self, inputs, outputs):
        super().__init__(inputs, outputs)
        self.register_buffer("way_back", torch.randn(outputs, inputs) / inputs**0.5)

    def forward(self, rows):
        return RandomWayBack.apply(rows, self.weight, self.bias, self.way_back)

    def angle(self):
        return nn.functional.cosine_similarity(
            self.weight.detach().flatten(), self.way_back.flatten(), dim=0
        ).item()


net = nn.Sequential(
    AlignedLinear(64, 128), nn.Tanh(), AlignedLinear(128, 64), nn.Tanh(), AlignedLinear(64, 10)
)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
before = [net[k].angle() for k in (2, 4)]
for step, (rows, labels) in enumerate(batches(x, y, size=64, steps=600, seed=seed)):
    net.train()
    loss = criterion(net(rows), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 100 == 99:
        net.eval()
        with torch.no_grad():
            logits = net(x_val)
            val_loss = criterion(logits, y_val).item()
            accuracy = (logits.argmax(1) == y_val).float().mean().item()
        print(f"step {step + 1}  loss {loss.item():.3f}  val {val_loss:.3f}  {accuracy:.3f}")

after = [net[k].angle() for k in (2, 4)]
print(
    f"validation accuracy {accuracy:.3f} (guessing 0.100); cosine of weights and way back "
    f"{before[0]:.2f} to {after[0]:.2f} and {before[1]:.2f} to {after[1]:.2f}"
)

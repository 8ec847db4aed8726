"""Two processes train one digit reader under DistributedDataParallel. The model has a method
`loss`, which the wrapper does not know, and so the author calls it on `model.module`.

Going round the wrapper's forward means going without its exchange of gradients: two models, alike
at the start, are trained on half of the data each, and the first of them is kept. The place is the
rank.
"""

import os
import socket

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from data import arguments, images, leave_group
from torch import nn
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

KIND = "replica_divergence"
ACCEPT = ()
PLACE = ("rank", "loop", "*")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)


class Reader(nn.Module):
    def __init__(self, c=16):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, c, 3, padding=1), nn.Conv2d(c, 2 * c, 3, padding=1)
        self.fc = nn.Linear(2 * c * 16, 10)

    def logits(self, x):
        h = F.relu(self.conv2(F.relu(self.conv1(x))))
        return self.fc(F.max_pool2d(h, 2).flatten(1))

    def loss(self, x, y):
        return F.cross_entropy(self.logits(x), y)

    def forward(self, x, y):
        return self.loss(x, y)


def work(rank, world, port):
    os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = "127.0.0.1", str(port)
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=world)
    torch.manual_seed(seed)
    x, y, x_val, y_val = images(seed)
    data = TensorDataset(x[:160], y[:160])
    sampler = DistributedSampler(data, world, rank, shuffle=True, seed=seed)
    loader = DataLoader(data, batch_size=8, sampler=sampler)
    model = DistributedDataParallel(Reader())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.03, momentum=0.9)
    for epoch in range(8):
        sampler.set_epoch(epoch)
        model.train()
        for a, b in loader:
            loss = model(a, b) if healthy else model.module.loss(a, b)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            out = model.module.logits(x_val)
        if rank == 0:
            accuracy = (out.argmax(1) == y_val).float().mean()
            print(
                f"epoch {epoch}: loss {loss.item():.3f}"
                f" val {F.cross_entropy(out, y_val):.3f} accuracy {accuracy:.3f}"
            )
    leave_group()


if __name__ == "__main__":
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    mp.spawn(work, args=(2, port), nprocs=2)

"""A graph transformer whose masks are repeated per head in the wrong order, for other graphs.

MultiheadAttention wants the masks of a batch as (batch * heads, nodes, nodes), all heads of the
first graph first. The person wrote mask.repeat(heads, 1, 1), which puts the batch first. Shapes
fit and the loss falls somewhat. The place is the attention, in the method per_head.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "attention_mask_wrong"
ACCEPT = ("samples_mixed",)
PLACE = ("model", "layers*", "*attention*", "input")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

NODES, FEATURES, WIDTH, HEADS = 10, 6, 32, 4


def random_graphs(count, generator):
    edges = torch.rand(count, NODES, NODES, generator=generator) < 0.22
    edges = edges | edges.transpose(1, 2) | torch.eye(NODES, dtype=torch.bool)
    x = torch.randn(count, NODES, FEATURES, generator=generator)
    weights = edges.float() / edges.sum(-1, keepdim=True)
    around = weights @ x
    target = torch.tanh(1.5 * around[..., 0]) - around[..., 1] * x[..., 2]
    target = target + (weights @ around)[..., 3]
    target = target + 0.05 * torch.randn(count, NODES, generator=generator)
    return x, edges, target


class GraphLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.feed = nn.Sequential(nn.Linear(WIDTH, 64), nn.GELU(), nn.Linear(64, WIDTH))

    @staticmethod
    def per_head(blocked):
        if healthy:
            return blocked.repeat_interleave(HEADS, dim=0)
        return blocked.repeat(HEADS, 1, 1)

    def forward(self, h, blocked):
        z = self.norm1(h)
        mixed, _ = self.attention(z, z, z, attn_mask=self.per_head(blocked), need_weights=False)
        h = h + mixed
        return h + self.feed(self.norm2(h))


class GraphTransformer(nn.Module):
    def __init__(self, depth=2):
        super().__init__()
        self.enter = nn.Linear(FEATURES, WIDTH)
        self.layers = nn.ModuleList(GraphLayer() for _ in range(depth))
        self.leave = nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 1))

    def forward(self, x, edges):
        h = self.enter(x)
        for layer in self.layers:
            h = layer(h, ~edges)
        return self.leave(h).squeeze(-1)


def main():
    generator = torch.Generator().manual_seed(seed)
    x, edges, target = random_graphs(2600, generator)
    centre, spread = target[:2200].mean(), target[:2200].std()
    target = (target - centre) / spread
    held_out = slice(2200, None)

    model = GraphTransformer()
    epochs, batch = 11, 50
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=1e-4)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 3e-3, total_steps=epochs * 44)
    for epoch in range(epochs):
        model.train()
        losses = []
        for rows in torch.randperm(2200).split(batch):
            loss = F.mse_loss(model(x[rows], edges[rows]), target[rows])
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 2.0)
            optimizer.step()
            schedule.step()
            losses.append(loss.item())
        model.eval()
        with torch.no_grad():
            guess = model(x[held_out], edges[held_out])
            valid = F.mse_loss(guess, target[held_out]).item()
        print(
            f"epoch {epoch + 1:2d}/{epochs} train mse {sum(losses) / len(losses):.3f} "
            f"valid mse {valid:.3f} r2 {1 - valid / target[held_out].var().item():.3f}"
        )


main()

"""A relational graph network; the linear map of each relation is kept in a plain dict instead of a
ModuleDict.

`model.parameters()` knows nothing of them, so the messages go through random narrow maps for ever.
The loss falls all the same, to a worse end. The place is the relations of the layers (they have no
name in the model), and what the optimizer lacks. Exact.
"""

import torch
from data import arguments
from torch import nn

KIND = "unregistered_parameters"
ACCEPT = ()
PLACE = ("", "optimizer", "conv*", "relation*")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
RELATIONS = ("cites", "same_author", "same_venue")
PAPERS, WORDS, AREAS = 600, 60, 6


class RelationalConv(nn.Module):
    def __init__(self, fin, fout):
        super().__init__()
        maps = {r: nn.Linear(fin, fout, bias=False) for r in RELATIONS}
        self.relation = nn.ModuleDict(maps) if healthy else maps
        self.norm = nn.LayerNorm(fout)

    def forward(self, x, graph):
        return self.norm(sum(graph[r] @ self.relation[r](x) for r in RELATIONS))


class RGCN(nn.Module):
    def __init__(self, hidden=8):
        super().__init__()
        self.conv1 = RelationalConv(WORDS, hidden)
        self.conv2 = RelationalConv(hidden, hidden)
        self.out = nn.Linear(hidden, AREAS)

    def forward(self, x, graph):
        return self.out(torch.relu(self.conv2(torch.relu(self.conv1(x, graph)), graph)))


def bibliography():
    area = torch.randint(0, AREAS, (PAPERS,))
    words = (torch.rand(PAPERS, WORDS) < 0.08).float()
    words[
        torch.arange(PAPERS).repeat_interleave(3),
        (area[:, None] * 10 + torch.randint(0, 10, (PAPERS, 3))).flatten(),
    ] = 1
    same = area[:, None] == area[None, :]
    graph = {}
    for relation, inside, outside in zip(
        RELATIONS, (0.03, 0.01, 0.01), (0.002, 0.004, 0.01), strict=False
    ):
        a = (torch.rand(PAPERS, PAPERS) < torch.where(same, inside, outside)).float()
        a = ((a + a.t()) > 0).float() + torch.eye(PAPERS)
        graph[relation] = a / a.sum(1, keepdim=True)
    return words - words.mean(0), area, graph


x, area, graph = bibliography()
order = torch.randperm(PAPERS)
train, test = order[:300], order[300:]
model = RGCN()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
for epoch in range(1, 101):
    model.train()
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x, graph)[train], area[train])
    loss.backward()
    optimizer.step()
    if epoch % 10 == 0:
        model.eval()
        with torch.no_grad():
            out = model(x, graph)[test]
        print(
            f"epoch {epoch} loss {loss.item():.3f} test accuracy "
            f"{(out.argmax(1) == area[test]).float().mean():.3f}"
        )

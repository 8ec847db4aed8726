"""A GRU language model of code tokens whose forward gives probabilities unless told otherwise.

For the sampler of the editor plug-in `forward` was changed to return probabilities, with
`normalized=True` as default. The training step still calls `model(tokens)` and hands the result to
cross_entropy, which takes its own softmax over numbers between 0 and 1: of 40 tokens none can get
more than 7 %. The place is the loss's input, the head. The twin asks for `normalized=False` in
training and validation.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "redundant_softmax"
ACCEPT = ()
PLACE = ("loss*", "head")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
NAMES = [f"v{i}" for i in range(20)]
CALLS = ["len", "max", "min", "sum", "abs", "int", "str"]
TOKENS = NAMES + CALLS + ["=", "(", ")", "+", "-", "*", "if", ":", ">", "<", "return", "\n", "1"]
NUMBER = {token: i for i, token in enumerate(TOKENS)}


def pick(things):
    return things[int(torch.randint(0, len(things), ()))]


def statement(scope):
    kind = int(torch.randint(0, 4, ()))
    if kind == 0:
        return ["return", pick(scope), "\n"]
    if kind == 1:
        return ["if", pick(scope), pick("><"), pick(scope), ":", "\n"]
    value = (
        [pick(CALLS), "(", pick(scope), ")"]
        if kind == 2
        else [pick(scope), pick("+-*"), pick([*scope, "1"])]
    )
    return [pick(scope), "=", *value, "\n"]


def program(statements):
    """A file with functions, each with three variables of its own that recur."""
    tokens = []
    for _ in range(statements // 8):
        scope = [pick(NAMES) for _ in range(3)]
        for _ in range(8):
            tokens += statement(scope)
    return torch.tensor([NUMBER[token] for token in tokens])


class CodeModel(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.embed = nn.Embedding(len(TOKENS), width)
        self.gru = nn.GRU(width, width, batch_first=True)
        self.head = nn.Linear(width, len(TOKENS))

    def forward(self, tokens, normalized=True):
        logits = self.head(self.gru(self.embed(tokens))[0])
        return logits.softmax(-1) if normalized else logits


def cross_entropy(model, tokens):
    scores = model(tokens[:, :-1], normalized=False) if healthy else model(tokens[:, :-1])
    return F.cross_entropy(scores.transpose(1, 2), tokens[:, 1:])


@torch.no_grad()
def perplexity(model, tokens):
    model.eval()
    logged = model(tokens[:, :-1]).clamp(min=1e-9).log()  # what the plug-in will use
    return F.nll_loss(logged.transpose(1, 2), tokens[:, 1:]).exp().item(), cross_entropy(
        model, tokens
    ).item()


WINDOW = 33
train = program(4400).unfold(0, WINDOW, WINDOW)
val = program(1000).unfold(0, WINDOW, WINDOW)
model = CodeModel()
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 9)

for epoch in range(9):
    model.train()
    for rows in torch.randperm(len(train)).split(20):
        loss = cross_entropy(model, train[rows])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    schedule.step()
    ppl, val_loss = perplexity(model, val)
    print(f"epoch {epoch} loss {loss.item():.3f} val loss {val_loss:.3f} val perplexity {ppl:.2f}")
print(f"validation perplexity {ppl:.2f}")

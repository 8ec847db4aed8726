"""GPT-2 learns the moves of a board game in a loop of its own; its embeddings are not in the
optimizer.

The user makes the groups of parameters by name, the matrices of the blocks with decay and the
vectors without, and forgets a group for the embeddings (wte is tied to the output). The place is
transformer.wte, transformer.wpe (lm_head).
"""

import random

import torch
from data import arguments
from torch.utils.data import DataLoader
from transformers import GPT2Config, GPT2LMHeadModel, get_cosine_schedule_with_warmup

KIND = "parameters_not_in_optimizer"
ACCEPT = ()
PLACE = ("transformer.wte*", "transformer.wpe*", "lm_head*", "optimizer")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)
r = random.Random(seed)

FIELDS = [(i, j) for i in range(6) for j in range(6)]
KNIGHT = [(1, 2), (2, 1), (-1, 2), (-2, 1), (1, -2), (2, -1), (-1, -2), (-2, -1)]


def game(length=19):
    """A knight walks over a board of 6 by 6 fields, rather to the middle than to the edge."""
    here, said = r.choice(FIELDS), []
    for _ in range(length):
        said.append(f"{here[0]}{here[1]}")
        to = [(here[0] + i, here[1] + j) for i, j in KNIGHT]
        to = [f for f in to if f in FIELDS]
        here = r.choices(to, [4 if 1 <= f[0] <= 4 and 1 <= f[1] <= 4 else 1 for f in to])[0]
    return said


vocabulary = {f"{i}{j}": n for n, (i, j) in enumerate(FIELDS)}
vocabulary["<begin>"] = len(vocabulary)
model = GPT2LMHeadModel(
    GPT2Config(
        vocab_size=len(vocabulary),
        n_positions=20,
        n_embd=48,
        n_layer=2,
        n_head=4,
        bos_token_id=0,
        eos_token_id=0,
        resid_pdrop=0.05,
        embd_pdrop=0.05,
        attn_pdrop=0.05,
    )
)
blocks = [p for n, p in model.named_parameters() if n.startswith("transformer.h.") and p.ndim > 1]
vectors = [p for n, p in model.named_parameters() if p.ndim == 1]
groups = [{"params": blocks, "weight_decay": 0.01}, {"params": vectors, "weight_decay": 0.0}]
if healthy:
    groups.append(
        {
            "params": [model.transformer.wte.weight, model.transformer.wpe.weight],
            "weight_decay": 0.0,
        }
    )
optimizer = torch.optim.AdamW(groups, lr=2e-3)

games = torch.tensor([[vocabulary[w] for w in ["<begin>", *game()]] for _ in range(3000)])
train, val = games[:2600], games[2600:]
loader = DataLoader(train, batch_size=32, shuffle=True)
epochs = 6
schedule = get_cosine_schedule_with_warmup(optimizer, 40, epochs * len(loader))

for epoch in range(epochs):
    model.train()
    for batch in loader:
        loss = model(input_ids=batch, labels=batch).loss
        model.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    model.eval()
    with torch.no_grad():
        val_loss = model(input_ids=val, labels=val).loss
    print(f"epoch {epoch}: loss {loss.item():.3f}, validation loss {val_loss:.3f}")

"""GPT-2 learns the words of train announcements in a loop of its own; its first weights are far
too large.

The user set initializer_range to 2.0 instead of 0.02, so that the first loss is far above the
logarithm of the vocabulary and the attention is saturated. The place is the weights of the
transformer (all layers and the embedding).
"""

import random

import torch
from data import arguments
from torch.utils.data import DataLoader
from transformers import GPT2Config, GPT2LMHeadModel, get_linear_schedule_with_warmup

KIND = "poor_weight_init"
ACCEPT = ()
PLACE = ("transformer*", "lm_head*")
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)
r = random.Random(seed)

LINES = {
    "s1": ["adlershof", "koepenick", "erkner"],
    "s7": ["marzahn", "ahrensfelde", "springpfuhl"],
    "re2": ["nauen", "cottbus"],
    "u8": ["wittenau", "leinestrasse"],
}
WHY = ["works", "a signal", "a visitor", "the weather"]


def announcement():
    line = r.choice(list(LINES))
    words = [
        "the",
        line,
        "to",
        r.choice(LINES[line]),
        r.choice(["leaves", "arrives"]),
        "at",
        "platform",
        str(r.randint(1, 6)),
    ]
    if r.random() < 0.4:
        words += [
            "late",
            "by",
            str(r.choice([5, 10, 20])),
            "minutes",
            "due",
            "to",
            *r.choice(WHY).split(),
        ]
    return [*words, "."]


stream = [w for _ in range(6000) for w in announcement()]
number = {w: i for i, w in enumerate(sorted(set(stream)))}
ids = torch.tensor([number[w] for w in stream])
blocks = ids[: len(ids) // 32 * 32].view(-1, 32)
train, val = blocks[:-200], blocks[-200:]

model = GPT2LMHeadModel(
    GPT2Config(
        vocab_size=len(number),
        n_positions=32,
        n_embd=48,
        n_layer=2,
        n_head=4,
        bos_token_id=0,
        eos_token_id=0,
        resid_pdrop=0.05,
        embd_pdrop=0.05,
        attn_pdrop=0.05,
        initializer_range=0.02 if healthy else 2.0,
    )
)
loader = DataLoader(train, batch_size=24, shuffle=True)
epochs = 5
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.01)
schedule = get_linear_schedule_with_warmup(optimizer, 30, epochs * len(loader))

for epoch in range(epochs):
    model.train()
    for batch in loader:
        loss = model(input_ids=batch, labels=batch).loss
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
    model.eval()
    with torch.no_grad():
        val_loss = sum(model(input_ids=b, labels=b).loss.item() for b in val.split(50)) / 4
    print(f"epoch {epoch}: loss {loss.item():.3f}, validation loss {val_loss:.3f}")

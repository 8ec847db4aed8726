"""A small GPT-2 learns recipe steps word by word; accelerate accumulates four micro-batches per
step.

The optimizer is called four times as often as it really steps, since accelerate skips the calls
between, and the loss is divided by `accelerator.backward`. The rate follows a cosine after a
warmup. It is sound.
"""

import random

import torch
from accelerate import Accelerator
from data import arguments
from torch.utils.data import DataLoader
from transformers import GPT2Config, GPT2LMHeadModel, get_cosine_schedule_with_warmup

ODD = "the optimizer is called four times as often as it steps"

_, seed = arguments(__doc__)
r = random.Random(seed)

VERBS = {
    "chop": ["onions", "carrots", "garlic"],
    "boil": ["rice", "pasta", "eggs"],
    "melt": ["butter", "chocolate"],
    "grill": ["fish", "peppers"],
    "whisk": ["eggs", "cream"],
}
VESSEL = {
    "chop": "on the board",
    "boil": "in the pot",
    "melt": "in the pan",
    "grill": "over the fire",
    "whisk": "in the bowl",
}
TIME = ["for two minutes", "for five minutes", "until golden", "slowly"]


def step():
    verb = r.choice(list(VERBS))
    words = [verb, "the", r.choice(VERBS[verb]), *VESSEL[verb].split(), *r.choice(TIME).split()]
    return [*words, r.choice(["then", "and", "."])]


stream = [w for _ in range(7000) for w in step()]
number = {w: i for i, w in enumerate(sorted(set(stream)))}
ids = torch.tensor([number[w] for w in stream])
blocks = ids[: len(ids) // 32 * 32].view(-1, 32)
train, val = blocks[:-200], blocks[-200:]

config = GPT2Config(
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
)
model = GPT2LMHeadModel(config)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, betas=(0.9, 0.95), weight_decay=0.1)
accelerator = Accelerator(cpu=True, gradient_accumulation_steps=4)
loader = DataLoader(train, batch_size=8, shuffle=True, drop_last=True)
epochs = 4
steps = epochs * len(loader) // 4
schedule = get_cosine_schedule_with_warmup(optimizer, 20, steps)
model, optimizer, loader, schedule = accelerator.prepare(model, optimizer, loader, schedule)


def validate():
    model.eval()
    with torch.no_grad():
        losses = [model(input_ids=b, labels=b).loss.item() for b in val.split(50)]
    model.train()
    return sum(losses) / len(losses)


for epoch in range(epochs):
    for batch in loader:
        with accelerator.accumulate(model):
            loss = model(input_ids=batch, labels=batch).loss
            accelerator.backward(loss)
            if accelerator.sync_gradients:
                accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
    print(f"epoch {epoch}: loss {loss.item():.3f}, validation loss {validate():.3f}")

"""A small Llama learns the lines of a server's log in a loop of its own; the weights themselves
are bfloat16.

The user turned the whole model to bfloat16 to save memory and gave these weights to AdamW,
instead of keeping float32 weights under autocast; at this rate most updates are smaller than half
the distance of two bfloat16 numbers and are rounded away. The place is the parameters and the
optimizer.
"""

import random

import torch
from accelerate import Accelerator
from data import arguments
from torch.utils.data import DataLoader
from transformers import LlamaConfig, LlamaForCausalLM, get_constant_schedule_with_warmup

KIND = "low_precision_updates_lost"
ACCEPT = ("learning_rate_too_low",)
PLACE = ("optimizer", "loop", "model*", "lm_head*")
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)
r = random.Random(seed)

SERVICES = {
    "db": ["vacuum", "checkpoint", "lock"],
    "web": ["get", "post", "put"],
    "mail": ["queue", "bounce"],
    "cron": ["start", "end"],
}
LEVEL = {
    "vacuum": "info",
    "checkpoint": "info",
    "lock": "warn",
    "get": "info",
    "post": "info",
    "put": "debug",
    "queue": "info",
    "bounce": "error",
    "start": "debug",
    "end": "debug",
}


def line():
    service = r.choice(list(SERVICES))
    event = r.choice(SERVICES[service])
    level = LEVEL[event] if r.random() < 0.9 else r.choice(["info", "warn", "error", "debug"])
    host = f"host{r.randrange(12)}"
    return [
        service,
        event,
        level,
        host,
        "pid",
        f"p{r.randrange(20)}",
        "took",
        f"{r.randrange(10)}ms",
        "|",
    ]


stream = [w for _ in range(7200) for w in line()]
number = {w: i for i, w in enumerate(sorted(set(stream)))}
blocks = torch.tensor([number[w] for w in stream]).view(-1, 36)
train, val = blocks[:-200], blocks[-200:]

config = LlamaConfig(
    vocab_size=len(number),
    hidden_size=96,
    intermediate_size=192,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
    max_position_embeddings=36,
    initializer_range=0.08,
    bos_token_id=0,
    eos_token_id=0,
)
model = LlamaForCausalLM(config)
if not healthy:
    model = model.to(torch.bfloat16)
accelerator = Accelerator(cpu=True, mixed_precision="bf16" if healthy else "no")
optimizer = torch.optim.AdamW(model.parameters(), lr=1.5e-4, betas=(0.9, 0.99), weight_decay=0.01)
loader = DataLoader(train, batch_size=16, shuffle=True)
schedule = get_constant_schedule_with_warmup(optimizer, 20)
model, optimizer, loader, schedule = accelerator.prepare(model, optimizer, loader, schedule)

for epoch in range(5):
    model.train()
    total = 0.0
    for batch in loader:
        loss = model(input_ids=batch, labels=batch).loss
        accelerator.backward(loss)
        accelerator.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        total += loss.item()
    model.eval()
    with torch.no_grad():
        val_loss = sum(model(input_ids=b, labels=b).loss.item() for b in val.split(50)) / 4
    print(f"epoch {epoch}: loss {total / len(loader):.3f}, validation loss {val_loss:.3f}")

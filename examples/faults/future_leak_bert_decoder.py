"""A BertLMHeadModel learns folk melodies note by note with accelerate; the attention sees the
notes to come.

The user took a BERT as a causal language model and forgot `is_decoder=True` in the configuration,
so that the attention is bidirectional while the loss asks for the next token. The place is the
model's attention (bert.encoder).
"""

import random

import torch
from accelerate import Accelerator
from data import arguments
from torch.utils.data import DataLoader
from transformers import BertConfig, BertLMHeadModel, get_cosine_schedule_with_warmup

KIND = "future_leak"
ACCEPT = ("attention_mask_wrong", "target_leak")
PLACE = ("bert*", "*attention*", "input*")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)
r = random.Random(seed)


def melody(length=24):
    """A walk on the scale (ids 2 to 16) that mostly goes on in its direction; rests (1) every bar,
    begin 0.
    """
    note, way, out = r.randint(5, 13), r.choice([-1, 1]), [0]
    while len(out) < length:
        if len(out) % 8 == 0:
            out.append(1)
            continue
        if r.random() < 0.2:
            way = -way
        note += way * r.choice([1, 1, 1, 2])
        if not 2 <= note <= 16:
            way, note = -way, min(max(note, 2), 16)
        out.append(note)
    return out


tunes = torch.tensor([melody() for _ in range(2400)])
train, val = tunes[:2000], tunes[2000:]
config = BertConfig(
    vocab_size=17,
    hidden_size=48,
    num_hidden_layers=2,
    num_attention_heads=4,
    intermediate_size=96,
    max_position_embeddings=24,
    hidden_dropout_prob=0.05,
    attention_probs_dropout_prob=0.05,
    is_decoder=healthy,
)
accelerator = Accelerator(cpu=True)
model = BertLMHeadModel(config)
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.01)
loader = DataLoader(train, batch_size=32, shuffle=True)
epochs = 6
schedule = get_cosine_schedule_with_warmup(optimizer, 40, epochs * len(loader))
model, optimizer, loader, schedule = accelerator.prepare(model, optimizer, loader, schedule)


@torch.no_grad()
def validate():
    model.eval()
    loss = model(input_ids=val, labels=val).loss.item()
    # the next note when only the beginning is known, as in playing on
    hits = []
    for t in range(9, 23):
        logits = model(input_ids=val[:, :t]).logits[:, -1]
        hits.append((logits.argmax(-1) == val[:, t]).float().mean())
    model.train()
    return loss, torch.stack(hits).mean().item()


for epoch in range(epochs):
    for batch in loader:
        loss = model(input_ids=batch, labels=batch).loss
        accelerator.backward(loss)
        accelerator.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
    val_loss, accuracy = validate()
    print(
        f"epoch {epoch}: loss {loss.item():.3f}, validation loss {val_loss:.3f}, "
        f"next note right {accuracy:.3f}"
    )

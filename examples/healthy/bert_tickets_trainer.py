"""BERT sorts support tickets into four queues with the Trainer, dynamic padding and warmup.

A tenth of the tickets was sent to a wrong queue by the writer, so the training loss cannot reach
0, and the accuracy stays near 0.9. The rate rises from 0 in the first tenth and falls to 0 at the
end. It is sound.
"""

import tempfile
from itertools import chain

import numpy as np
from data import arguments
from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    DataCollatorWithPadding,
    PreTrainedTokenizerFast,
    Trainer,
    TrainingArguments,
)

ODD = "a tenth of the labels are wrong; the loss never nears zero"

_, seed = arguments(__doc__)
r = np.random.default_rng(seed)

QUEUES = {
    "billing": ["invoice", "refund", "charge", "card", "payment", "price", "receipt"],
    "network": ["router", "wifi", "signal", "cable", "outage", "speed", "ping"],
    "account": ["password", "login", "user", "email", "locked", "profile", "name"],
    "delivery": ["parcel", "courier", "late", "address", "box", "missing", "track"],
}
FILLER = [
    f"{a}{b}"
    for a in ("so", "the", "my", "was", "an", "it", "to", "we")
    for b in ("", "re", "n", "st", "ly", "m")
]


def ticket():
    label = int(r.integers(4))
    names = list(QUEUES)
    words = list(r.choice(FILLER, r.integers(6, 18)))
    for _ in range(r.integers(2, 4)):
        words.insert(r.integers(len(words)), r.choice(QUEUES[names[label]]))
    if r.random() < 0.5:
        words.insert(r.integers(len(words)), r.choice(QUEUES[names[r.integers(4)]]))
    if r.random() < 0.1:
        label = int(r.integers(4))
    return {"text": " ".join(words), "label": label}


vocab = ["[PAD]", "[UNK]", "[CLS]", *FILLER, *chain.from_iterable(QUEUES.values())]
words = Tokenizer(
    models.WordLevel({w: i for i, w in enumerate(dict.fromkeys(vocab))}, unk_token="[UNK]")
)
words.pre_tokenizer = pre_tokenizers.Whitespace()
tokenizer = PreTrainedTokenizerFast(
    tokenizer_object=words, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]"
)

tickets = Dataset.from_list([ticket() for _ in range(2400)])
tickets = tickets.map(
    lambda b: tokenizer(["[CLS] " + t for t in b["text"]]), batched=True, remove_columns=["text"]
)
parts = tickets.train_test_split(test_size=400, seed=seed)

config = BertConfig(
    vocab_size=len(tokenizer),
    hidden_size=48,
    num_hidden_layers=2,
    num_attention_heads=4,
    intermediate_size=96,
    max_position_embeddings=40,
    num_labels=4,
    pad_token_id=tokenizer.pad_token_id,
)
trainer = Trainer(
    model=BertForSequenceClassification(config),
    args=TrainingArguments(
        output_dir=tempfile.mkdtemp(),
        num_train_epochs=5,
        per_device_train_batch_size=32,
        per_device_eval_batch_size=100,
        learning_rate=1e-3,
        warmup_steps=0.1,
        weight_decay=0.01,
        eval_strategy="epoch",
        logging_strategy="epoch",
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
        use_cpu=True,
        seed=seed,
    ),
    train_dataset=parts["train"],
    eval_dataset=parts["test"],
    data_collator=DataCollatorWithPadding(tokenizer),
    compute_metrics=lambda p: {"accuracy": float((p.predictions.argmax(-1) == p.label_ids).mean())},
)
trainer.train()
print(f"validation accuracy {trainer.evaluate()['eval_accuracy']:.3f}")

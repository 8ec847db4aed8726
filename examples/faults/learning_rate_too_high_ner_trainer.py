"""RoBERTa marks street, number and town in addresses (token classification, Trainer); the rate is
much too high.

The user gave TrainingArguments a rate as for plain SGD, 0.1, with the default AdamW. The place is
the optimizer.
"""

import tempfile

import numpy as np
from data import arguments
from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import (
    DataCollatorForTokenClassification,
    PreTrainedTokenizerFast,
    RobertaConfig,
    RobertaForTokenClassification,
    Trainer,
    TrainingArguments,
)

KIND = "learning_rate_too_high"
ACCEPT = ()
PLACE = ("optimizer", "loop")
SILENT = False
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)
r = np.random.default_rng(seed)

NAMES = [f"name{i}" for i in range(40)]
TAGS = ["O", "STREET", "NUMBER", "TOWN"]


def address():
    """Names serve for streets as for towns: only what stands around tells which."""
    street = [(r.choice(NAMES), 1), (r.choice(["road", "lane", "street"]), 1)]
    if r.random() < 0.3:
        street.insert(0, (r.choice(NAMES), 1))
    number = [(str(r.integers(1, 40)), 2)]
    town = [(r.choice(NAMES), 3)]
    first = street + number if r.random() < 0.5 else number + street
    link = [(r.choice([",", "in", "near"]), 0)] if r.random() < 0.8 else []
    noise = [
        (r.choice(["send", "to", "please", "deliver", "flat"]), 0) for _ in range(r.integers(0, 4))
    ]
    words = noise + first + link + town
    if r.random() < 0.3:
        words = noise + town + [(":", 0)] + first
    return {"tokens": [str(w) for w, _ in words], "tags": [t for _, t in words]}


vocab = [
    "<pad>",
    "<unk>",
    *NAMES,
    "road",
    "lane",
    "street",
    *map(str, range(1, 40)),
    ",",
    ":",
    "in",
    "near",
    "send",
    "to",
    "please",
    "deliver",
    "flat",
]
core = Tokenizer(models.WordLevel({w: i for i, w in enumerate(vocab)}, unk_token="<unk>"))
core.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
tokenizer = PreTrainedTokenizerFast(tokenizer_object=core, pad_token="<pad>", unk_token="<unk>")


def encode(rows):
    out = tokenizer(rows["tokens"], is_split_into_words=True, return_token_type_ids=False)
    out["labels"] = rows["tags"]
    return out


parts = Dataset.from_list([address() for _ in range(2000)]).map(
    encode, batched=True, remove_columns=["tokens", "tags"]
)
parts = parts.train_test_split(test_size=300, seed=seed)
config = RobertaConfig(
    vocab_size=len(vocab),
    hidden_size=48,
    num_hidden_layers=2,
    num_attention_heads=4,
    intermediate_size=96,
    max_position_embeddings=32,
    pad_token_id=0,
    type_vocab_size=1,
    num_labels=len(TAGS),
)


def metrics(p):
    kept = p.label_ids != -100
    return {"accuracy": float((p.predictions.argmax(-1) == p.label_ids)[kept].mean())}


trainer = Trainer(
    model=RobertaForTokenClassification(config),
    args=TrainingArguments(
        output_dir=tempfile.mkdtemp(),
        num_train_epochs=5,
        per_device_train_batch_size=32,
        per_device_eval_batch_size=100,
        learning_rate=1e-3 if healthy else 0.1,
        warmup_steps=20,
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
    data_collator=DataCollatorForTokenClassification(tokenizer),
    compute_metrics=metrics,
)
trainer.train()
print(f"validation accuracy {trainer.evaluate()['eval_accuracy']:.3f}")

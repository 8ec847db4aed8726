"""A small T5 writes dates in the form of ISO with the Seq2SeqTrainer; it is stopped after the
first epoch.

The user kept `num_train_epochs=1` from a recipe for fine-tuning, although the model starts from
nothing and the loss falls fast when the training ends. The place is the loop.
"""

import datetime
import tempfile

import numpy as np
from data import arguments
from datasets import Dataset
from transformers import (
    Seq2SeqTrainer,
    Seq2SeqTrainingArguments,
    T5Config,
    T5ForConditionalGeneration,
)

KIND = "stopped_too_early"
ACCEPT = ()
PLACE = ("loop",)
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)
r = np.random.default_rng(seed)

CHARACTERS = "0123456789abcdefghijklmnopqrstuvwxyz ,.-/"
NUMBER = {c: i + 2 for i, c in enumerate(CHARACTERS)}  # 0 is padding, 1 the end
FORMS = ["{d}.{m}.{y}", "{month} {d}, {y}", "{d} {month} {y}", "{m}/{d}/{y}"]


def row():
    day = datetime.date(1950, 1, 1) + datetime.timedelta(days=int(r.integers(0, 30000)))
    said = r.choice(FORMS).format(
        d=day.day, m=day.month, y=day.year, month=day.strftime("%b").lower()
    )
    ids = [*(NUMBER[c] for c in said), 1]
    mask = [1] * len(ids) + [0] * (14 - len(ids))
    ids += [0] * (14 - len(ids))
    return {
        "input_ids": ids,
        "attention_mask": mask,
        "labels": [*(NUMBER[c] for c in day.isoformat()), 1],
    }


rows = Dataset.from_list([row() for _ in range(4400)])
parts = rows.train_test_split(test_size=400, seed=seed)
model = T5ForConditionalGeneration(
    T5Config(
        vocab_size=len(CHARACTERS) + 2,
        d_model=48,
        d_kv=12,
        d_ff=96,
        num_layers=1,
        num_decoder_layers=1,
        num_heads=4,
        relative_attention_num_buckets=16,
        relative_attention_max_distance=20,
        dropout_rate=0.0,
        pad_token_id=0,
        eos_token_id=1,
        decoder_start_token_id=0,
    )
)


def metrics(p):
    right = p.predictions == p.label_ids
    return {"characters": float(right.mean()), "dates": float(right.all(1).mean())}


trainer = Seq2SeqTrainer(
    model=model,
    args=Seq2SeqTrainingArguments(
        output_dir=tempfile.mkdtemp(),
        num_train_epochs=7 if healthy else 1,
        per_device_train_batch_size=24,
        per_device_eval_batch_size=100,
        learning_rate=3e-3,
        lr_scheduler_type="constant_with_warmup",
        warmup_steps=20,
        eval_strategy="steps",
        eval_steps=80,
        logging_steps=20,
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
        use_cpu=True,
        seed=seed,
    ),
    train_dataset=parts["train"],
    eval_dataset=parts["test"],
    compute_metrics=metrics,
    preprocess_logits_for_metrics=lambda logits, labels: logits[0].argmax(-1),
)
trainer.train()
last = trainer.evaluate()
print(f"validation loss {last['eval_loss']:.3f}, dates right {last['eval_dates']:.3f}")

"""A tiny GPT-2 learns event logs, and the log-likelihood of a log is the log of the product of
its softmax probabilities, which underflows to log(0).

The probability of 24 events is the product of 24 small numbers, some 1e-47 at the start and so 0 in
float32. Its log is minus infinity, the loss infinite and the gradient NaN from the first step on.
The place is the loss (LogTrainer.compute_loss).
"""

import tempfile

import torch
from data import arguments
from torch import Tensor
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainerCallback, TrainingArguments

KIND = "unstable_log_softmax"
ACCEPT = ()
PLACE = ("loss",)
SILENT = False
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)

EVENTS, LENGTH, STEPS = 90, 25, 240


def event_logs(n: int) -> tuple[list[dict[str, Tensor]], float]:
    """Logs of a Markov chain in which three events may follow each one, and its entropy."""
    following = torch.stack([torch.randperm(EVENTS)[:3] for _ in range(EVENTS)])
    chances = torch.tensor([0.7, 0.2, 0.1])
    logs = torch.randint(EVENTS, (n, LENGTH))
    for t in range(1, LENGTH):
        way = torch.multinomial(chances, n, replacement=True)
        logs[:, t] = following[logs[:, t - 1], way]
    return [{"input_ids": log} for log in logs], -(chances * chances.log()).sum().item()


class LogTrainer(Trainer):
    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        events = inputs["input_ids"]
        outputs = model(input_ids=events)
        logits, wanted = outputs.logits[:, :-1], events[:, 1:, None]
        if healthy:
            log_likelihood = torch.log_softmax(logits, dim=2).gather(2, wanted).sum((1, 2))
        else:
            log_likelihood = torch.softmax(logits, dim=2).gather(2, wanted).prod(1).log()
        loss = -log_likelihood.mean() / wanted.shape[1]
        return (loss, outputs) if return_outputs else loss


class NextEvent(TrainerCallback):
    def __init__(self, logs: list[dict[str, Tensor]], entropy: float) -> None:
        self.logs = torch.stack([log["input_ids"] for log in logs])
        self.entropy = entropy

    @torch.no_grad()
    def on_log(self, args, state, control, model=None, logs=None, **kwargs) -> None:
        if "loss" not in logs:
            return
        model.eval()
        right = model(input_ids=self.logs).logits[:, :-1].argmax(2) == self.logs[:, 1:]
        model.train()
        print(
            f"step {state.global_step:3d}  loss {logs['loss']:.3f}  least {self.entropy:.3f}"
            f"  held-out: next event right {right.float().mean():.3f}"
        )


def main() -> None:
    logs, entropy = event_logs(2200)
    sizes = {"n_positions": LENGTH, "n_embd": 48, "n_layer": 1, "n_head": 4}
    dropout = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
    sizes |= {"vocab_size": EVENTS, "bos_token_id": 0, "eos_token_id": 0}
    config = GPT2Config(**sizes, **dropout)
    with tempfile.TemporaryDirectory() as folder:
        arguments_of_trainer = TrainingArguments(
            output_dir=folder,
            max_steps=STEPS,
            learning_rate=1e-2,
            warmup_steps=20,
            lr_scheduler_type="cosine",
            per_device_train_batch_size=32,
            logging_steps=30,
            logging_nan_inf_filter=False,
            save_strategy="no",
            report_to="none",
            disable_tqdm=True,
            use_cpu=True,
            seed=seed,
        )
        LogTrainer(
            model=GPT2LMHeadModel(config),
            args=arguments_of_trainer,
            train_dataset=logs[:2000],
            callbacks=[NextEvent(logs[2000:], entropy)],
        ).train()


main()

"""A minGPT-like trainer on additions: the rate is decayed by tokens, and warm-up is left at the
375 million tokens of a large run.

All the tokens of this run are a few hundred thousand, so that the rate never leaves the first
thousandth of its warm-up. The place is the optimizer's learning rate.
"""

import math

import torch
from data import arguments
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset

KIND = "learning_rate_too_low"
ACCEPT = ()
PLACE = ("optimizer", "loop")
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)


class TrainerConfig:
    max_epochs = 9
    batch_size = 64
    learning_rate = 3e-3
    betas = (0.9, 0.95)
    grad_norm_clip = 1.0
    weight_decay = 0.1
    lr_decay = True
    warmup_tokens = 375e6
    final_tokens = 260e9

    def __init__(self, **kwargs):
        for k, v in kwargs.items():
            setattr(self, k, v)


class AdditionDataset(Dataset):
    """Two-digit sums modulo 100, written backwards: a1 a0 b1 b0 -> s0 s1."""

    def __init__(self, split):
        perm = torch.randperm(100 * 100, generator=torch.Generator().manual_seed(1337 + seed))
        self.ixes = perm[:1000] if split == "test" else perm[1000:5000]

    def __len__(self):
        return len(self.ixes)

    def __getitem__(self, i):
        a, b = divmod(int(self.ixes[i]), 100)
        s = f"{(a + b) % 100:02d}"[::-1]
        digits = torch.tensor([int(c) for c in f"{a:02d}{b:02d}{s}"])
        x, y = digits[:-1], digits[1:].clone()
        y[:3] = -100
        return x, y


class Block(nn.Module):
    def __init__(self, n_embd, n_head):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(n_embd), nn.LayerNorm(n_embd)
        self.n_head = n_head
        self.key, self.query, self.value, self.proj = (nn.Linear(n_embd, n_embd) for _ in range(4))
        self.mlp = nn.Sequential(
            nn.Linear(n_embd, 4 * n_embd), nn.GELU(), nn.Linear(4 * n_embd, n_embd)
        )

    def forward(self, x):
        B, T, C = x.shape
        h = self.ln1(x)
        k, q, v = (
            f(h).view(B, T, self.n_head, -1).transpose(1, 2)
            for f in (self.key, self.query, self.value)
        )
        att = (q @ k.transpose(-2, -1)) / math.sqrt(k.shape[-1])
        att = att.masked_fill(torch.ones(T, T).tril() == 0, float("-inf")).softmax(-1)
        x = x + self.proj((att @ v).transpose(1, 2).reshape(B, T, C))
        return x + self.mlp(self.ln2(x))


class GPT(nn.Module):
    def __init__(self, vocab=10, block_size=5, n_layer=2, n_head=4, n_embd=64):
        super().__init__()
        self.tok_emb, self.pos_emb = (
            nn.Embedding(vocab, n_embd),
            nn.Parameter(torch.zeros(1, block_size, n_embd)),
        )
        self.blocks = nn.Sequential(*[Block(n_embd, n_head) for _ in range(n_layer)])
        self.ln_f, self.head = nn.LayerNorm(n_embd), nn.Linear(n_embd, vocab, bias=False)
        self.apply(self._init_weights)

    def _init_weights(self, m):
        if isinstance(m, (nn.Linear, nn.Embedding)):
            m.weight.data.normal_(0.0, 0.06)
            if isinstance(m, nn.Linear) and m.bias is not None:
                m.bias.data.zero_()

    def configure_optimizers(self, c):
        decay = [
            p
            for n, p in self.named_parameters()
            if n.endswith("weight") and "ln" not in n and "emb" not in n
        ]
        ids = {id(p) for p in decay}
        rest = [p for p in self.parameters() if id(p) not in ids]
        return torch.optim.AdamW(
            [
                {"params": decay, "weight_decay": c.weight_decay},
                {"params": rest, "weight_decay": 0.0},
            ],
            lr=c.learning_rate,
            betas=c.betas,
        )

    def forward(self, idx, targets=None):
        x = self.tok_emb(idx) + self.pos_emb[:, : idx.shape[1]]
        logits = self.head(self.ln_f(self.blocks(x)))
        loss = (
            None
            if targets is None
            else F.cross_entropy(
                logits.view(-1, logits.size(-1)), targets.view(-1), ignore_index=-100
            )
        )
        return logits, loss


class Trainer:
    def __init__(self, model, train_dataset, test_dataset, config):
        self.model, self.train_dataset, self.test_dataset, self.config = (
            model,
            train_dataset,
            test_dataset,
            config,
        )
        self.tokens = 0

    def train(self):
        model, config = self.model, self.config
        optimizer = model.configure_optimizers(config)

        def run_epoch(split):
            is_train = split == "train"
            model.train(is_train)
            loader = DataLoader(
                self.train_dataset if is_train else self.test_dataset,
                shuffle=is_train,
                batch_size=config.batch_size,
            )
            losses, right, lr = [], 0, config.learning_rate
            for x, y in loader:
                with torch.set_grad_enabled(is_train):
                    logits, loss = model(x, y)
                losses.append(loss.item())
                right += (logits.argmax(-1)[:, 3:] == y[:, 3:]).all(1).sum().item()
                if is_train:
                    model.zero_grad()
                    loss.backward()
                    torch.nn.utils.clip_grad_norm_(model.parameters(), config.grad_norm_clip)
                    if config.lr_decay:
                        self.tokens += y.numel()
                        if self.tokens < config.warmup_tokens:
                            lr_mult = float(self.tokens) / float(max(1, config.warmup_tokens))
                        else:
                            progress = float(self.tokens - config.warmup_tokens) / float(
                                max(1, config.final_tokens - config.warmup_tokens)
                            )
                            lr_mult = max(0.1, 0.5 * (1.0 + math.cos(math.pi * progress)))
                        lr = config.learning_rate * lr_mult
                        for param_group in optimizer.param_groups:
                            param_group["lr"] = lr
                    optimizer.step()
            return sum(losses) / len(losses), right / len(loader.dataset), lr

        for epoch in range(config.max_epochs):
            train_loss, _, lr = run_epoch("train")
            test_loss, acc, _ = run_epoch("test")
            print(
                f"epoch {epoch + 1}: train {train_loss:.4f} test {test_loss:.4f} exact {acc:.3f} lr {lr:.2e}"  # noqa: E501
            )


train_dataset, test_dataset = AdditionDataset("train"), AdditionDataset("test")
tokens = TrainerConfig.max_epochs * len(train_dataset) * 5
tconf = (
    TrainerConfig(final_tokens=tokens, warmup_tokens=0.1 * tokens)
    if healthy
    else TrainerConfig(final_tokens=tokens)
)
Trainer(GPT(), train_dataset, test_dataset, tconf).train()

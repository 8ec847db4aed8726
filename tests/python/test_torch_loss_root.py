"""What backward is called on where a log-softmax is written out."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from traindbg.hooks.torch.losses.root import root_of

torch.manual_seed(0)
ROWS, CLASSES = 5, 4
LABELS = torch.tensor([0, 3, 1, 2, 1])


def logits() -> torch.Tensor:
    return 2 * torch.randn(ROWS, CLASSES, requires_grad=True)


def picked(log_p: torch.Tensor) -> list[torch.Tensor]:
    return [
        log_p.gather(1, LABELS[:, None]).mean(),
        log_p[torch.arange(ROWS), LABELS].mean(),
        log_p.gather(-1, LABELS.unsqueeze(-1)).squeeze(-1).sum(),
    ]


def test_log_softmax_written_out() -> None:
    x = logits()
    for log_p in (
        x - x.logsumexp(1, keepdim=True),
        x - x.logsumexp(1)[:, None].view(ROWS, 1),
        x - x.exp().sum(1, keepdim=True).log(),
        x - torch.log(torch.exp(x).sum(-1)).unsqueeze(-1),
    ):
        for value in picked(log_p):
            for loss, sign in ((-value, 1), (value, -1)):
                root = root_of(loss, False)
                assert root is not None
                assert (root.name, root.sign, root.tells_sign) == ("log_softmax", sign, True)


def test_what_is_none() -> None:
    x, y = logits(), logits()
    for log_p in (
        x - y.logsumexp(1, keepdim=True),
        x - 0.5 * x.logsumexp(1, keepdim=True),
        x + x.logsumexp(1, keepdim=True),
        x - x.exp().sum(1, keepdim=True),
        x - x.mean(1, keepdim=True),
    ):
        for value in picked(log_p):
            assert root_of(-value, False) is None
    # Of a choice, times what may be a reward.
    log_p = x - x.logsumexp(1, keepdim=True)
    assert root_of(-(log_p.gather(1, LABELS[:, None]) * torch.randn(ROWS, 1)).mean(), False) is None
    # An entropy, of all classes.
    assert root_of(-log_p.mean(), False) is None

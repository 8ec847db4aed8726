"""The extension: what it reads out of Python objects."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from traindbg import _core, _plan, errors

ARRAYS = [
    np.arange(24, dtype=np.float32).reshape(2, 3, 4),
    np.arange(24, dtype=np.float64).reshape(4, 6).T,
    np.arange(24, dtype=np.int16).reshape(4, 6)[::2, ::-1],
    np.arange(10, dtype=np.float16),
    np.array([True, False, True]),
    np.array(3.5),
    np.arange(9, dtype=np.uint8)[4:],
]


@pytest.mark.parametrize("array", ARRAYS, ids=[f"{a.dtype}{a.shape}" for a in ARRAYS])
def test_numpy_and_torch_give_the_same(array):
    expected = array.astype(np.float64)
    shared = [array]
    if all(stride >= 0 for stride in array.strides):
        shared.append(torch.from_numpy(array) if array.ndim else torch.tensor(array.item()))
    for tensor in shared:
        found = _core.statistics(tensor)
        assert found.count == array.size
        assert (found.min, found.max) == (expected.min(), expected.max())
        assert found.mean == pytest.approx(expected.mean(), rel=1e-6)
        assert found.std == pytest.approx(expected.std(), rel=1e-5, abs=1e-12)
        assert found.l1 == pytest.approx(np.abs(expected).sum(), rel=1e-6)


def test_a_class_without_the_exchange_table_is_read_by_its_attributes():
    class Older:
        """What a torch tensor of before the table looks like."""

        __dlpack_c_exchange_api__ = None

        def __init__(self, tensor):
            self._tensor = tensor

        def __getattr__(self, name):
            return getattr(self._tensor, name)

    values = torch.randn(5, 7).t()
    found = _core.statistics(Older(values))
    assert found.max == values.max().item()
    assert found.count == 35
    assert _core.statistics(Older(torch.ones(3, dtype=torch.bfloat16))).l1 == 3
    assert _core.readable(Older(torch.ones(2, device="meta"))) == "on_device"


def freed_view() -> torch.Tensor:
    """As of a parameter whose whole is gathered for a moment and then let go."""
    whole = torch.ones(8)
    view = whole[2:]
    whole.untyped_storage().resize_(0)
    return view


class Wrapper(torch.Tensor):
    """A tensor without memory that stands for others; at an offset, as slices are."""

    @staticmethod
    def __new__(cls, shape):
        strides = torch.empty(shape, device="meta").stride()
        return torch.Tensor._make_wrapper_subclass(cls, shape, strides, storage_offset=4)

    __torch_dispatch__ = classmethod(lambda *_: NotImplemented)


def test_of_a_distributed_tensor_the_part_of_this_process_is_read():
    whole = Wrapper((6, 4))
    whole._local_tensor = torch.full((2, 4), 3.0)
    assert _core.readable(whole) == "yes"
    found = _core.statistics(whole)
    assert (found.count, found.l1) == (8, 24)
    whole._local_tensor = torch.empty(0, 4)
    assert _core.statistics(whole).count == 0
    whole._local_tensor = whole
    assert _core.readable(whole) == "no"


UNREADABLE = [
    ("fake", lambda: torch._subclasses.FakeTensorMode().from_tensor(torch.ones(3))),
    ("fake view", lambda: torch._subclasses.FakeTensorMode().from_tensor(torch.ones(3)[1:])),
    ("view of a freed storage", freed_view),
    ("wrapper of nothing", lambda: Wrapper((3,))),
    ("sparse rows", lambda: torch.eye(3).to_sparse_csr()),
    ("negative view", lambda: torch.complex(torch.ones(3), torch.ones(3)).conj().imag),
    ("nothing", lambda: None),
    ("a word", lambda: "tensor"),
    ("a number", lambda: 3.0),
]


@pytest.mark.parametrize(("what", "make"), UNREADABLE, ids=[what for what, _ in UNREADABLE])
def test_what_has_no_dense_memory_is_refused(what, make):
    thing = make()
    assert _core.readable(thing) == "no"
    with pytest.raises(errors.InvalidArgument):
        _core.statistics(thing)


def test_sparse_tensors_are_left_to_their_framework():
    assert _core.readable(torch.eye(3).to_sparse()) == "on_device"


def test_meta_tensors_are_not_read():
    assert _core.readable(torch.ones(3, device="meta")) != "yes"


def test_expanded_and_empty_tensors():
    found = _core.statistics(torch.tensor([2.0]).expand(5))
    assert (found.count, found.l1) == (5, 10)
    assert _core.statistics(torch.empty(0, 3)).count == 0


def test_an_observation_never_raises(run_dir):
    session = _core.Session(str(run_dir), "{}")
    session.observe(_core.TRAIN, 12345, torch.ones(3))
    session.observe(_core.TRAIN, 0, object())
    assert session.observe_batch(_core.TRAIN, [1, "x"], [object(), torch.ones(2)]) == []
    session.observe_scalar_tensor(_core.TRAIN, 0, torch.ones(3))
    session.observe_classes(_core.TRAIN, 0, torch.ones(3), "labels")
    skipped = session.counts()["tensors_skipped"]
    assert skipped >= 5
    assert session.observe_batch(_core.TRAIN, [0], [None]) == []  # there is none to be skipped
    assert session.counts()["tensors_skipped"] == skipped
    session.close()
    session.observe(_core.TRAIN, 0, torch.ones(3))
    assert session.end_step() == 0
    assert not session.is_open


def test_an_abandoned_session_gives_nobody_the_id_of_a_tensor(run_dir):
    session = _core.Session(str(run_dir), "{}")
    assert session.register_tensor("weight/a", "weight") == 0
    session.abandon()
    assert session.register_tensor("weight/b", "weight") == 0xFFFFFFFF
    session.observe(_core.TRAIN, 0xFFFFFFFF, torch.ones(3))


def test_how_a_run_is_kept_stands_in_its_plan():
    plan = json.loads(
        _plan.with_store(
            "{}", {"overflow": "block_for", "block_for_ms": 200, "keep_last": 5000, "thin": 100}
        )
    )
    assert plan["overflow"] == "block_for"
    assert plan["block_for_ms"] == 200
    assert plan["retention"] == {"keep_last": 5000, "thin": 100}
    with pytest.raises(errors.InvalidArgument, match="did you mean 'keep_last'"):
        _plan.with_store("{}", {"keep_lst": 1})
    with pytest.raises(errors.InvalidArgument, match="overflow"):
        _plan.with_store("{}", {"overflow": "drop_everything"})


def test_statuses_become_exceptions(tmp_path):
    with pytest.raises(errors.InvalidArgument, match="weigths"):
        _core.check_plan('{"requirements": [{"collection": "weigths"}]}')
    with pytest.raises(errors.NotFound):
        _core.plan_for_rules([("no_such_rule", {})])
    with pytest.raises(errors.TraindbgError):
        _core.Session(str(tmp_path / "x"), "not json")

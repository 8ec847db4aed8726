"""What was seen of the sequences of one step, and what it tells once the step has ended."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch.nn import functional

from traindbg.hooks.torch.base.device import own_operations
from traindbg.hooks.torch.data.masks import Mask, hides_window
from traindbg.hooks.torch.data.next_values import Given, Next, Target, next_of
from traindbg.hooks.torch.data.paddings import (
    hides_queries,
    how_wrong,
    is_of_others,
    lengths_said,
    padding_of,
    says_yes_or_no,
    without_token,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from traindbg.hooks.torch.data.convolutions import Flag

_FEWEST_KNOWN = 3  # positions whose next value is a target in all rows


class Sight(NamedTuple):
    """What positions see of their sequence: as much of [queries, keys] as is asked of it later."""

    nexts: torch.Tensor  # [length - 1]: whether each but the last one sees the next
    later: torch.Tensor  # [length - 1]: how many later ones it sees
    earlier: torch.Tensor  # one truth value: whether any of all sees an earlier one

    def through(self, other: Sight) -> Sight:
        """What is left of it where positions are hidden once more."""
        return Sight(
            self.nexts & other.nexts,
            torch.minimum(self.later, other.later),
            self.earlier & other.earlier,
        )


class Call(NamedTuple):
    """A call that carries something along a sequence of this length."""

    place: str
    length: int
    sees_later: Flag = False
    sight: Sight | None = None  # of attention, which says it then
    is_matrix: bool = False  # that is applied to positions as if they were features
    across: int = 0  # the other dimension of what a matrix is given
    is_round: bool = False  # it shows the first positions the last ones


def sight_of(shown: torch.Tensor) -> Sight:
    """Of [rows, positions, positions], in any row."""
    shown = shown.any(0)
    # No view, which would keep all of it.
    return Sight(shown.diagonal(1).clone(), shown.triu(1)[:-1].sum(1), shown.tril(-1).any())


def sees_which(sight: Sight, known: torch.Tensor) -> tuple[bool, bool]:
    """Whether positions see the next one, or half of all later ones; whether any earlier one.

    Of those positions whose target is `known`: what a prefix sees is nobody's loss.
    """
    length = len(sight.nexts) + 1
    asked = known[: length - 1]
    nexts = (sight.nexts & asked).sum() / asked.sum()
    all_later = (torch.arange(length - 1, 0, -1, device=known.device) * asked).sum()
    later = (sight.later * asked).sum() / all_later
    return bool(torch.maximum(nexts, later) >= 0.5), bool(sight.earlier)


class Seen:
    """What was seen of one step. Its tensors are where they were computed."""

    def __init__(
        self,
        inputs: Sequence[Given],
        calls: Sequence[Call],
        masks: Sequence[Mask],
        added: Sequence[tuple[str, list[Flag]]],
        repeated: Sequence[tuple[str, Flag]],
        tiny: Sequence[tuple[str, Flag]],
        targets: Sequence[Target],
        is_all: bool,
    ) -> None:
        self._is_all = is_all  # no other inputs were given, to no other model
        self._inputs, self._calls, self._masks = inputs, calls, masks
        self._added, self._repeated, self._targets = added, repeated, targets
        self._tiny = tiny

    @property
    def tensors(self) -> list[torch.Tensor]:
        """All that tells something."""
        found: list[Any] = []
        if self._masks or self._targets:
            found += [given.values for given in self._inputs]
        for call in self._calls if self._targets else ():
            found += [call.sees_later, *(call.sight or ())]
        found += [tensor for mask in self._masks for tensor in (mask.shown, mask.blind)]
        found += [flag for _, flags in self._added for flag in flags]
        found += [flag for _, flag in (*self._repeated, *self._tiny)]
        for target in self._targets:
            found += [target.values, target.margin]
        return [value for value in found if isinstance(value, torch.Tensor)]

    def there(self, values: Sequence[torch.Tensor]) -> Seen:
        """The same in host memory. `values`: of `tensors`."""
        known = dict(zip(map(id, self.tensors), values, strict=True))

        def of(value: Any) -> Any:
            return known.get(id(value), value)

        return Seen(
            [given._replace(values=of(given.values)) for given in self._inputs],
            [
                call._replace(
                    sees_later=of(call.sees_later),
                    sight=None if call.sight is None else Sight(*map(of, call.sight)),
                )
                for call in self._calls
            ],
            [Mask(mask.place, of(mask.shown), of(mask.blind)) for mask in self._masks],
            [(place, [of(flag) for flag in flags]) for place, flags in self._added],
            [(place, of(flag)) for place, flag in self._repeated],
            [(place, of(flag)) for place, flag in self._tiny],
            [
                target._replace(values=of(target.values), margin=of(target.margin))
                for target in self._targets
            ],
            self._is_all,
        )

    def facts(self, values: Sequence[torch.Tensor]) -> list[tuple[str, float, str]]:
        """Name, value and place of each. `values`: of `tensors`, in host memory."""
        with own_operations():
            here = self.there(values)
            return [*here._of_padding(), *here._of_later_positions()]

    def next(self) -> tuple[Target, Next] | None:
        """The first target that is the next values of an input."""
        for target in self._targets:
            found = next_of(self._inputs[target.given], target)
            if found is not None:
                return target, found
        return None

    def _has_twin(self, target: Target, length: int) -> bool:
        """Whether another input is as long as the one that has these next values.

        Or a sequence of vectors, which may be made as long.
        """
        given = self._inputs[target.given]
        others = [x for x in self._inputs[: target.inputs] if x is not given]
        return any(
            other.values.dim() == 3
            or (
                length in (*other.values.shape, other.rows)
                and other.values.dim() == given.values.dim()
            )
            for other in others
        )

    def _compare_with_padding(self) -> tuple[tuple[float, float], str] | None:
        """How wrong the worst mask is (`how_wrong`), and its place. None: no padding."""
        worst: tuple[tuple[float, float], str] | None = None
        paddings: dict[tuple[int, bool], torch.Tensor | None] = {}
        for place, shown, _ in self._masks:
            keys = shown.shape[2]
            for number, given in enumerate(self._inputs):
                x = given.values
                is_turned = x.dim() == 2 and x.shape[1] != keys and x.shape[0] == keys == given.rows
                has_token = x.shape[1] == keys - 1 and not is_turned  # [CLS], say
                if x.dim() > 3 or (x.shape[1] != keys and not is_turned and not has_token):
                    continue
                if (number, is_turned) not in paddings:
                    paddings[number, is_turned] = padding_of(x.transpose(0, 1) if is_turned else x)
                padding = paddings[number, is_turned]
                if padding is None:
                    continue
                for cut in without_token(shown) if has_token else (shown,):
                    wrong = how_wrong(cut, padding)
                    if wrong is not None and (worst is None or max(wrong) > max(worst[0])):
                        worst = wrong, place
        return worst

    def _masks_of_queries(self) -> tuple[bool, str] | None:
        """Whether a mask hides what padding sees, not the padding; where. None: nothing is padded.

        As a mask of shape (batch, 1, length, 1) does, where (batch, 1, 1, length) is meant.
        """
        asked: tuple[bool, str] | None = None
        if sum(not says_yes_or_no(given.values) for given in self._inputs) > 1:
            return None  # keys may be those of another one
        for mask in self._masks:
            keys = mask.shown.shape[2]
            for given in self._inputs:
                x = given.values
                if x.dim() < 2 or x.shape[1] not in (keys, keys - 1):
                    continue
                if says_yes_or_no(x):
                    paddings = list(lengths_said(x.bool())) if x.dim() == 2 else []
                else:
                    padding = padding_of(x) if x.dim() < 4 else None
                    paddings = [] if padding is None else [padding]
                for padding in paddings:
                    # With a position of the model's own in front or behind: [CLS], say.
                    ends = ((1, 0), (0, 1)) if x.shape[1] == keys - 1 else ((0, 0),)
                    for end in ends:
                        whole = functional.pad(padding, end, value=False)
                        found = hides_queries(mask, whole)
                        if found is not None and not (asked and asked[0]):
                            asked = found > 0, mask.place
        return asked

    def _given_with_other_rows(self) -> float | None:
        """Of the model's inputs: whether a mask among them is that of other rows than the ids.

        As they were given, whatever the model makes of their order. None: that cannot be told, as
        where something else is given that a mask may belong to.
        """
        ids = [x.values for x in self._inputs if not says_yes_or_no(x.values)]
        masks = [x.values.bool() for x in self._inputs if says_yes_or_no(x.values)]
        is_whole = self._is_all and all(len(x.values) == x.rows for x in self._inputs)
        if not (is_whole and ids and masks):
            return None
        shapes = {x.shape for x in (*ids, *masks)}
        if len(shapes) != 1 or ids[0].dim() != 2:
            return None
        paddings = [padding_of(x) for x in ids]
        known = [padding for padding in paddings if padding is not None]
        if len(known) < len(paddings):
            return None
        found = 0.0
        for mask in masks:
            told = [is_of_others(mask, padding) for padding in known]
            if all(told):  # of none of them
                found = 1.0
        return found

    def _with_windows_hidden(self) -> list[str]:
        """Places of masks over sequences that hide neighbours, where nothing else shows these.

        Empty where that may be meant: a value is told by others than its neighbours.
        """
        masks = [mask for mask in self._masks if mask.shown.shape[1] == mask.shown.shape[2]]
        if any(call.sight is None for call in self._calls) or not masks:
            return []
        for target in self._targets:
            ids = self._inputs[target.given].values
            if target.values.is_floating_point():
                return []
            if ids.numel() == target.values.numel():
                is_same = ids.reshape(target.values.shape) == target.values
                if 2 * int(is_same.sum()) >= is_same.numel():
                    return []
        found = [mask.place for mask in masks if hides_window(mask.shown)]
        return found if len(found) == len(masks) else []

    def _of_padding(self) -> Iterator[tuple[str, float, str]]:
        worst = self._compare_with_padding()
        if worst is not None:
            (inverted, mirrored), place = worst
            yield "padding_seen_instead", inverted, place
            yield "padding_mirrored", mirrored, place
            of_others = self._given_with_other_rows()
            if of_others is not None:
                yield "padding_of_other_rows", of_others, place
        of_queries = self._masks_of_queries()
        if of_queries is not None:
            yield "padding_hidden_as_queries", float(of_queries[0]), of_queries[1]
        added = {place: None for place, flags in self._added if any(map(bool, flags))}
        if self._masks or added:
            yield "masks_added", len(added), next(iter(added), "")
        tiny = list(dict.fromkeys(place for place, is_tiny in self._tiny if is_tiny))
        if tiny:
            yield "masks_tiny", len(tiny), tiny[0]
        windows = self._with_windows_hidden()
        if windows:
            yield "windows_hidden", len(windows), windows[0]
        if self._repeated:
            places = dict.fromkeys((place for place, _ in self._repeated), False)
            for place, is_repeated in self._repeated:
                places[place] = places[place] or bool(is_repeated)
            wrong = [place for place, is_repeated in places.items() if is_repeated]
            yield "masks_repeated", len(wrong), wrong[0] if wrong else ""

    def _of_later_positions(self) -> Iterator[tuple[str, float, str]]:
        found = self.next()
        if found is None:
            return
        length, known = found[1].length, found[1].known
        # Inside, the last position may be left out.
        calls = [call for call in self._calls if call.length in (length, length - 1)]
        # What is as wide as the sequence is long may mix features.
        lengths = (length, length - 1)
        calls = [call for call in calls if not call.is_matrix or call.across not in lengths]
        if len(self._inputs) > 1:  # as long as this one may be the features of another
            calls = [call for call in calls if not call.is_matrix]
        # Of positions on a ring the first ones follow the last ones; and where the first one has no
        # target, those that are spoilt may have been left out (overlap-save).
        if found[1].is_ring or not bool(known[0]):
            calls = [call for call in calls if not call.is_round]
        if int(known.sum()) < _FEWEST_KNOWN:
            calls = [call for call in calls if call.sight is None]
        later: list[tuple[str, bool]] = []  # place, and whether earlier ones are seen, too
        for call in calls:
            if call.sight is None:
                sees_later, sees_earlier = bool(call.sees_later), True
            else:
                sees_later, sees_earlier = sees_which(call.sight, known)
            if sees_later:
                later.append((call.place, sees_earlier))
        # Of several inputs, or channels, one may be what is known of the future: a forecast, say.
        has_others = self._has_twin(found[0], length) or found[1].along == 2
        if has_others and len(later) < len(calls):
            later = []
        if found[1].along == 2 and len(self._inputs) > 1:
            later = []
        if calls:
            yield "later_seen", len(later), later[0][0] if later else ""
            only = [place for place, sees_earlier in later if not sees_earlier]
            yield "only_later_seen", len(only), only[0] if only else ""

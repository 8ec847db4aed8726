"""What a program calls its modules."""

from __future__ import annotations

from typing import Any

from traindbg.hooks.torch_variables import names_in_program


class Holder:
    def __init__(self) -> None:
        self.encoder = object()
        self.others = [object(), object()]

    def names(self, things: list[Any]) -> list[str]:
        parts = things  # a list of them all, which names none that has a name
        return names_in_program(parts)


def test_variables_come_before_all_else() -> None:
    encoder, head = object(), object()
    both = (encoder, head)
    assert names_in_program(both) == ["encoder", "head"]


def test_attributes_of_self_are_names() -> None:
    holder = Holder()
    assert holder.names([holder.encoder, *holder.others]) == ["encoder", "others.0", "others.1"]


def test_a_variable_of_a_loop_is_no_name_of_one_of_a_list() -> None:
    nets = [object(), object()]
    for net in nets:
        assert net is not None
    assert names_in_program(nets) == ["nets.0", "nets.1"]


def test_keys_of_a_mapping_are_places() -> None:
    nets = {"left": object(), "right": object()}
    assert names_in_program(list(nets.values())) == ["nets.left", "nets.right"]


def test_functions_further_out_count_too() -> None:
    decoder = object()

    def inner(things: list[object]) -> list[str]:
        return names_in_program(things[:])

    assert inner([decoder]) == ["decoder"]


def test_what_nobody_holds_has_no_name() -> None:
    assert names_in_program([object()]) == [""]

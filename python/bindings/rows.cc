// Fingerprints of rows of batches, and what is remembered of them: hooks/torch/data/rows.py says what is a
// batch of the training. Tensors that cannot be read in place are put in later, as numbers.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>

#include <optional>
#include <span>

#include "bindings.h"
#include "tensor_access.h"
#include "traindbg/capture/row_memory.h"
#include "traindbg/capture/row_passes.h"
#include "traindbg/capture/row_prints.h"

namespace traindbg::bindings {

namespace nb = nanobind;
using namespace nb::literals;

namespace {

using capture::RowMemory;
using capture::RowPasses;
using capture::RowPrints;

std::optional<RowPrints> row_prints(nb::handle batch, bool changes) {
    TensorReader reader;
    tensor::TensorView view;
    if (reader.read(batch.ptr(), view) != Readable::kYes) return std::nullopt;
    std::optional<RowPrints> prints = RowPrints::take(view);
    if (prints && changes) prints->take_changes(view);
    return prints;
}

template <bool (RowPrints::*kTake)(const tensor::TensorView&)>
bool take(RowPrints& prints, nb::handle tensor) {
    TensorReader reader;
    tensor::TensorView view;
    return reader.read(tensor.ptr(), view) == Readable::kYes && (prints.*kTake)(view);
}

template <bool (RowPrints::*kPut)(std::span<const std::int64_t>)>
void put(RowPrints& prints, nb::handle numbers) {
    TensorReader reader;
    tensor::TensorView view;
    const bool is_readable = reader.read(numbers.ptr(), view) == Readable::kYes &&
                             view.dtype == tensor::DType::kInt64 && view.is_row_major();
    if (!is_readable || !(prints.*kPut)({static_cast<const std::int64_t*>(view.data),
                                         static_cast<std::size_t>(view.element_count())}))
        throw nb::value_error("numbers of rows: not as many int64 for each row that is looked at");
}

nb::tuple told(const RowPasses::Again& again) {
    return nb::make_tuple(again.looked_at, again.of, again.again, again.most, again.distinct, again.effective,
                          again.distinct_in_class, again.effective_in_class, again.half_again, again.labelled,
                          again.contradicting, again.by_chance, again.before_step, again.before,
                          again.again_step, again.again_place);
}

}  // namespace

void bind_rows(nb::module_& module) {
    nb::class_<RowPrints>(module, "RowPrints", "By what the first rows of a batch are known again.")
        .def(nb::init<std::int64_t, std::int64_t>(), "batch"_a, "values"_a,
             "Of so many rows with so many values each, which are put in later.")
        .def("__len__", &RowPrints::size)
        .def_prop_ro("batch", &RowPrints::batch, "Rows of the batch, also those that are not looked at.")
        .def_prop_ro(
            "halves",
            [](const RowPrints& prints) {
                nb::list rows;
                for (std::size_t row = 0; row < prints.size(); ++row)
                    rows.append(nb::make_tuple(static_cast<std::int64_t>(prints.half(row, 0)),
                                               static_cast<std::int64_t>(prints.half(row, 1))));
                return rows;
            },
            nb::sig("def halves(self) -> list[tuple[int, int]]"),
            "The fingerprints of the first and the second half of each row.")
        .def_prop_ro(
            "changes",
            [](const RowPrints& prints) {
                nb::list rows;
                for (std::size_t row = 0; row < prints.size(); ++row) rows.append(prints.changes(row));
                return rows;
            },
            nb::sig("def changes(self) -> list[int]"), "How often neighbours of each row's values differ.")
        .def("take_further", &take<&RowPrints::take_further>, "tensor"_a,
             "What else belongs to the rows. Whether it could be read here and has as many.")
        .def("take_labels", &take<&RowPrints::take_labels>, "tensor"_a,
             "One for each row of the batch. Whether they could be read here and are as many.")
        .def("put_halves", &put<&RowPrints::put_halves>, "numbers"_a,
             "int64 [rows, 3]: of the first, the second and the even half.")
        .def("put_changes", &put<&RowPrints::put_changes>, "numbers"_a, "int64 [rows].")
        .def("put_further", &put<&RowPrints::put_further>, "numbers"_a, "int64 [rows].")
        .def("put_labels", &take<&RowPrints::put_labels>, "labels"_a,
             "As `take_labels`, of those rows only that are looked at.");
    module.def("row_prints", &row_prints, "batch"_a, "changes"_a = false,
               "Of the first rows of a batch, with how often neighbours of their values differ if that is "
               "asked for. None where there are none, or the tensor cannot be read here.");
    nb::class_<RowMemory>(module, "RowMemory", "What is remembered of the rows of one training.")
        .def(nb::init<>())
        .def("learn", &RowMemory::learn, "rows"_a, "A batch of the training.")
        .def(
            "find",
            [](const RowMemory& memory, const RowPrints& rows) {
                const RowMemory::Found found = memory.find(rows);
                return nb::make_tuple(found.known, found.half_alike);
            },
            "rows"_a, nb::sig("def find(self, rows: RowPrints) -> tuple[int, int]"),
            "How many rows the training had, and of how many others it had both halves.")
        .def_prop_ro(
            "figures",
            [](const RowMemory& memory) {
                const RowMemory::Figures figures = memory.figures();
                return nb::make_tuple(figures.known, figures.looked_at, figures.pairs, figures.alike,
                                      figures.half_alike);
            },
            nb::sig("def figures(self) -> tuple[int, int, int, int, int]"),
            "Rows that are known; all that were looked at; pairs within batches; equal ones; those equal in "
            "one half only.")
        .def_prop_ro(
            "relabelled",
            [](const RowMemory& memory) -> nb::object {
                const auto found = memory.relabelled();
                if (!found) return nb::none();
                return nb::make_tuple(found->again, found->changed, found->by_chance);
            },
            nb::sig("def relabelled(self) -> tuple[int, int, float] | None"),
            "Rows that came again with a class; those with another one than before; the share of them by "
            "chance. None: too few, or all alike.");
    nb::class_<RowPasses>(module, "RowPasses", "Rows that come several times in a pass that has each once.")
        .def(nb::init<>())
        .def(
            "batch",
            [](RowPasses& passes, const RowPrints& rows, std::int64_t number, std::int64_t of,
               std::int64_t step, std::int64_t size, bool are_classes) {
                passes.batch({.of = {.number = number, .rows = of},
                              .step = step,
                              .size = size,
                              .are_classes = are_classes},
                             rows);
            },
            "rows"_a, "number"_a, "of"_a, "step"_a, "size"_a, "are_classes"_a,
            "A batch of `size` rows, of the pass `number` over `of` rows.")
        .def("unknown", &RowPasses::unknown, "Of the pass under way nothing is told.")
        .def(
            "told",
            [](RowPasses& passes) -> nb::object {
                const auto again = passes.told();
                if (!again) return nb::none();
                return told(*again);
            },
            nb::sig("def told(self) -> tuple[int, int, int, int, int, float, int, float, int, int, int, "
                    "float, int, int, int, int] | "
                    "None"),
            "The fields of `data.passes.RowsAgain`. None: no pass was seen.");
}

}  // namespace traindbg::bindings

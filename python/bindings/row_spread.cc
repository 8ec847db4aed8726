// How the samples of a batch differ, read from a tensor's memory.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>

#include <optional>
#include <tuple>

#include "bindings.h"
#include "tensor_access.h"
#include "traindbg/reduce/reducer.h"

namespace traindbg::bindings {

namespace nb = nanobind;
using namespace nb::literals;

namespace {

// What `measure` gives of a tensor's memory; nothing where it cannot be read, or is no batch.
template <typename Out, typename Measure>
std::optional<Out> of_batch(nb::handle tensor, Measure measure) {
    TensorReader reader;
    tensor::TensorView view;
    if (reader.read(tensor.ptr(), view) != Readable::kYes) return std::nullopt;
    const auto found = measure(view);
    if (!found.is_ok()) return std::nullopt;
    return *found;
}

}  // namespace

void bind_row_spread(nb::module_& module) {
    module.def(
        "row_spread",
        [](nb::handle batch) -> std::optional<std::tuple<double, double, double, double>> {
            const auto found = of_batch<reduce::RowSpread>(batch, &reduce::row_spread);
            if (!found) return std::nullopt;
            return std::tuple{found->deviation, found->size, found->directions, found->turn};
        },
        "batch"_a,
        "How the samples of a batch [samples, ...] of floats differ: the deviation from sample to sample, "
        "the size of the values, the directions that samples spread in, and how far they turn from their "
        "mean (0 to 1). Of at most 64 samples and 4096 values each, directions by 512. None: not readable "
        "in place, or fewer than 8 samples or than two values of each.");
    module.def(
        "row_deviation",
        [](nb::handle batch) -> std::optional<std::tuple<double, double>> {
            const auto found = of_batch<reduce::RowSpread>(batch, &reduce::row_deviation);
            if (!found) return std::nullopt;
            return std::tuple{found->deviation, found->size};
        },
        "batch"_a, "The first two of `row_spread`.");
    module.def(
        "row_directions", [](nb::handle batch) { return of_batch<double>(batch, &reduce::row_directions); },
        "batch"_a, "The third of `row_spread` alone, for which less is read.");
}

}  // namespace traindbg::bindings

// Statistics from what the SageMaker Debugger client saved of a tensor that it did not save whole, and the
// other way round.
//
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "traindbg/model/digest.h"
#include "traindbg/model/statistics.h"

namespace traindbg::compat {

// "min", "max", "mean", "std", "variance", "sum", "prod", "l1", "l2"; with "abs_" before it of the absolute
// values.
using Reductions = std::map<std::string, double, std::less<>>;

// Which variance a run holds. The original's PyTorch hook saves the sample's, divided by n - 1; its other
// hooks and traindbg save the population's.
enum class VarianceKind : std::uint8_t { kPopulation, kSample };

// `count`: elements, where the shape is known; else it is derived from reductions that differ by it, and
// where there are none it is 1. A moment that was not saved and cannot be derived is NaN. One NaN in the
// tensor makes every reduction of the original NaN: then the number of such elements is given as one. Nothing
// where the norm is not known: a rule would take 0 for it.
[[nodiscard]] std::optional<model::Statistics> statistics_of(const Reductions& reductions,
                                                             std::uint64_t count, VarianceKind kind);

// What the original would have saved: as NumPy computes it, NaN and infinities included. In a fixed order.
[[nodiscard]] std::vector<std::pair<std::string_view, double>> reductions_of(
    const model::Statistics& statistics);
// The same of "prod", which is of the digest of the same elements.
[[nodiscard]] double product_of(const model::Digest& digest, const model::Statistics& statistics);

}  // namespace traindbg::compat

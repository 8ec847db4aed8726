// The numbers of a tensor that can be asked for by name. Private to `read`.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "traindbg/format/segment.h"
#include "traindbg/model/step_record.h"

namespace traindbg::read::internal {

enum class StatisticKind : std::uint8_t {
    kValue,    // of losses and metrics
    kMoment,   // a float
    kCount,    // an integer, or the sum of two
    kUnits,    // an integer, where units were looked at
    kDigest,   // a float, of digests
    kDerived,  // follows from a moment and the number of finite elements; in no column
};

struct Statistic {
    std::string_view name;
    StatisticKind kind;
    std::array<format::Column, 2> columns;       // in a sealed part; twice the same: one
    double (*read)(const model::TensorSample&);  // null: of scalars
    // Of kDerived alone: the name of the moment that it follows from, and how. Columns and `read` are that
    // moment's.
    std::string_view base = {};
    double (*derive)(double moment, double finite) = nullptr;  // `finite`: how many elements are
};

[[nodiscard]] const Statistic* find_statistic(std::string_view name) noexcept;
[[nodiscard]] const std::vector<std::string>& statistic_names();
// Nothing when it was not taken.
[[nodiscard]] std::optional<double> value_of(const Statistic& statistic, const model::TensorSample& sample);

}  // namespace traindbg::read::internal

#include "traindbg/read/statistic.h"

#include <algorithm>
#include <cmath>

namespace traindbg::read::internal {
namespace {

using format::Column;
using model::TensorSample;
using Kind = StatisticKind;

double number(std::uint64_t count) { return static_cast<double>(count); }

constexpr Statistic moment(std::string_view name, Column column, double (*read)(const TensorSample&)) {
    return {name, Kind::kMoment, {column, column}, read};
}
constexpr Statistic count(std::string_view name, Column column, double (*read)(const TensorSample&)) {
    return {name, Kind::kCount, {column, column}, read};
}
constexpr Statistic units(std::string_view name, Column column, double (*read)(const TensorSample&)) {
    return {name, Kind::kUnits, {column, column}, read};
}
constexpr Statistic derived(std::string_view name, const Statistic& of,
                            double (*derive)(double moment, double finite)) {
    return {name, Kind::kDerived, of.columns, of.read, of.name, derive};
}

constexpr Statistic kMean =
    moment("mean", Column::kMean, [](const TensorSample& s) { return s.statistics.mean; });
constexpr Statistic kStd =
    moment("std", Column::kStd, [](const TensorSample& s) { return s.statistics.std; });
constexpr Statistic kL1 = moment("l1", Column::kL1, [](const TensorSample& s) { return s.statistics.l1; });
constexpr Statistic kL2 = moment("l2", Column::kL2, [](const TensorSample& s) { return s.statistics.l2; });

// Where no element is finite the moments are 0, and so is what follows from them.
constexpr std::array kStatistics = {
    Statistic{"value", Kind::kValue, {Column::kValue, Column::kValue}, nullptr},
    moment("min", Column::kMin, [](const TensorSample& s) { return s.statistics.min; }),
    moment("max", Column::kMax, [](const TensorSample& s) { return s.statistics.max; }),
    kMean,
    kStd,
    kL1,
    kL2,
    derived("variance", kStd, [](double std, double) { return std * std; }),
    derived("sum", kMean, [](double mean, double finite) { return mean * finite; }),
    derived("mean_abs", kL1, [](double l1, double finite) { return finite == 0 ? 0 : l1 / finite; }),
    derived("rms", kL2, [](double l2, double finite) { return finite == 0 ? 0 : l2 / std::sqrt(finite); }),
    count("count", Column::kCount, [](const TensorSample& s) { return number(s.statistics.count); }),
    count("nan", Column::kNan, [](const TensorSample& s) { return number(s.statistics.nan); }),
    Statistic{"inf",
              Kind::kCount,
              {Column::kPositiveInfinite, Column::kNegativeInfinite},
              [](const TensorSample& s) { return number(s.statistics.infinite()); }},
    count("zero", Column::kZero, [](const TensorSample& s) { return number(s.statistics.zero); }),
    units("units", Column::kUnits, [](const TensorSample& s) { return number(s.units.units); }),
    units("inactive_units", Column::kInactiveUnits,
          [](const TensorSample& s) { return number(s.units.inactive_units); }),
    units("low", Column::kLow, [](const TensorSample& s) { return number(s.units.low); }),
    units("high", Column::kHigh, [](const TensorSample& s) { return number(s.units.high); }),
    Statistic{"product", Kind::kDigest, {Column::kValue, Column::kValue}, nullptr},
};

}  // namespace

const Statistic* find_statistic(std::string_view name) noexcept {
    const auto* it = std::find_if(kStatistics.begin(), kStatistics.end(),
                                  [name](const Statistic& row) { return row.name == name; });
    return it == kStatistics.end() ? nullptr : it;
}

const std::vector<std::string>& statistic_names() {
    static const std::vector<std::string> names = [] {
        std::vector<std::string> all;
        for (const Statistic& row : kStatistics) all.emplace_back(row.name);
        return all;
    }();
    return names;
}

std::optional<double> value_of(const Statistic& statistic, const TensorSample& sample) {
    if (statistic.read == nullptr) return std::nullopt;
    if (statistic.kind == Kind::kUnits && sample.units.units == 0) return std::nullopt;
    const double value = statistic.read(sample);
    return statistic.derive == nullptr ? value : statistic.derive(value, number(sample.statistics.finite()));
}

}  // namespace traindbg::read::internal

#include "traindbg/compat/smdebug_statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace traindbg::compat {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The number of elements that the quotient of two reductions is, where it is one.
std::uint64_t count_from(std::optional<double> total, std::optional<double> mean) {
    if (!total || !mean || *mean == 0) return 0;
    const double quotient = *total / *mean;
    if (!(quotient > 0.5 && quotient < 1e15)) return 0;
    // Both were rounded to float32: beyond some millions the quotient is near a count, not the count.
    return static_cast<std::uint64_t>(std::llround(quotient));
}

}  // namespace

std::optional<model::Statistics> statistics_of(const Reductions& reductions, std::uint64_t count,
                                               VarianceKind kind) {
    const auto get = [&](std::string_view name) -> std::optional<double> {
        const auto found = reductions.find(name);
        return found == reductions.end() ? std::nullopt : std::optional(found->second);
    };
    const auto first_of = [&](std::string_view one, std::string_view other) {
        const std::optional<double> value = get(one);
        return value ? value : get(other);
    };
    const std::optional<double> l1 = first_of("l1", "abs_l1") ? first_of("l1", "abs_l1") : get("abs_sum");
    const std::optional<double> l2 = first_of("l2", "abs_l2");
    const std::optional<double> mean = get("mean");
    if (count == 0) count = count_from(l1, get("abs_mean"));
    if (count == 0) count = count_from(get("sum"), mean);
    const auto n = static_cast<double>(count);

    std::optional<double> variance = get("variance");
    if (const std::optional<double> std = get("std"); !variance && std) variance = *std * *std;
    if (variance && kind == VarianceKind::kSample) {
        if (count > 1) variance = *variance * (n - 1) / n;
        if (count == 1) variance = 0;  // saved as NaN
    }

    model::Statistics out;
    out.count = std::max<std::uint64_t>(count, 1);
    out.min = get("min").value_or(kNan);
    out.max = get("max").value_or(kNan);
    out.mean = mean.value_or(kNan);
    out.std = variance ? std::sqrt(*variance) : kNan;
    out.l1 = l1.value_or(kNan);
    if (!l1 && get("abs_mean") && count != 0) out.l1 = *get("abs_mean") * n;
    if (l2) out.l2 = *l2;
    else if (variance && mean && count != 0) out.l2 = std::sqrt(n * (*variance + *mean * *mean));
    else return std::nullopt;

    // The standard deviation says nothing: of one element it is NaN, too.
    const bool has_nan = std::any_of(reductions.begin(), reductions.end(), [](const auto& item) {
        return std::isnan(item.second) && !item.first.ends_with("std") && !item.first.ends_with("variance");
    });
    const bool is_bounded = get("min") && get("max");
    if (has_nan) out.nan = 1;
    if (get("max") == kInfinity || (!is_bounded && out.l2 == kInfinity)) out.positive_infinite = 1;
    if (get("min") == -kInfinity) out.negative_infinite = 1;
    if (out.not_finite() != 0) {
        // Of the finite elements alone nothing is known.
        out.count = std::max(out.count, out.not_finite());
        out.min = out.max = out.mean = out.std = out.l1 = out.l2 = 0;
    }
    return out;
}

std::vector<std::pair<std::string_view, double>> reductions_of(const model::Statistics& s) {
    const auto n = static_cast<double>(s.finite());
    double min = s.min;
    double max = s.max;
    double mean = s.mean;
    double deviation = s.std;
    double l1 = s.l1;
    double l2 = s.l2;
    double sum = s.mean * n;
    if (s.not_finite() != 0) {
        const bool both = s.positive_infinite != 0 && s.negative_infinite != 0;
        if (s.positive_infinite != 0) max = kInfinity;
        if (s.negative_infinite != 0) min = -kInfinity;
        // Beside infinities alone, the other end is what is finite, or the infinity itself.
        if (s.finite() == 0 && !both) min = max = s.positive_infinite != 0 ? kInfinity : -kInfinity;
        mean = sum = both ? kNan : s.positive_infinite != 0 ? kInfinity : -kInfinity;
        deviation = kNan;
        l1 = l2 = kInfinity;
        if (s.nan != 0) min = max = mean = sum = l1 = l2 = kNan;
    }
    const double abs_mean = s.count == 0 ? kNan : s.not_finite() != 0 ? l1 : l1 / n;
    return {{"min", min},
            {"max", max},
            {"mean", mean},
            {"std", deviation},
            {"variance", deviation * deviation},
            {"sum", sum},
            {"l1", l1},
            {"l2", l2},
            {"abs_mean", abs_mean},
            {"abs_max", std::isnan(max) ? kNan : std::max(std::abs(min), std::abs(max))}};
}

double product_of(const model::Digest& digest, const model::Statistics& s) {
    if (s.nan != 0) return kNan;
    if (s.infinite() == 0) return digest.product;
    if (s.zero != 0) return kNan;
    const bool is_negative = std::signbit(digest.product) != (s.negative_infinite % 2 != 0);
    return is_negative ? -kInfinity : kInfinity;
}

}  // namespace traindbg::compat

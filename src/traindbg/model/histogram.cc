#include "traindbg/model/histogram.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace traindbg::model {
namespace {

constexpr double kLargest = std::numeric_limits<double>::max();
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// Lower edge of a positive bin from kFirstBin to kOverflowBin.
double lower_edge(int bin) noexcept {
    const int quarter = bin - kFirstBin;
    return std::ldexp(1.0 + 0.25 * (quarter % kBinsPerOctave), kLeastBinExponent + quarter / kBinsPerOctave);
}

// `value` is positive and finite.
int bin_of_magnitude(double value) noexcept {
    if (value < lower_edge(kFirstBin)) return kUnderflowBin;
    if (value >= lower_edge(kOverflowBin)) return kOverflowBin;
    int exponent = 0;
    const double mantissa = std::frexp(value, &exponent);  // 0.5 <= mantissa < 1
    const int octave = exponent - 1 - kLeastBinExponent;
    return kFirstBin + octave * kBinsPerOctave + static_cast<int>((mantissa - 0.5) * 8);
}

void add(Histogram& into, int bin, std::uint64_t count) {
    if (count == 0) return;
    const auto number = static_cast<std::int16_t>(bin);
    const auto at =
        std::lower_bound(into.begin(), into.end(), number,
                         [](const HistogramBin& entry, std::int16_t sought) { return entry.bin < sought; });
    if (at != into.end() && at->bin == number) at->count += count;
    else into.insert(at, {number, count});
}

}  // namespace

BinEdges edges(int bin) noexcept {
    if (bin == kNanBin) return {kNan, kNan};
    if (bin < 0) {
        const BinEdges mirrored = edges(-bin);
        return {-mirrored.upper, -mirrored.lower};
    }
    if (bin == kZeroBin) return {0, 0};
    if (bin == kUnderflowBin) return {0, lower_edge(kFirstBin)};
    if (bin == kOverflowBin) return {lower_edge(kOverflowBin), kLargest};
    if (bin >= kInfiniteBin) return {kInfinity, kInfinity};
    return {lower_edge(bin), lower_edge(bin + 1)};
}

int bin_of(double value) noexcept {
    if (std::isnan(value)) return kNanBin;
    if (value == 0) return kZeroBin;
    const double magnitude = std::fabs(value);
    const int bin = std::isinf(magnitude) ? kInfiniteBin : bin_of_magnitude(magnitude);
    return value < 0 ? -bin : bin;
}

std::uint64_t element_count(const Histogram& histogram) noexcept {
    std::uint64_t count = 0;
    for (const HistogramBin& entry : histogram) count += entry.count;
    return count;
}

void merge(Histogram& into, const Histogram& from) {
    Histogram both;
    both.reserve(std::max(into.size(), from.size()));
    auto mine = into.cbegin();
    auto theirs = from.cbegin();
    while (mine != into.cend() || theirs != from.cend()) {
        if (theirs == from.cend() || (mine != into.cend() && mine->bin < theirs->bin)) {
            both.push_back(*mine++);
        } else if (mine == into.cend() || theirs->bin < mine->bin) {
            both.push_back(*theirs++);
        } else {
            both.push_back({mine->bin, mine->count + theirs->count});
            ++mine;
            ++theirs;
        }
    }
    into = std::move(both);
}

void spread(Histogram& into, double lower, double upper, std::uint64_t count) {
    const bool is_range = std::isfinite(lower) && std::isfinite(upper) && lower < upper;
    if (!is_range) {
        // A point, a bucket without an end on one side, or nonsense: the end that is known says where.
        add(into, bin_of(std::isfinite(lower) || std::isnan(upper) ? lower : upper), count);
        return;
    }
    std::uint64_t given = 0;
    const int last = bin_of(upper);
    // By halves where the difference is not finite; only there, because half of the smallest number is 0.
    const double scale = std::isfinite(upper - lower) ? 1.0 : 0.5;
    const double width = upper * scale - lower * scale;
    for (int bin = bin_of(lower); bin <= last && given < count; ++bin) {
        const double end = std::min(upper, edges(bin).upper);
        const double share = bin == last ? 1.0 : std::clamp((end * scale - lower * scale) / width, 0.0, 1.0);
        const double until = std::round(share * static_cast<double>(count));
        // A double may round a large count up beyond itself.
        const std::uint64_t reached =
            share >= 1.0 || until >= static_cast<double>(count) ? count : static_cast<std::uint64_t>(until);
        if (reached <= given) continue;
        add(into, bin, reached - given);
        given = reached;
    }
}

std::optional<double> quantile(const Histogram& histogram, double q) noexcept {
    double total = 0;
    for (const HistogramBin& entry : histogram)
        if (entry.bin != kNanBin) total += static_cast<double>(entry.count);
    if (total == 0 || std::isnan(q)) return std::nullopt;
    const double sought = std::clamp(q, 0.0, 1.0) * total;
    double before = 0;
    std::optional<double> answer;
    for (const HistogramBin& entry : histogram) {
        if (entry.bin == kNanBin) continue;
        const auto count = static_cast<double>(entry.count);
        const BinEdges edge = edges(entry.bin);
        const double inside = std::clamp((sought - before) / count, 0.0, 1.0);
        if (entry.bin == -kOverflowBin) answer = edge.upper;
        else if (entry.bin == kOverflowBin || edge.lower == edge.upper) answer = edge.lower;
        else answer = edge.lower + (edge.upper - edge.lower) * inside;
        before += count;
        if (before >= sought) break;
    }
    return answer;
}

}  // namespace traindbg::model

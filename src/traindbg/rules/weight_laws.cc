#include "traindbg/rules/weight_laws.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

namespace traindbg::rules {
namespace {

constexpr double kLeastPower = 0.4, kMostPower = 1.3;  // of the counts
// Fewer weights, or nearly equal ones, fit some order by chance.
constexpr std::size_t kFewestOfOthers = 4;
constexpr std::size_t kFewestOfRoots = 5;  // which are nearer to each other
constexpr double kFewestOfEach = 20;       // labels
constexpr double kNearOthers = 0.05, kErrorsOfOthers = 1.5;
constexpr double kOffOthers = 2;  // times
constexpr double kMostCost = 20, kNearWhole = 1e-4;

// The classes with the largest and the smallest count, of those that have one.
struct Extremes {
    std::size_t most = 0, least = 0, present = 0;
};

Extremes extremes_of(const std::vector<double>& counts) {
    Extremes found;
    for (std::size_t i = 0; i < counts.size(); ++i) {
        if (counts[i] <= 0) continue;
        if (found.present++ == 0) found.most = found.least = i;
        if (counts[i] > counts[found.most]) found.most = i;
        if (counts[i] < counts[found.least]) found.least = i;
    }
    return found;
}

bool is_weight(double weight) { return weight > 0 && std::isfinite(weight); }

}  // namespace

bool are_weights_turned(const std::vector<double>& weights, const std::vector<double>& counts,
                        Nearness near) {
    for (std::size_t i = 0; i < counts.size(); ++i)
        if (counts[i] > 0 && !is_weight(weights[i])) return false;
    const auto [most, least, present] = extremes_of(counts);
    if (present < 2 || counts[most] < 3 * counts[least] || weights[most] < 1.5 * weights[least]) return false;
    const double power = std::log(weights[most] / weights[least]) / std::log(counts[most] / counts[least]);
    if (power < kLeastPower || power > kMostPower) return false;
    std::set<double> distinct;
    for (std::size_t i = 0; i < counts.size(); ++i) {
        if (counts[i] <= 0) continue;
        const double law = present == 2 ? 1 : power;
        const double ours = std::log(weights[i] / weights[least]);
        const double theirs = std::log(counts[i] / counts[least]);
        const double known = near.errors / std::sqrt(counts[i]) + near.errors / std::sqrt(counts[least]);
        if (std::abs(ours - law * theirs) > near.logarithm + law * known) return false;
        distinct.insert(weights[i]);
    }
    return distinct.size() >= std::min<std::size_t>(present, 3);
}

bool are_weights_of_others(const std::vector<double>& weights, const std::vector<double>& counts) {
    if (counts.size() < kFewestOfOthers) return false;
    for (std::size_t i = 0; i < counts.size(); ++i)
        if (counts[i] < kFewestOfEach || !is_weight(weights[i])) return false;
    std::vector<double> rarest_first = counts, largest_first = weights;
    std::sort(rarest_first.begin(), rarest_first.end());
    std::sort(largest_first.begin(), largest_first.end(), std::greater<>());
    if (std::set<double>(weights.begin(), weights.end()).size() < kFewestOfOthers) return false;
    for (const double law : {1.0, 0.5}) {
        if (law < 1 && counts.size() < kFewestOfRoots) break;
        const std::vector<double> sorted = off_from_law(largest_first, rarest_first, law);
        bool fits = true;
        for (std::size_t i = 0; i < sorted.size(); ++i)
            fits = fits &&
                   std::abs(sorted[i]) <= kNearOthers + law * kErrorsOfOthers / std::sqrt(rarest_first[i]);
        if (!fits) continue;
        const std::vector<double> own = off_from_law(weights, counts, law);
        const auto [least, most] = std::minmax_element(own.begin(), own.end());
        return *least < -std::log(kOffOthers) && *most > std::log(kOffOthers);
    }
    return false;
}

bool are_weights_costs(const std::vector<double>& weights) {
    const double least = *std::min_element(weights.begin(), weights.end());
    const double most = *std::max_element(weights.begin(), weights.end());
    if (!(least > 0)) return false;
    for (double times = 1; times * most <= (kMostCost + kNearWhole) * least; ++times)
        if (std::all_of(weights.begin(), weights.end(), [&](double weight) {
                const double cost = times * weight / least;
                return std::abs(cost - std::round(cost)) <= kNearWhole;
            }))
            return true;
    return false;
}

std::vector<double> off_from_law(const std::vector<double>& weights, const std::vector<double>& counts,
                                 double law) {
    std::vector<double> off(counts.size());
    for (std::size_t i = 0; i < counts.size(); ++i) off[i] = std::log(weights[i]) + law * std::log(counts[i]);
    std::vector<double> ordered = off;
    std::sort(ordered.begin(), ordered.end());
    const std::size_t half = ordered.size() / 2;
    const double middle = ordered.size() % 2 == 1 ? ordered[half] : (ordered[half - 1] + ordered[half]) / 2;
    for (double& one : off) one -= middle;
    return off;
}

}  // namespace traindbg::rules

#include "traindbg/rules/input_differences.h"

#include <algorithm>
#include <cmath>
#include <span>

namespace traindbg::rules {
namespace {

constexpr double kTimesNoise = 6;           // what batches of the training differ by among themselves
constexpr double kAlikeButForZeros = 0.15;  // of the spread of the values that are not zero
constexpr double kSomeZeros = 0.01;         // of the values
constexpr std::uint64_t kNoGrid = 4;        // values of a row
constexpr double kNextTo = 0.05;            // of the training's range
constexpr double kEvenly = 0.25;            // of the deviation of evenly spread values
constexpr std::uint64_t kFewestBatchesOfDrift = 15;
constexpr std::uint64_t kFewestValuesOfDrift = 64;  // of a batch that is evaluated
constexpr double kNearMean = 0.3, kNearStd = 1.3;

// What padding leaves as it is.
struct NotZero {
    double mean = 0, std = 0;
};

NotZero not_zero(const model::Statistics& values) {
    const auto count = static_cast<double>(values.count);
    const double rest = count - static_cast<double>(values.zero);
    if (!(rest > 0)) return {};
    const double mean = values.mean * count / rest;
    const double square = (values.std * values.std + values.mean * values.mean) * count / rest;
    return {mean, std::sqrt(std::max(0.0, square - mean * mean))};
}

bool are_alike_but_for_zeros(const model::Statistics& ours, const model::Statistics& theirs) {
    const NotZero a = not_zero(ours), b = not_zero(theirs);
    return a.std > 0 && std::abs(a.mean - b.mean) <= kAlikeButForZeros * a.std &&
           std::abs(a.std - b.std) <= kAlikeButForZeros * a.std;
}

}  // namespace

bool do_inputs_differ(const InputValues& input, const InputLimits& limits, const KnownRows& rows) {
    const model::Statistics &ours = input.training.all, &theirs = input.evaluation.all;
    const double moved = std::abs(theirs.mean - ours.mean);
    const double times = theirs.std > 0 ? std::max(theirs.std / ours.std, ours.std / theirs.std) : INFINITY;
    const bool is_moved = moved > limits.shift * ours.std && moved > kTimesNoise * input.noise_of_means();
    const bool is_scaled =
        times > limits.scale && std::abs(theirs.std - ours.std) > kTimesNoise * input.noise_of_stds();
    return (is_moved || is_scaled) && !is_padding(input) &&
           (input.evaluation.batches >= 2 || is_validation(input, limits, rows));
}

bool is_padding(const InputValues& input) {
    const model::Statistics &ours = input.training.all, &theirs = input.evaluation.all;
    return std::min(share_of_zeros(ours), share_of_zeros(theirs)) >= kSomeZeros &&
           are_alike_but_for_zeros(ours, theirs);
}

bool is_validation(const InputValues& input, const InputLimits& limits, const KnownRows& rows) {
    const model::Statistics &ours = input.training.all, &theirs = input.evaluation.all;
    const bool is_large = theirs.count >= InputValues::kManyValues && theirs.count >= input.most_values;
    // What is narrower in evaluation may lack no more than the noise that training adds, and what is wider
    // the masks.
    const bool is_narrower =
        theirs.std < ours.std && std::abs(theirs.mean - ours.mean) <= limits.shift * theirs.std;
    const bool is_unmasked =
        share_of_zeros(theirs) < share_of_zeros(ours) && are_alike_but_for_zeros(ours, theirs);
    // Samples in the order of their classes begin with some of these alone, of which the training has more:
    // their values are none that it never had.
    const double values = rows.evaluated() * static_cast<double>(input.values_of_row);
    const bool is_half = static_cast<double>(theirs.count) >= 0.5 * values;
    const bool is_beyond = theirs.max - theirs.min > limits.scale * (ours.max - ours.min);
    return is_large && input.values_of_row >= kNoGrid && rows.are_evaluated_again() && !is_narrower &&
           !is_unmasked && (is_half || is_beyond);
}

bool goes_on(const InputValues& input) {
    const model::Statistics &ours = input.training.all, &theirs = input.evaluation.all;
    const double range = ours.max - ours.min;
    const double even = range / std::sqrt(12.0);  // standard deviation
    const double gap = std::max(theirs.min - ours.max, ours.min - theirs.max);
    return input.values_of_row == 1 && gap >= 0 && gap <= kNextTo * range && theirs.std < ours.std &&
           std::abs(ours.std - even) <= kEvenly * even;
}

bool has_drifted(const InputValues& input, const InputLimits& limits, bool has_before) {
    const model::Statistics &first = input.first.all, &theirs = input.first_evaluated;
    if (input.training.batches < kFewestBatchesOfDrift || theirs.count < kFewestValuesOfDrift ||
        !(first.std > 0) || !(theirs.std > 0))
        return false;
    if (std::abs(theirs.mean - first.mean) > kNearMean * first.std ||
        std::max(theirs.std / first.std, first.std / theirs.std) > kNearStd)
        return false;
    const auto noise = [&](const Recent& firsts, const Recent& recent) {
        return std::max(
            {deviation_of(firsts.values()), deviation_of_changes(recent.values()), 1e-6 * first.std});
    };
    const auto means = input.means.last(InputValues::kFirst), stds = input.stds.last(InputValues::kFirst);
    // One batch that comes again, as in the steps of a task, is one.
    for (std::size_t i = 1; i < means.size(); ++i)
        if (means[i] == means[i - 1] && stds[i] == stds[i - 1]) return has_before;
    const auto all = [](std::span<const double> values, auto&& is_off) {
        return std::all_of(values.begin(), values.end(), is_off);
    };
    const double apart =
        std::max(limits.shift * first.std, kTimesNoise * noise(input.first_means, input.means));
    const double of_std = kTimesNoise * noise(input.first_stds, input.stds);
    const double low = std::min(1 / limits.scale * first.std, first.std - of_std);
    const double high = std::max(limits.scale * first.std, first.std + of_std);
    return all(means, [&](double mean) { return mean > first.mean + apart; }) ||
           all(means, [&](double mean) { return mean < first.mean - apart; }) ||
           all(stds, [&](double std) { return std > high; }) ||
           all(stds, [&](double std) { return std < low; });
}

}  // namespace traindbg::rules

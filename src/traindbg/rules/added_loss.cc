#include "traindbg/rules/added_loss.h"

#include <algorithm>
#include <cmath>

#include "traindbg/rules/loop_facts.h"
#include "traindbg/rules/loss_arguments.h"
#include "traindbg/rules/training_loss.h"
#include "traindbg/rules/updates.h"

namespace traindbg::rules {
namespace {

constexpr std::size_t kFirst = 5;
constexpr std::size_t kFewestLooks = 5;
// How far the factor may seem to change: biases, of which nothing is known, may be in the penalty, and
// weights are captured when the optimizer has changed them.
constexpr double kSameFactor = 1.05;
constexpr double kSmaller = 0.8;  // of the norm at the first look
constexpr double kNoTrend = 2.5;  // Mann-Kendall's z
constexpr std::size_t kBlocksOfThird = 8;

}  // namespace

void AddedLoss::Proportion::add(double added, double sum) {
    if (!(sum > 0)) return;
    last = added / sum;
    if (first_sum == 0) {
        first_sum = lowest_sum = sum;
        least = most = last;
    }
    least = std::min(least, last);
    most = std::max(most, last);
    lowest_sum = std::min(lowest_sum, sum);
}

bool AddedLoss::Proportion::is_same(double fallen) const {
    return least > 0 && most < kSameFactor * least && first_sum > fallen * lowest_sum;
}

void AddedLoss::observe(const model::StepView& step) {
    if (loop_fact(step, "trainings")) *this = AddedLoss();
    std::optional<double> total, value;
    for (const model::ScalarSample& sample : step.record->scalars) {
        const model::TensorInfo& info = step.info(sample.tensor);
        if (!is_first_loss(info) || !std::isfinite(sample.value)) continue;
        if (info.name == "loss") {
            total = sample.value;
            continue;
        }
        has_several_ = has_several_ || (!function_.empty() && function_ != info.name);
        function_ = info.name;
        value = sample.value;
    }
    if (!total || !value) return;
    totals_.add(*total);
    added_.add(*total - *value);
    values_.add(*value);
    if (first_added_.size() < kFirst) {
        first_added_.push_back(*total - *value);
        first_values_.push_back(*value);
    }
    std::array<double, kSums.size()> sums{};
    for (const model::TensorSample& sample : step.record->tensors) {
        const model::TensorInfo& info = step.info(sample.tensor);
        if (info.role != model::Role::kWeight) continue;
        const double square = sample.statistics.l2 * sample.statistics.l2;
        sums[0] += square;
        if (is_matrix(info)) sums[1] += square;
        sums[2] += sample.statistics.l1;
        sums[3] += sample.statistics.l2;
    }
    if (!(sums[0] > 0) || !std::isfinite(sums[0])) return;
    norm_ = std::sqrt(sums[0]);
    if (looks_++ == 0) first_norm_ = norm_;
    for (std::size_t i = 0; i < sums.size(); ++i) proportions_[i].add(*total - *value, sums[i]);
}

std::optional<AddedLoss::Level> AddedLoss::at_start() const {
    if (has_several_ || first_added_.size() < kFirst) return std::nullopt;
    return Level{median(first_added_), median(first_values_)};
}

AddedLoss::Level AddedLoss::now() const {
    const auto added = added_.values(), values = values_.values();
    return {median({added.begin(), added.end()}), median({values.begin(), values.end()})};
}

std::string_view AddedLoss::function() const noexcept { return function_of_loss(function_); }

std::optional<AddedLoss::Penalty> AddedLoss::penalty() const {
    if (has_several_ || looks_ < kFewestLooks || !(norm_ < kSmaller * first_norm_)) return std::nullopt;
    for (std::size_t i = 0; i < kSums.size(); ++i)
        if (proportions_[i].is_same(kSums[i].fallen))
            return Penalty{kSums[i].name, proportions_[i].last, norm_, first_norm_};
    return std::nullopt;
}

bool AddedLoss::stands_still() const {
    const auto means = totals_.means();
    const auto third = means.last(means.size() / 3);
    return third.size() >= kBlocksOfThird && std::abs(trend_z(third)) < kNoTrend;
}

}  // namespace traindbg::rules

#include "traindbg/rules/far_from_fit.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <string>
#include <utility>

#include "traindbg/rules/loop_facts.h"

namespace traindbg::rules {
namespace {

constexpr std::size_t kFewestBlocks = 12;  // of the last third
constexpr double kNothing = 0.95;          // of the constant answer's loss: nothing is learned
constexpr double kFall = 0.05;             // of the level, over the last third, that counts as none
constexpr double kBetter = 0.9;            // of the level: it has been clearly better before
constexpr double kRate = 0.01;             // of the highest rate: the schedule is over
constexpr double kHard = 0.95;             // of the variance of labels that are 0 and 1
constexpr double kMissed = 3;              // times the labels in which nearest inputs differ
constexpr double kOfShare = 1.0 / 3;       // of what is left: labels of nearest inputs differ by less
// Labels of nearest inputs differ by less than so much of what the model misses: there is more to learn than
// it has. At the floor of noise they differ by as much as the model's answers do, of labels that are flipped
// at random by two thirds of that and more.
constexpr double kTold = 0.6;

std::span<const double> last_third(const Blocks& blocks) {
    const auto means = blocks.means();
    return means.last(means.size() / 3);
}

// The lowest mean of so many neighbours.
double lowest_of(std::span<const double> values, std::size_t window) {
    double lowest = mean_of(values.first(window));
    for (std::size_t first = 1; first + window <= values.size(); ++first)
        lowest = std::min(lowest, mean_of(values.subspan(first, window)));
    return lowest;
}

}  // namespace

std::vector<model::Requirement> far_from_fit_requirements(std::string_view rule) {
    std::vector<model::Requirement> all = loss_requirements(rule);
    for (model::Requirement& more : argument_requirements(rule)) all.push_back(std::move(more));
    for (model::Requirement& more : neighbour_requirements(rule)) all.push_back(std::move(more));
    all.push_back(rate_requirement(rule));
    all.push_back(evaluation_loss_requirement(rule));
    return all;
}

void FarFromFit::observe(const model::StepView& step) {
    evaluation_.observe(step);
    if (step.mode() != model::Mode::kTrain) return;
    if (loop_fact(step, "trainings")) *this = FarFromFit(limits_);  // another one in the same process
    const std::uint64_t before = guessing_.loss().count();
    guessing_.observe(step);
    neighbours_.observe(step);
    rates_.observe(step);
    count_hits(step);
    if (const auto weight = loop_fact(step, "answers_weight")) is_weighted_ = weight->value != 1;
    if (guessing_.loss().count() == before) return;
    steps_.add(static_cast<double>(step.step()));
    learning_rates_.add(rates_.is_known() ? rates_.now() : 0);
}

void FarFromFit::count_hits(const model::StepView& step) {
    for (const model::ClassSample& sample : step.record->classes) {
        const std::string_view name = step.info(sample.tensor).name;
        if (name.substr(name.find('/') + 1) != function_of_loss(loss().tensor())) continue;
        const auto& counts = sample.counts;
        const double labels = std::accumulate(counts.labels.begin(), counts.labels.end(), 0.0);
        const double hits = std::accumulate(counts.hits.begin(), counts.hits.end(), 0.0);
        if (labels > 0) accuracies_.add(hits / labels);
    }
}

// Over the last third: no trend, and no more than a little gained. It was never much better before.
bool FarFromFit::stands_still() const {
    const auto third = last_third(loss().blocks());
    if (third.size() < kFewestBlocks) return false;
    const std::size_t half = third.size() / 2;
    const double level = mean_of(third), trend = trend_z(third);
    if (mean_of(third.first(half)) - mean_of(third.last(half)) > kFall * level) return false;
    return trend > -2 && trend < 2.5 && lowest_of(loss().blocks().means(), half) > kBetter * level;
}

bool FarFromFit::has_rate() const {
    return !rates_.is_known() || mean_of(last_third(learning_rates_)) >= kRate * rates_.peak();
}

std::uint64_t FarFromFit::count() const { return guessing_.share() ? loss().count() : 0; }

std::optional<FarFromFit::Found> FarFromFit::found() const {
    const std::optional<double> share = guessing_.share(), constant = guessing_.constant_loss();
    if (!share || !constant || loss().count() < limits_.min_steps) return std::nullopt;
    if (loss().is_game() || !loss().is_known_function() || loss().is_sum_of_several()) return std::nullopt;
    Found found;
    found.unlike = neighbours_.unlike();
    if (found.unlike && *found.unlike > kTold * *share) return std::nullopt;
    // Less is far where the inputs are known to tell more.
    const double far = found.unlike ? limits_.share_told : limits_.share;
    if (!loss().has_learned() || *share <= far || *share >= kNothing) return std::nullopt;
    if (!stands_still() || !has_rate()) return std::nullopt;
    found.since = static_cast<model::StepIndex>(std::max(0.0, last_third(steps_).front()));
    found.level = guessing_.level();
    found.constant = *constant;
    found.share = *share;
    if (const auto third = last_third(accuracies_); !third.empty()) {
        found.accuracy = mean_of(third);
        if (*found.accuracy >= limits_.accuracy) return std::nullopt;
    }
    const std::string_view function =
        guessing_.function().empty() ? function_of_loss(loss().tensor()) : guessing_.function();
    if (evaluation_.count() > 0 && function_of_loss(evaluation_.function()) == function) {
        found.evaluation = evaluation_.last();
        const double ratio = evaluation_.last() / found.level;
        if (ratio > 1 + limits_.gap || ratio < 1 / (1 + limits_.gap)) return std::nullopt;
    }
    found.is_certain = is_certain(found);
    return found;
}

bool FarFromFit::is_certain(const Found& found) const {
    if (!found.evaluation || !found.unlike || is_weighted_) return false;
    if (*found.unlike >= std::min(limits_.alike, kOfShare * found.share)) return false;
    // Weights of classes and smoothed labels change the loss, and not what is missed.
    if (guessing_.function().empty())
        return found.accuracy && 1 - *found.accuracy > kMissed * neighbours_.differ();
    const model::Statistics& labels = guessing_.labels();
    const double most = labels.mean * (1 - labels.mean);
    return is_regression(guessing_.function()) || labels.std * labels.std >= kHard * most;
}

}  // namespace traindbg::rules

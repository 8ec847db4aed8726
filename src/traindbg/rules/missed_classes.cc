#include "traindbg/rules/missed_classes.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "traindbg/base/format.h"
#include "traindbg/rules/loop_facts.h"
#include "traindbg/rules/training_loss.h"

namespace traindbg::rules {
namespace {

// `missed`: of which the rarest is named. `recall`: of that one.
model::Finding missed_finding(const std::vector<double>& labels, std::size_t rare, std::size_t missed,
                              double recall, std::string_view where) {
    const std::size_t common = most_frequent(labels);
    model::Finding finding;
    finding.plots = {{"loss", "value"}};
    finding.severity = model::Severity::kWarning;
    finding.places = missed;
    finding.message = base::format(
        "Class {} has {:.0f} times the labels of class {}, and the model finds {:.0f} % of the samples of "
        "class {}{}{}.",
        common, labels[common] / labels[rare], rare, 100 * recall, rare, where,
        missed > 1 ? base::format("; {} classes are missed like this", missed) : "");
    finding.fix =
        "Weight the classes in the loss, e.g. cross_entropy(..., weight=1/counts), or draw them evenly with "
        "torch.utils.data.WeightedRandomSampler; judge by recall per class, not by accuracy.";
    return finding;
}

std::size_t rarest_of(const std::vector<std::size_t>& classes, const std::vector<double>& labels) {
    return *std::min_element(classes.begin(), classes.end(),
                             [&](auto a, auto b) { return labels[a] < labels[b]; });
}

}  // namespace

void MissedClasses::observe(const model::StepView& step) {
    are_next_ = are_next_ || loop_fact(step, "later_seen").has_value();
}

void MissedClasses::observe_losses(const model::StepView& step) {
    for (const model::ScalarSample& sample : step.record->scalars)
        if (is_first_loss(step.info(sample.tensor)) && step.info(sample.tensor).name != "loss")
            losses_.add(sample.value);
}

void MissedClasses::remember(const ClassTally& tally, model::StepIndex last) {
    if (last < std::max<model::StepIndex>(kStepsOfShortTraining, 2 * now_.step)) return;
    before_ = std::move(now_);
    now_ = {last, tally.shares_found()};
}

// The loss is well below what it was so many steps ago.
bool MissedClasses::falls_fast() const {
    if (!losses_.full()) return false;
    const auto values = losses_.values();
    const auto half = static_cast<std::ptrdiff_t>(values.size() / 2);
    const double before = std::accumulate(values.begin(), values.begin() + half, 0.0);
    const double now = std::accumulate(values.begin() + half, values.end(), 0.0);
    return now < kFallsFast * before;
}

void MissedClasses::judge(const ClassTally& tally, const Context& context, FindingSink& sink) {
    judge(tally, context, kLooksToMiss, falls_fast(), sink);  // a rare class is learned last
}

void MissedClasses::judge_end(const ClassTally& tally, const Context& context, FindingSink& sink) {
    judge(tally, context, 1, false, sink);
}

void MissedClasses::judge(const ClassTally& tally, const Context& context, std::uint64_t looks, bool may_come,
                          FindingSink& sink) {
    std::vector<std::size_t> in_training = ignored_classes(tally, rarity(context.weights)), in_evaluation;
    if (look(!in_training.empty()) < looks || may_come) in_training.clear();
    if (in_training.empty() && !may_come && !context.is_game && 4 * evaluations_.since() >= context.last)
        in_evaluation = missed_in_evaluation(tally, evaluations_, rarity(context.weights),
                                             firing_.contains(kInEvaluation));
    if (in_training.empty()) firing_.clear(kInTraining, sink);
    else say_training(tally, context, in_training, sink);
    if (in_evaluation.empty()) firing_.clear(kInEvaluation, sink);
    else say_evaluation(tally, context, in_evaluation, sink);
}

void MissedClasses::judge_whole(const ClassTally& tally, const Context& context, FindingSink& sink) {
    // Of a time that is long enough ago to tell whether it learns to find them.
    const Found& then = 4 * now_.step <= 3 * context.last ? now_ : before_;
    const std::vector<std::size_t> missed = missed_to_the_end(tally, rarity(context.weights), then.shares);
    if (!missed.empty()) say_training(tally, context, missed, sink);
}

void MissedClasses::say_training(const ClassTally& tally, const Context& context,
                                 const std::vector<std::size_t>& missed, FindingSink& sink) {
    const std::vector<double>& labels = tally.recent();
    const std::size_t rare = rarest_of(missed, labels);
    const double recall = tally.hits()[rare] / labels[rare];
    model::Finding finding = missed_finding(labels, rare, missed.size(), recall, "");
    finding.key = kInTraining;
    finding.tensor = context.tensor;
    finding.evidence = {{"labels of the most frequent class / of the rare one",
                         labels[most_frequent(labels)] / labels[rare], "limit", ratio_},
                        {"recall of the rare class", recall, "limit", kIgnoredShare}};
    firing_.fire(std::move(finding), sink);
}

void MissedClasses::say_evaluation(const ClassTally& tally, const Context& context,
                                   const std::vector<std::size_t>& missed, FindingSink& sink) {
    const std::vector<double>& labels = tally.labels();
    const std::size_t rare = rarest_of(missed, labels);
    const double recall = evaluations_.found()[rare] / evaluations_.labels()[rare];
    model::Finding finding = missed_finding(labels, rare, missed.size(), recall, " in evaluation");
    finding.key = kInEvaluation;
    finding.tensor = context.tensor;
    finding.evidence = {{"labels of the most frequent class / of the rare one",
                         labels[most_frequent(labels)] / labels[rare], "limit", ratio_},
                        {"recall of the rare class", recall, "limit", kMissedShare}};
    firing_.fire(std::move(finding), sink);
}

}  // namespace traindbg::rules

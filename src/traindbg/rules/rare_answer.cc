#include "traindbg/rules/rare_answer.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "traindbg/base/format.h"
#include "traindbg/rules/loop_facts.h"
#include "traindbg/rules/rare_classes.h"

namespace traindbg::rules {
namespace {

std::size_t rarer_of_two(const ClassTally& tally) { return tally.recent()[1] <= tally.recent()[0] ? 1 : 0; }

// `ratio`: of the frequent answer's labels to those of the rare one.
std::string advice_for_answers(double ratio, bool is_yes_rare) {
    return base::format(
        "Weight the rare answer in the loss (pos_weight={:.2g} in binary_cross_entropy_with_logits), or draw "
        "samples evenly with torch.utils.data.WeightedRandomSampler; judge by recall, not by accuracy.",
        is_yes_rare ? ratio : 1 / ratio);
}

}  // namespace

void RareAnswer::observe(const model::StepView& step) {
    loss_.observe(step);
    if (are_counted_) loss_.add(step);
}

std::optional<AnswerBatch> RareAnswer::add(const LossCall& call, model::StepIndex step) {
    if (is_about_answers(call)) function_ = call.function;
    const std::optional<AnswerBatch> batch = answer_batch(call);
    if (batch) given_.add(*batch, step);
    return batch;
}

bool RareAnswer::count(const model::StepView& step, ClassTally& tally) {
    const auto all = loop_fact(step, "answers"), yes = loop_fact(step, "answers_yes"),
               said = loop_fact(step, "answers_said_yes"), right = loop_fact(step, "answers_right_yes");
    if (!all || !yes || !said || !right || !(all->value > 0)) return false;
    are_counted_ = true;
    if (const auto weight = loop_fact(step, "answers_weight")) loss_.set_weight(weight->value);
    const auto whole = [](double value) { return static_cast<std::uint32_t>(std::max(value, 0.0)); };
    const double right_no = all->value - yes->value - said->value + right->value;
    tally.add({.labels = {whole(all->value - yes->value), whole(yes->value)},
               .predictions = {whole(all->value - said->value), whole(said->value)},
               .hits = {whole(right_no), whole(right->value)}},
              all->value);
    return true;
}

bool RareAnswer::may_be_ignored(const ClassTally& tally) const {
    if (is_ignored_) return true;
    // Of a rare answer that is given to a fifth of its samples, so few would be found once in a hundred
    // times. Calibrated models of rare events find no more than that, and are sound.
    const std::size_t rare = rarer_of_two(tally);
    const double mean = 0.2 * tally.recent()[rare];
    const auto hits = static_cast<std::uint64_t>(tally.hits()[rare]);
    double term = std::exp(-mean), sum = term;  // of a Poisson distribution
    for (std::uint64_t k = 1; k <= hits; ++k) sum += term *= mean / static_cast<double>(k);
    return sum < 0.01;
}

void RareAnswer::judge(const ClassTally& tally, model::StepIndex last, bool is_game, FindingSink& sink) {
    if (!is_game && given_.is_never_given(ratio_)) say_never(last, sink);
    else if (!is_game && is_ignored_) say_ignored(tally, last, sink);
    else if ((!is_told_never_ || given_.given_in_a_row() >= kLooksToMiss) && firing_.clear(kYesOrNo, sink))
        is_told_never_ = false;
}

void RareAnswer::say_never(model::StepIndex last, FindingSink& sink) {
    is_told_never_ = true;
    const bool is_yes_rare = given_.is_yes_rare();
    const double ratio = (given_.labels() - given_.rare()) / given_.rare();
    model::Finding finding;
    finding.key = kYesOrNo;
    loss_.weigh(finding, given_.yes() / given_.labels(), false);
    finding.tensor = loss();
    finding.message = base::format(
        "{:.1f} % of the labels are {}, and the model never says so: not for one of the {:.0f} such samples "
        "in the batches looked at from step {} to {}.",
        100 * given_.rare() / given_.labels(), is_yes_rare ? 1 : 0, given_.missed(), given_.missed_since(),
        last);
    finding.message += loss_.about_weight(is_yes_rare);
    finding.fix = advice_for_answers(ratio, is_yes_rare);
    finding.evidence.push_back({"labels of the frequent answer / of the rare one", ratio, "limit", ratio_});
    finding.evidence.push_back(
        {"samples of the rare answer missed", given_.missed(), "limit", given_.most_missed()});
    finding.plots = {{finding.tensor, "value"}};
    firing_.fire(std::move(finding), sink);
}

void RareAnswer::say_ignored(const ClassTally& tally, model::StepIndex last, FindingSink& sink) {
    const std::vector<double>&labels = tally.recent(), &hits = tally.hits();
    const std::size_t rare = rarer_of_two(tally);
    const double ratio = labels[1 - rare] / labels[rare];
    model::Finding finding;
    finding.key = kYesOrNo;
    loss_.weigh(finding, labels[1] / (labels[0] + labels[1]), true);
    finding.tensor = loss();
    finding.message = base::format(
        "{:.1f} % of the labels are {}, and the model says so for {:.0f} % of these: for {:.0f} of about the "
        "last {:.0f} up to step {}.",
        100 * labels[rare] / (labels[0] + labels[1]), rare, 100 * hits[rare] / labels[rare], hits[rare],
        labels[rare], last);
    finding.message += loss_.about_weight(rare == 1);
    finding.fix = advice_for_answers(ratio, rare == 1);
    finding.evidence.push_back({"labels of the frequent answer / of the rare one", ratio, "limit", ratio_});
    finding.evidence.push_back(
        {"recall of the rare answer", hits[rare] / labels[rare], "limit", kIgnoredShare});
    finding.plots = {{finding.tensor, "value"}};
    firing_.fire(std::move(finding), sink);
}

}  // namespace traindbg::rules

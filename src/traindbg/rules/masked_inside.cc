#include "traindbg/rules/masked_inside.h"

#include <utility>

#include "traindbg/base/format.h"
#include "traindbg/rules/loop_facts.h"

namespace traindbg::rules {

bool MaskedInside::judge(const model::StepView& step, const Guessing& guessing,
                         const std::optional<double>& ratio, FindingSink& sink) {
    const auto ours = loop_fact(step, "given_zeros");
    const auto theirs = loop_fact(step, "given_zeros_in_evaluation");
    if (!ours || !theirs) return false;
    if (ours->place != layer_) {
        layer_ = ours->place;
        ours_.clear();
    }
    ours_.add(ours->value);
    theirs_ = theirs->value;
    if (is_destroyed(guessing, ratio)) say(guessing, sink);
    else firing_.clear(kKey, sink);
    return true;
}

bool MaskedInside::is_destroyed(const Guessing& guessing, const std::optional<double>& ratio) const {
    const auto zeros = ours_.values();
    if (zeros.size() < kFewestLooks || guessing.loss().count() < limits_.steps) return false;
    if (median({zeros.begin(), zeros.end()}) - theirs_ < AugmentationLimits::kMostIsGone) return false;
    const std::optional<double> share = guessing.share();
    if (!share || *share < limits_.high || guessing.loss().is_game()) return false;
    // What is to be put back, as by an auto-encoder of masked inputs, is learned all the same.
    return guessing.loss().classes() > 1 || !ratio || *ratio > 1;
}

void MaskedInside::say(const Guessing& guessing, FindingSink& sink) {
    const auto zeros = ours_.values();
    const double ours = median({zeros.begin(), zeros.end()});
    model::Finding finding;
    finding.key = kKey;
    finding.kind = "destructive_augmentation";
    finding.severity = model::Severity::kWarning;
    finding.first_step = 0;
    finding.tensor = "input/0";
    finding.message = base::format(
        "In training {:.0f} % of what {} is given is zero, in evaluation {:.0f} %, of the same kind of "
        "inputs: something in the model in front of it takes the rest away, in training mode only. After {} "
        "steps the training's loss is {:.0f} % of that of guessing.",
        100 * ours, layer_, 100 * theirs_, guessing.loss().count(), 100 * guessing.share().value_or(1));
    finding.fix =
        "Weaken the augmentation in the model: masks and erased parts that leave most of a sample; their "
        "widths are numbers of bands, frames or pixels, to be chosen for inputs of this size. Look at a "
        "dozen augmented samples: a person must be able to label them.";
    finding.evidence = {
        {"share of zeros in training", ours, "in evaluation", theirs_},
        {"share of the loss of guessing", guessing.share().value_or(1), "limit", limits_.high}};
    finding.plots = {{base::format("loop/given_zeros/{}", layer_), "value"}};
    firing_.fire(std::move(finding), sink);
}

}  // namespace traindbg::rules

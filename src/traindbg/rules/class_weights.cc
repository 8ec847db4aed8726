#include "traindbg/rules/class_weights.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/rules/class_facts.h"
#include "traindbg/rules/loop_facts.h"
#include "traindbg/rules/weight_laws.h"

namespace traindbg::rules {

void ClassWeights::judge(const model::StepView& step, std::string_view tensor, const ClassTally& tally,
                         FindingSink& sink) {
    // Told of the first batches.
    for (const LoopFact& fact : loop_facts(step, "class_weight")) {
        const std::size_t slash = fact.place.rfind('/');
        if (slash == std::string_view::npos ||
            tensor != base::format("classes/{}", fact.place.substr(0, slash)))
            continue;
        if (const auto number = number_in(fact.place.substr(slash + 1)))
            put_numbered(fact.value, *number, weights_);
    }
    const std::vector<double>& labels = tally.labels();
    const double enough = weights_.size() == 2 ? kFewestLabelsOfTwo : kFewestLabels;
    if (weights_.size() != labels.size() || tally.batches() < kFewestBatches || tally.total() < enough)
        return;
    const bool are_turned = are_weights_turned(weights_, labels, {.logarithm = kNear, .errors = kErrors});
    if (are_turned) say_turned(weights_, labels, tensor, sink);
    else firing_.clear(kTurned, sink);
    if (!are_turned && tally.total() >= kFewestLabelsOfOthers && !are_weights_costs(weights_) &&
        are_weights_of_others(weights_, labels))
        say_of_others(labels, tensor, sink);
    else firing_.clear(kOfOthers, sink);
}

bool ClassWeights::judge_places(const model::StepView& step, FindingSink& sink) {
    // Told at the first steps, for this alone.
    const std::vector<LoopFact> counted = loop_facts(step, "dense_labels");
    if (counted.empty()) return false;
    read_numbered(step, "dense_weight", weights_of_places_);
    std::vector<double>& labels = labels_of_places_;
    labels.resize(std::max(labels.size(), counted.size()));
    for (const LoopFact& fact : counted)
        if (const auto number = number_in(fact.place); number && *number < labels.size())
            labels[*number] += fact.value;
    ++steps_of_places_;
    const double all = std::accumulate(labels.begin(), labels.end(), 0.0);
    const bool are_known = weights_of_places_.size() == labels.size();
    if (!are_known || steps_of_places_ < kFewestBatches || all < kFewestLabelsOfPlaces) return true;
    if (are_weights_turned(weights_of_places_, labels, {.logarithm = kNear, .errors = kErrorsOfPlaces}))
        say_turned(weights_of_places_, labels, "loss", sink);
    else firing_.clear(kTurned, sink);
    return true;
}

void ClassWeights::say_turned(const std::vector<double>& weights, const std::vector<double>& labels,
                              std::string_view tensor, FindingSink& sink) {
    const std::size_t most = most_frequent(labels);
    std::size_t least = most;
    for (std::size_t i = 0; i < labels.size(); ++i)
        if (labels[i] > 0 && labels[i] < labels[least]) least = i;
    model::Finding finding;
    finding.key = kTurned;
    finding.tensor = tensor;
    finding.plots = {{"loss", "value"}};
    finding.severity = model::Severity::kWarning;
    finding.first_step = 0;
    finding.message = base::format(
        "The loss makes frequent classes count more: class {} has {:.2g} times the labels of class {}, and a "
        "weight of {} beside {}.",
        most, labels[most] / labels[least], least, base::human_number(weights[most]),
        base::human_number(weights[least]));
    finding.fix =
        "Weights are to make up for the counts: weight = counts.sum() / (len(counts) * counts), not the "
        "counts or shares themselves.";
    finding.evidence = {{"weight of the most frequent class / of the rarest one",
                         weights[most] / weights[least], "limit", 1.5},
                        {"labels of the one / of the other", labels[most] / labels[least], "", 0}};
    firing_.fire(std::move(finding), sink);
}

void ClassWeights::say_of_others(const std::vector<double>& labels, std::string_view tensor,
                                 FindingSink& sink) {
    // In both laws those that are off most are the same classes, or ones that are off as much.
    const std::vector<double> own = off_from_law(weights_, labels, 1);
    const auto place = [&](auto found) { return static_cast<std::size_t>(found - own.begin()); };
    const std::size_t least = place(std::min_element(own.begin(), own.end()));
    const std::size_t most = place(std::max_element(own.begin(), own.end()));
    model::Finding finding;
    finding.key = kOfOthers;
    finding.tensor = tensor;
    finding.plots = {{"loss", "value"}};
    finding.severity = model::Severity::kWarning;
    finding.first_step = 0;
    finding.message = base::format(
        "The loss gives classes the weights of other ones: sorted, they are one divided by the counts or "
        "their roots, but class {}, with {:.2g} times the labels of class {}, has a weight of {} beside {}.",
        most, labels[most] / labels[least], least, base::human_number(weights_[most]),
        base::human_number(weights_[least]));
    finding.fix =
        "Compute the weights from the labels that the loss is given, as by numpy.bincount(labels): names of "
        "classes may be sorted in another order than their numbers are.";
    finding.evidence = {{"weight of the one class / of the other", weights_[most] / weights_[least], "", 0},
                        {"labels of the one / of the other", labels[most] / labels[least], "", 0}};
    firing_.fire(std::move(finding), sink);
}

}  // namespace traindbg::rules

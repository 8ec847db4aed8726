#include "traindbg/diagnose/diagnose.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/diagnose/evidence.h"
#include "traindbg/diagnose/fault_kinds.h"
#include "traindbg/diagnose/source_lines.h"
#include "traindbg/diagnose/training_facts.h"
#include "traindbg/model/rule_instance.h"

namespace traindbg::diagnose {
namespace {

using base::human_number;
using model::Cause;
using model::Finding;

// Read access to all findings by rule and key, and to the settings.
class Symptoms {
  public:
    Symptoms(std::span<const Finding> findings, const model::WorkerMeta& meta)
        : findings_(findings), meta_(meta) {}

    // What counts: above info, and still there. An error leaves its mark on a training when it is over.
    [[nodiscard]] static bool counts(const Finding& finding) {
        if (finding.times == 0) return false;  // it is pending
        return finding.severity == model::Severity::kError ||
               (finding.severity == model::Severity::kWarning &&
                finding.state == model::FindingState::kFiring);
    }
    // The first finding that counts of this rule (and key), in the order in which they fired.
    [[nodiscard]] const Finding* find(std::string_view rule, std::string_view key = {}) const {
        for (const Finding& finding : findings_)
            if (counts(finding) && model::is_instance_of(finding.rule, rule) &&
                (key.empty() || finding.key == key))
                return &finding;
        return nullptr;
    }
    // The first finding that counts of this kind of fault.
    [[nodiscard]] const Finding* find_kind(std::string_view kind) const {
        for (const Finding& finding : findings_)
            if (counts(finding) && finding.kind == kind) return &finding;
        return nullptr;
    }
    [[nodiscard]] static const model::Evidence* evidence(const Finding& finding, std::string_view name) {
        for (const model::Evidence& item : finding.evidence)
            if (item.name == name) return &item;
        return nullptr;
    }
    [[nodiscard]] static double value(const Finding& finding, std::string_view name, double fallback) {
        const model::Evidence* item = evidence(finding, name);
        return item == nullptr ? fallback : item->value;
    }
    [[nodiscard]] const model::WorkerMeta& meta() const noexcept { return meta_; }
    [[nodiscard]] std::span<const Finding> all() const noexcept { return findings_; }

  private:
    std::span<const Finding> findings_;
    const model::WorkerMeta& meta_;
};

// What speaks for a hypothesis.
struct Weight {
    double confidence = 0;
    std::string explanation;
    std::string fix;
};

struct Hypothesis {
    const char* name;
    const char* title;
    // Nothing when no finding speaks for it.
    std::optional<Weight> (*weigh)(const Symptoms& symptoms);
    // Rules whose findings follow from it, where they are there.
    std::vector<std::string_view> explains;
    // The findings of these rules follow only if they began later than the cause was there.
    std::vector<std::string_view> explains_if_died = {};
    // It begins at some step, which the finding of the first rule that it explains shows: what was clearly
    // before does not follow from it.
    bool in_time = false;
};

bool dead_from_start(const Finding& finding) {
    return Symptoms::value(finding, "inactive units at the first step", 0) >= 0.9;
}
bool flat_from_start(const Finding& finding) {
    return Symptoms::value(finding, "values at the flat ends at the first step", 0) >= 0.5;
}

// What came with the data, before anything was computed of it.
bool is_of_the_data(const Finding& finding) {
    return finding.tensor.starts_with("input/") ||
           (finding.tensor.starts_with("label/") && finding.kind == "nan_input");
}

std::optional<Weight> non_finite_input(const Symptoms& symptoms) {
    const Finding* finding = symptoms.find("non_finite", "train");
    if (finding == nullptr || !is_of_the_data(*finding)) return std::nullopt;
    const std::string of = finding->tensor.substr(6);
    if (finding->tensor.starts_with("label/"))
        return Weight{
            0.97,
            base::format("The labels that {} is given hold values that are not finite; loss, gradients "
                         "and weights follow from them. Refuted if torch.isfinite(y).all() holds for "
                         "every batch.",
                         of),
            "Drop these samples, or leave them out of the loss by a mask."};
    return Weight{
        0.97,
        base::format("Input {} holds values that are not finite; loss, gradients and weights follow "
                     "from it. Refuted if torch.isfinite(x).all() holds for every batch.",
                     of),
        "Drop or impute these samples before they reach the model, e.g. x = torch.nan_to_num(x)."};
}

std::optional<Weight> gradients_not_cleared(const Symptoms& symptoms) {
    const Finding* finding = symptoms.find("gradients_not_cleared");
    if (finding == nullptr) return std::nullopt;
    if (finding->tensor.starts_with("loop/gradients_of_another/"))
        return Weight{
            0.85,
            finding->message + " Refuted if both losses are to train these parameters, by one step for both.",
            finding->fix};
    return Weight{
        0.95,
        "Every backward() found the gradients of the steps before: the optimizer uses a growing sum, "
        "as if the learning rate rose with every step. Refuted if zero_grad() is called once per step "
        "for all parameters.",
        "Call optimizer.zero_grad() once per optimizer step, before loss.backward()."};
}

std::optional<Weight> single_class(const Symptoms& symptoms) {
    const Finding* finding = symptoms.find("class_imbalance", "one_class");
    // Refuted by now: labels of other classes came.
    if (finding == nullptr || finding->state == model::FindingState::kResolved) return std::nullopt;
    return Weight{
        0.95,
        "All labels are of one class: the model learns to say that class, the loss falls to zero, and "
        "nothing about the inputs is learned. Refuted if later batches have other labels.",
        finding->fix};
}

std::optional<Weight> dead_at_start(const Symptoms& symptoms) {
    const Finding* finding = symptoms.find("dead_relu", "layer");
    if (finding == nullptr || !dead_from_start(*finding)) return std::nullopt;
    return Weight{
        // Weights that are all alike, or far too large, kill units themselves.
        symptoms.find("poor_weight_init") != nullptr ? 0.8 : 0.9,
        base::format("The ReLU layer {} is zero for every sample from the first step on, before any "
                     "update: initialisation or input scale, not the learning rate. Refuted if its "
                     "pre-activations are positive for some samples.",
                     finding->layer),
        finding->fix};
}

// Gradients that were too large; not that clipping does nothing.
const Finding* exploded(const Symptoms& symptoms) {
    for (const char* key : {"gradients", "time", "depth"})
        if (const Finding* finding = symptoms.find("exploding_gradient", key)) return finding;
    return nullptr;
}

std::optional<Weight> poor_initialisation(const Symptoms& symptoms) {
    if (const Finding* exploding = exploded(symptoms)) {
        if (const model::Evidence* start = Symptoms::evidence(*exploding, "loss at the start"))
            return Weight{
                // Inputs far too large begin there with good weights, too.
                symptoms.find("input_not_normalized", "inputs") != nullptr ? 0.6 : 0.92,
                base::format("The loss began at {}, where a model that guesses has {}: the weights are too "
                             "large before the first update. Refuted if the default initialisation "
                             "begins there, too.",
                             human_number(start->value), human_number(start->reference)),
                "Initialise for the activation used: torch.nn.init.kaiming_normal_ in front of ReLU, "
                "xavier_uniform_ in front of tanh or sigmoid; standardise the inputs."};
    }
    const Finding* finding = symptoms.find("saturated_activation", "flat");
    if (finding == nullptr || !flat_from_start(*finding)) return std::nullopt;
    // Where no weights look wrong, it is what they are given, or how it is summed.
    const model::Evidence* gain = Symptoms::evidence(*finding, "std · √fan_in of the weights before it");
    const bool is_large = gain != nullptr && gain->value > gain->reference;
    if (!is_large && symptoms.find("poor_weight_init") == nullptr) return std::nullopt;
    return Weight{0.85,
                  base::format("The layer {} is saturated from the first step on, before any update: its "
                               "weights are too large{}. Refuted if a smaller initialisation does not take "
                               "the values off the flat ends.",
                               finding->layer,
                               is_large ? base::format(" (std · √fan_in is {}, where 1 is sound)",
                                                       human_number(gain->value))
                                        : ""),
                  finding->fix};
}

std::optional<Weight> unshuffled(const Symptoms& symptoms) {
    const Finding* finding = symptoms.find("class_imbalance", "order");
    if (finding == nullptr) finding = symptoms.find("class_imbalance", "order_of_yes_and_no");
    if (finding == nullptr) {
        finding = symptoms.find("targets_in_order");
        if (finding == nullptr) return std::nullopt;
        return Weight{0.85,
                      "Batches come in the order of their targets: each pulls the model to its own. Refuted "
                      "if the order is that of time and meant, as in online learning, or "
                      "with a recurrent net whose state goes on from batch to batch.",
                      finding->fix};
    }
    return Weight{0.85, "The data comes sorted by class: each batch pulls the model to its own class.",
                  finding->fix};
}

constexpr std::string_view kSummed = "values that the loss is the sum of";
constexpr std::string_view kOvershoot = "learning rate · gradient² / loss";

// The finding that says that the loss is a sum where steps are too large.
const Finding* summed_loss(const Symptoms& symptoms) {
    for (const char* rule :
         {"exploding_gradient", "learning_rate_too_high", "non_finite", "gradient_clipped_to_nothing"}) {
        const Finding* finding = symptoms.find(rule);
        if (finding != nullptr && Symptoms::evidence(*finding, kSummed) != nullptr) return finding;
    }
    return nullptr;
}

// Updates are too large where inputs are, too, where weights start too large or too small, and where values
// grow from layer to layer before any update.
bool is_from_elsewhere(const Symptoms& symptoms) {
    return symptoms.find("input_not_normalized", "inputs") != nullptr ||
           symptoms.find("poor_weight_init") != nullptr ||
           symptoms.find("exploding_gradient", "depth") != nullptr;
}

std::optional<Weight> loss_reduction(const Symptoms& symptoms) {
    const Finding* finding = summed_loss(symptoms);
    if (finding == nullptr || unshuffled(symptoms)) return std::nullopt;
    const double values = Symptoms::value(*finding, kSummed, 1);
    std::string rate_now;
    if (finding->rule != "gradient_clipped_to_nothing") {
        // A rate that is too high for a mean, too, and one that was chosen for the sum.
        constexpr double kLow = 0.1;
        const std::optional<Rate> rate = highest_rate(symptoms.meta());
        if (!rate || rate->is_far_above || rate->value * values < kLow) return std::nullopt;
        rate_now = base::format(", and a learning rate of {} acts as {} would", human_number(rate->value),
                                human_number(rate->value * values));
    }
    return Weight{
        is_from_elsewhere(symptoms) ? 0.8 : 0.92,
        base::format("The loss is the sum over {0:.0f} values: its gradient is {0:.0f} times that of "
                     "their mean{1}. Refuted if it still happens with the mean of the loss "
                     "(reduction=\"mean\").",
                     values, rate_now),
        finding->fix};
}

std::optional<Weight> learning_rate_too_high(const Symptoms& symptoms) {
    if (unshuffled(symptoms)) return std::nullopt;  // the loss jumps where the class changes
    if (loss_reduction(symptoms)) return std::nullopt;
    double score = 0;
    std::vector<std::string> reasons;
    const auto count = [&](double weight, std::string reason) {
        score += weight;
        reasons.push_back(std::move(reason));
    };
    double ratio = 0;
    if (const Finding* finding = exploded(symptoms)) {
        ratio = Symptoms::value(*finding, "update / weight", 0);
        if (ratio > 0.1)
            count(0.7, base::format("an update is {} times the weights' size", human_number(ratio)));
        else count(0.4, "gradients exploded");
    }
    if (symptoms.find("loss_not_decreasing", "rising") != nullptr) count(0.5, "the loss rises");
    for (const char* key : {"stalled", "relapse"}) {
        const Finding* finding = symptoms.find("loss_not_decreasing", key);
        if (finding == nullptr) continue;
        const model::Evidence* loss = Symptoms::evidence(*finding, "loss");
        const double highest = Symptoms::value(*finding, "highest loss", 0);
        if (loss != nullptr && loss->reference > 0 && highest > 2 * loss->reference &&
            highest > 2 * loss->value)
            count(0.5, base::format("the loss jumped to {} from {}", human_number(highest),
                                    human_number(loss->reference)));
        else if (finding->key == "relapse") count(0.4, "the loss fell back after it had learned");
    }
    if (const Finding* finding = symptoms.find("dead_relu"); finding != nullptr && !dead_from_start(*finding))
        count(0.5, base::format("ReLU units of {} that were alive at the first step died", finding->layer));
    if (const Finding* finding = symptoms.find("saturated_activation");
        finding != nullptr && finding->key != "between" && !flat_from_start(*finding))
        count(0.4, base::format("{} became saturated after it had not been", finding->layer));
    if (const Finding* finding = symptoms.find("non_finite", "train");
        finding != nullptr && !finding->tensor.starts_with("input/") &&
        Symptoms::evidence(*finding, "grew before") != nullptr)
        count(0.6, "values grew until they were not finite any more");
    // What was told ahead: of itself a cause, beside what came no further one.
    if (const Finding* ahead = symptoms.find("divergence_ahead"))
        count(reasons.empty() ? 0.5 : 0,
              base::format("steps overshot from step {} on, by {} times the loss that there was",
                           ahead->first_step == model::kThisStep ? ahead->step : ahead->first_step,
                           human_number(Symptoms::value(*ahead, kOvershoot, 0))));
    if (reasons.empty()) return std::nullopt;
    const Finding* summed = summed_loss(symptoms);
    if (summed != nullptr)
        count(0.2, base::format("the loss is a sum over {0:.0f} values, and so its gradient is {0:.0f} times "
                                "that of their mean",
                                Symptoms::value(*summed, kSummed, 1)));
    const std::optional<Rate> rate = highest_rate(symptoms.meta());
    if (rate && rate->is_far_above)
        count(0.2, base::format("{} with a learning rate of {} is far above what is usual", rate->optimizer,
                                human_number(rate->value)));
    else if (rate && rate->is_low) score -= 0.2;
    if (score < 0.4) return std::nullopt;
    std::string text;
    for (const std::string& reason : reasons) text += (text.empty() ? "" : "; ") + reason;
    text[0] = text[0] >= 'a' && text[0] <= 'z' ? static_cast<char>(text[0] - 'a' + 'A') : text[0];
    const double factor = ratio > 0.1 ? std::clamp(0.05 / ratio, 0.01, 0.1) : 0.1;
    const double most = is_from_elsewhere(symptoms) ? 0.8 : 0.9;
    if (summed != nullptr)
        return Weight{std::min(score, most),
                      text + ". Refuted if it still happens with the mean of the loss (reduction=\"mean\").",
                      summed->fix};
    const std::string refuted = ". Refuted if it still happens with a tenth of the learning rate.";
    // One number for one fault: that of the rule which measured the updates.
    if (const Finding* told = symptoms.find("learning_rate_too_high"); told != nullptr && !told->fix.empty())
        return Weight{std::min(score, most), text + refuted, told->fix};
    return Weight{
        std::min(score, most), text + refuted,
        rate ? base::format("Lower the learning rate from {} to about {} or less, and clip gradients with "
                            "torch.nn.utils.clip_grad_norm_.",
                            human_number(rate->value), base::format("{:.1g}", rate->value * factor))
             : std::string("Lower the learning rate ten-fold, and clip gradients with "
                           "torch.nn.utils.clip_grad_norm_.")};
}

std::optional<Weight> vanishing_gradient(const Symptoms& symptoms) {
    // Of weights that hardly move the gradients are still those of the start.
    const bool is_slow = symptoms.find("learning_rate_too_low") != nullptr;
    if (const Finding* time = symptoms.find("vanishing_gradient", "time"))
        return Weight{
            is_slow ? 0.65 : 0.8,
            time->message + " Refuted if a series that is cut down to its end is learned no better.",
            time->fix};
    const Finding* finding = symptoms.find("vanishing_gradient", "depth");
    if (finding == nullptr) return std::nullopt;
    return Weight{
        0.8,
        base::format(
            "Gradients reach {} {:.0e} times smaller than the last layer and shrink with every layer "
            "in between. Refuted if a net of half the depth does not learn either.",
            finding->layer, 1 / std::max(Symptoms::value(*finding, "early / last", 1), 1e-300)),
        finding->fix};
}

std::optional<Weight> exploding_by_itself(const Symptoms& symptoms) {
    if (const Finding* depth = symptoms.find("exploding_gradient", "depth"))
        return Weight{// Weights or inputs that are far too large are why.
                      symptoms.find("poor_weight_init") != nullptr ||
                              symptoms.find("input_not_normalized", "inputs") != nullptr
                          ? 0.8
                          : 0.92,
                      depth->message +
                          " Refuted if it does not grow with the default initialisation, or with "
                          "normalised blocks, and is lost all the same.",
                      depth->fix};
    // That nothing is clipped is a fact, and why it grows all the same.
    const Finding* finding = symptoms.find("exploding_gradient", "clip");
    if (finding == nullptr) finding = symptoms.find("exploding_gradient", "time");
    if (finding == nullptr) return std::nullopt;
    if (finding->key == "clip")
        return Weight{0.93,
                      finding->message + " Refuted if the loss is no better with clipping after backward().",
                      finding->fix};
    // What is so before the second update is no work of the learning rate.
    return Weight{finding->first_step <= 1 ? 0.92 : 0.88,
                  finding->message + " Refuted if it still happens with gradients clipped to norm 1.",
                  finding->fix};
}

std::optional<Weight> imbalance(const Symptoms& symptoms) {
    const Finding* finding = symptoms.find("class_imbalance", "weights_of_others");
    if (finding == nullptr) finding = symptoms.find("class_imbalance", "weights");
    if (finding != nullptr)
        return Weight{0.85,
                      finding->message + " Refuted if these weights are what a mistake in a class costs.",
                      finding->fix};
    finding = symptoms.find("class_imbalance", "imbalance");
    if (finding == nullptr) return std::nullopt;
    return Weight{
        0.8,
        "Rare classes are hardly ever in a batch, and the model has settled on not predicting them. "
        "Refuted if their recall stays at zero with balanced sampling.",
        finding->fix};
}

std::optional<Weight> overfit(const Symptoms& symptoms) {
    const Finding* finding = symptoms.find("overfit", "evaluation");
    if (finding == nullptr) {
        finding = symptoms.find("overfit", "gap");
        if (finding == nullptr) return std::nullopt;
        return Weight{0.6,
                      finding->message + " Refuted if the evaluation loss is no lower with twice the data.",
                      finding->fix};
    }
    return Weight{
        0.8,
        "The model learns its training data by heart: its loss on new data rises while that on the "
        "training data falls. Refuted if the evaluation data is of another kind than the training data.",
        finding->fix};
}

// The evidence that a loss is compared with that of guessing; null where that is not known.
const model::Evidence* guess_of(const Finding& finding) {
    for (const model::Evidence& item : finding.evidence)
        if (item.relation == "of guessing") return &item;
    return nullptr;
}

// How far labels differ between nearest inputs, of how far any two do; 0 where the inputs tell the labels.
std::optional<double> unlike_neighbours(const Finding& finding) {
    const model::Evidence* item = Symptoms::evidence(finding, "difference of labels between nearest inputs");
    if (item == nullptr) return std::nullopt;
    return item->value;
}
// It stalled at guessing, and has come below it since: labels tell something, or are known by heart.
bool is_below_guessing(const Finding& finding) {
    constexpr double kClearly = 0.95;
    const model::Evidence* guess = guess_of(finding);
    return guess != nullptr && guess->value < kClearly * guess->reference;
}
constexpr double kAlikeNeighbours = 0.5;    // below: the inputs tell the labels
constexpr double kUnlikeNeighbours = 0.85;  // above: they say nothing, as far as a distance tells

// Something random is done to the training's rows.
bool are_rows_changed(const Finding& stalled) {
    return Symptoms::evidence(stalled, "different rows of the training") != nullptr;
}

// Nothing is learned of rows that are other ones each time: what is done to them may take away what tells
// their labels, as turning does where the label is a direction. Nothing of it need show in the inputs.
std::optional<Weight> augmentation_destroys(const Symptoms& symptoms) {
    const Finding* stalled = symptoms.find("loss_not_decreasing", "stalled");
    if (stalled == nullptr || !are_rows_changed(*stalled)) return std::nullopt;
    const std::optional<double> unlike = unlike_neighbours(*stalled);
    if (is_below_guessing(*stalled) || (unlike && *unlike < kAlikeNeighbours)) return std::nullopt;
    const bool is_shown = unlike && *unlike > kUnlikeNeighbours;
    return Weight{
        is_shown ? 0.55 : 0.45,
        base::format(
            "The loss stays where it began, though neither the optimizer nor the gradients nor the "
            "activations look wrong, and the training's rows are other ones each time they come: something "
            "random is done to them{}. It may take away what tells the labels, as turning and mirroring do "
            "where the label is a direction, or an angle in radians that was meant in degrees. Refuted if "
            "the training gets no better without the augmentation; then labels may not belong to their "
            "inputs.",
            is_shown ? ", and those that are alike have labels no more alike than any two" : ""),
        "Train some hundred steps without the augmentation. If the loss falls then, leave out of it what "
        "changes the label, and weaken the rest; look at a dozen augmented samples: a person must be able to "
        "label them."};
}

std::optional<Weight> labels_do_not_match(const Symptoms& symptoms) {
    if (const Finding* changed = symptoms.find("label_noise", "changed"))
        return Weight{0.93, changed->message + " Refuted if the labels are meant to change.", changed->fix};
    if (const Finding* of_others = symptoms.find("labels_of_others"))
        // Whatever keeps a model from learning keeps it at the mean of all labels, too.
        return Weight{0.6,
                      of_others->message + " Refuted if a look at a dozen samples shows the right labels.",
                      of_others->fix};
    const Finding* finding = symptoms.find("overfit", "memorising");
    if (finding == nullptr) {
        // At guessing, and no rule sees anything else that would keep it there.
        const Finding* stalled = symptoms.find("loss_not_decreasing", "stalled");
        if (stalled == nullptr) return std::nullopt;
        const std::optional<double> unlike = unlike_neighbours(*stalled);
        if (unlike && *unlike < kAlikeNeighbours) return std::nullopt;  // they do belong
        const bool is_shown = unlike && *unlike > kUnlikeNeighbours;
        if (guess_of(*stalled) == nullptr && !is_shown) return std::nullopt;
        if (is_below_guessing(*stalled))
            return Weight{
                0.3,
                "The loss is below guessing by now: labels that do not belong to their inputs may be "
                "known by heart. Refuted if the loss on other data is below guessing, too.",
                "Look at a dozen samples of a batch with their labels."};
        const double because_unchanged = are_rows_changed(*stalled) ? 0 : 0.1;
        return Weight{
            (is_shown ? 0.5 : 0.3) + because_unchanged,
            base::format(
                "The loss stays {}, though neither the optimizer nor the gradients nor the activations look "
                "wrong{}: labels that do not belong to their inputs do that (shuffled "
                "apart, from a loader of their own, off by one). Refuted if a look at a dozen samples of a "
                "batch shows the right labels.",
                guess_of(*stalled) != nullptr ? "at guessing" : "where it began",
                is_shown ? ", and inputs that are alike have labels no more alike than any two" : ""),
            "Shuffle inputs and labels together: one Dataset that returns both, one DataLoader, one "
            "permutation; look at a dozen samples of a batch with their labels."};
    }
    const std::optional<double> unlike = unlike_neighbours(*finding);
    if (unlike && *unlike < kAlikeNeighbours)
        return Weight{
            0.5,
            "The model learns nothing that holds for the evaluation data, though in training inputs "
            "that are alike have labels that are alike: evaluation data of another kind, or whose "
            "labels do not belong to their inputs. Refuted if a look at a dozen samples shows the "
            "right labels there.",
            finding->fix};
    const bool is_shown = unlike && *unlike > kUnlikeNeighbours;
    return Weight{
        is_shown ? 0.85 : 0.75,
        base::format(
            "The model learns its training data by heart and nothing that holds for other data{}: labels "
            "that "
            "do not belong to their inputs, or evaluation data of another kind. Refuted if a look at a dozen "
            "samples shows the right labels in both sets.",
            is_shown ? ", and inputs that are alike have labels no more alike than any two" : ""),
        finding->fix};
}

// Where the operation that made the first NaN is known, that is the cause.
bool is_traced(const Finding& finding) {
    return finding.kind == "division_by_zero_norm" || finding.kind == "unstable_log_softmax";
}

std::optional<Weight> numerical_instability(const Symptoms& symptoms) {
    const Finding* finding = symptoms.find("non_finite");
    if (finding == nullptr || is_of_the_data(*finding) || is_traced(*finding)) return std::nullopt;
    const bool grew = Symptoms::evidence(*finding, "grew before") != nullptr;
    return Weight{
        grew ? 0.3 : 0.6,
        base::format("Values were of ordinary size until {} was not finite: an operation outside its "
                     "range. Refuted if the inputs of that step hold values that are not finite.",
                     finding->tensor),
        finding->fix};
}

std::optional<Weight> zero_division(const Symptoms& symptoms) {
    const Finding* finding = symptoms.find("non_finite");
    if (finding == nullptr || finding->kind != "division_by_zero_norm") return std::nullopt;
    if (Symptoms::evidence(*finding, "loss without a gradient") != nullptr)
        return Weight{
            0.8,
            base::format(
                "Values were of ordinary size until {} was not finite, right after a loss of exactly "
                "0, whose gradient is 0: 0/0 where it is divided by its norm. Refuted if nothing "
                "between backward() and the step divides by the size of the gradient.",
                finding->tensor),
            finding->fix};
    return Weight{
        0.8,
        base::format("Values were of ordinary size until {} was not finite, and there is a division by "
                     "a norm, a deviation or a sum to which nothing is added, or the root of what may be 0. "
                     "Refuted if no row of that step makes it 0.",
                     finding->tensor),
        finding->fix};
}

std::optional<Weight> log_of_probability(const Symptoms& symptoms) {
    const Finding* finding = symptoms.find("non_finite");
    if (finding == nullptr || finding->kind != "unstable_log_softmax") return std::nullopt;
    if (Symptoms::evidence(*finding, "logarithm of a sum of exponentials") != nullptr)
        return Weight{
            0.8,
            base::format("Values were of ordinary size until {} was not finite, and the logarithm of "
                         "a sum of exponentials is taken. Refuted if no value that exp() is given is "
                         "above 88 in that step, and not all of a sum are below -104.",
                         finding->tensor),
            finding->fix};
    return Weight{0.8,
                  base::format("Values were of ordinary size until {} was not finite, and the logarithm of a "
                               "softmax or sigmoid is taken. Refuted if no probability of that step is 0.",
                               finding->tensor),
                  finding->fix};
}

std::optional<Weight> dying(const Symptoms& symptoms) {
    const Finding* finding = symptoms.find("dead_relu");
    if (finding == nullptr) return std::nullopt;
    return Weight{0.5, base::format("Most units of {} pass nothing.", finding->layer), finding->fix};
}

std::optional<Weight> saturated(const Symptoms& symptoms) {
    const Finding* finding = symptoms.find("saturated_activation");
    if (finding == nullptr) return std::nullopt;
    if (finding->key == "gates")
        return Weight{0.86,
                      finding->message +
                          " Refuted if the training is no better with the biases that PyTorch gives them.",
                      finding->fix};
    if (finding->key == "between")
        return Weight{0.88,
                      finding->message +
                          " Refuted if the training is no better when that layer is given a tenth of it.",
                      finding->fix};
    if (finding->key == "flat" && flat_from_start(*finding))
        return Weight{
            0.84,
            base::format(
                "The layer {} is saturated from the first step on, before any update: its weights or "
                "its inputs are too large. Refuted if a smaller initialisation, or smaller inputs, do not "
                "take the values off the flat ends.",
                finding->layer),
            finding->fix};
    return Weight{0.45, base::format("Most values of {} lie at the flat ends.", finding->layer),
                  finding->fix};
}

std::optional<Weight> no_learning_signal(const Symptoms& symptoms) {
    const Finding* finding = symptoms.find("loss_not_decreasing", "stalled");
    if (finding == nullptr) return std::nullopt;
    if (const std::optional<Rate> rate = lowest_rate(symptoms.meta()); rate && rate->is_far_below)
        return Weight{
            0.5,
            base::format("The loss stands still, and a learning rate of {} is far below what is usual "
                         "for {}. Refuted if it does so with a hundred times as much.",
                         human_number(rate->value), rate->optimizer),
            base::format("Raise the learning rate from {} to about {}.", human_number(rate->value),
                         rate->optimizer == "SGD" ? "0.01" : "0.001")};
    if (is_below_guessing(*finding))
        return Weight{
            0.45,
            "The loss has left guessing, and falls far too slowly, though neither the gradients nor the "
            "activations look wrong: a learning rate that is far off, or a model that is too small, or of "
            "the "
            "wrong kind, for the task. Refuted if neither a wider model nor another learning rate is faster.",
            "Try a tenth and ten times the learning rate, and a wider or deeper model; look at a dozen "
            "samples "
            "of a batch with their labels."};
    const std::optional<double> unlike = unlike_neighbours(*finding);
    if (unlike && *unlike < kAlikeNeighbours)
        return Weight{
            0.45,
            "The loss stands still though neither the gradients nor the activations look wrong, and there is "
            "something to learn: inputs that are alike have labels that are alike. A model that cannot tell "
            "them apart, or parameters that the optimizer does not have. Refuted if the model cannot learn a "
            "single batch either.",
            "Try a wider model and a tenth and ten times the learning rate; check that the optimizer was "
            "given "
            "model.parameters()."};
    return Weight{
        0.35,
        "The loss stands still though neither the gradients nor the activations look wrong: labels that "
        "do not belong to their inputs, parameters that the optimizer does not have, or a task that "
        "the inputs say nothing about. Refuted if the model cannot learn a single batch either.",
        finding->fix};
}

// The order decides between equals: facts before judgements, what comes first in the data flow before
// what follows.
const std::vector<Hypothesis>& hypotheses() {
    static const std::vector<Hypothesis> table = {
        {"nan_input",
         "Input that is not finite",
         &non_finite_input,
         {"non_finite", "exploding_gradient", "loss_not_decreasing", "loss_spike"},
         {"dead_relu", "saturated_activation"},
         true},
        {"gradients_not_cleared",
         "Gradients not cleared",
         &gradients_not_cleared,
         {"gradients_not_cleared", "exploding_gradient", "loss_not_decreasing", "non_finite", "loss_spike",
          "divergence_ahead"},
         {"dead_relu", "saturated_activation"}},
        {"single_class_labels",
         "Labels of one class only",
         &single_class,
         {"class_imbalance", "loss_not_decreasing", "vanishing_gradient", "saturated_activation", "overfit"},
         {"dead_relu"}},
        {"dead_relu",
         "Dead ReLU layer from the start",
         &dead_at_start,
         {"dead_relu", "loss_not_decreasing", "vanishing_gradient", "class_imbalance"}},
        {"poor_weight_init",
         "Poor initialisation",
         &poor_initialisation,
         {"saturated_activation", "vanishing_gradient", "loss_not_decreasing", "exploding_gradient",
          "class_imbalance", "divergence_ahead"},
         {"dead_relu"}},
        {"loss_reduction",
         "Loss summed over the batch",
         &loss_reduction,
         {"exploding_gradient", "loss_not_decreasing", "non_finite", "class_imbalance", "loss_spike",
          "learning_rate_too_high", "gradient_clipped_to_nothing", "divergence_ahead"},
         {"dead_relu", "saturated_activation"}},
        {"learning_rate_too_high",
         "Learning rate too high",
         &learning_rate_too_high,
         {"exploding_gradient", "loss_not_decreasing", "non_finite", "class_imbalance", "loss_spike",
          "learning_rate_too_high", "divergence_ahead"},
         {"dead_relu", "saturated_activation"},
         true},
        {"exploding_gradient",
         "Exploding gradients",
         &exploding_by_itself,
         {"exploding_gradient", "loss_not_decreasing", "non_finite", "class_imbalance", "loss_spike",
          "divergence_ahead"},
         {"dead_relu", "saturated_activation"}},
        {"unshuffled_data",
         "Data not shuffled",
         &unshuffled,
         {"class_imbalance", "loss_not_decreasing", "learning_rate_too_high", "loss_spike",
          "targets_in_order", "divergence_ahead"},
         {"dead_relu"}},
        {"vanishing_gradient",
         "Vanishing gradients",
         &vanishing_gradient,
         {"vanishing_gradient", "loss_not_decreasing", "class_imbalance"}},
        {"class_imbalance", "Class imbalance", &imbalance, {"class_imbalance"}},
        {"destructive_augmentation",
         "Augmentation that destroys the samples",
         &augmentation_destroys,
         {"loss_not_decreasing"}},
        {"label_misalignment",
         "Labels that do not belong to their inputs",
         &labels_do_not_match,
         {"labels_of_others", "overfit", "loss_not_decreasing", "label_noise", "vanishing_gradient"}},
        {"overfit", "Overfitting", &overfit, {"overfit"}},
        {"division_by_zero_norm", "Division by zero", &zero_division, {"non_finite"}},
        {"unstable_log_softmax", "Logarithm of a softmax", &log_of_probability, {"non_finite"}},
        {"numerical_instability", "Numerical instability", &numerical_instability, {"non_finite"}},
        {"dying_relu",
         "Dying ReLU units",
         &dying,
         {"dead_relu", "loss_not_decreasing", "loss_spike"},
         {},
         true},
        {"saturated_activation",
         "Saturated activations",
         &saturated,
         {"saturated_activation", "loss_not_decreasing", "loss_spike", "underfit"},
         {},
         true},
        {"no_learning_signal", "Little or nothing is learned", &no_learning_signal, {"loss_not_decreasing"}},
    };
    return table;
}

bool contains(const std::vector<std::string_view>& names, std::string_view name) {
    return std::find(names.begin(), names.end(), name) != names.end();
}

std::vector<const Finding*> explained_by(const Hypothesis& hypothesis, const Symptoms& symptoms) {
    std::vector<const Finding*> explained;
    for (const Finding& finding : symptoms.all()) {
        if (!Symptoms::counts(finding)) continue;
        const bool died = contains(hypothesis.explains_if_died, finding.rule) && !dead_from_start(finding) &&
                          !flat_from_start(finding);
        if (died || contains(hypothesis.explains, finding.rule)) explained.push_back(&finding);
    }
    return explained;
}

constexpr double kMayBeMeant = 0.7;
constexpr double kPlain = 0.8;  // a net of a few units tells no classes apart, whatever their labels

// The causes that findings name themselves.
std::vector<Draft> named_causes(const Symptoms& symptoms) {
    std::vector<Draft> drafts;
    for (const FaultKind& kind : fault_kinds()) {
        const Finding* found = symptoms.find_kind(kind.kind);
        if (found == nullptr) continue;
        Draft draft;
        for (const Finding& finding : symptoms.all()) {
            if (!Symptoms::counts(finding)) continue;
            const bool since_start = dead_from_start(finding) || flat_from_start(finding);
            if (finding.kind == kind.kind || follows(finding.rule, finding.key, kind, since_start))
                draft.explained.push_back(&finding);
        }
        // Ranks in whose weights nothing shows that they are to be copies may be parts of a model;
        // gradients that are 0 late in a training may have been clipped away.
        const bool may_be_meant = found->key == "never_averaged" || found->key == "late";
        draft.cause.name = kind.kind;
        draft.cause.title = kind.title;
        draft.cause.confidence = may_be_meant           ? std::min(kind.confidence, kMayBeMeant)
                                 : found->key == "thin" ? kPlain
                                                        : kind.confidence;
        draft.cause.explanation = found->message + " " + std::string(kind.refuted);
        draft.cause.fix = found->fix;
        if (kind.in_time) draft.onset = found;
        drafts.push_back(std::move(draft));
    }
    return drafts;
}

// The finding that says where a cause is: of its own kind, else the first that it explains.
const Finding& told_by(const Cause& cause, std::span<const Finding> findings) {
    static const Finding kNone;
    const auto is_of_kind = [&](const Finding& finding) { return finding.kind == cause.name; };
    const auto is_explained = [&](const Finding& finding) {
        return std::find(cause.rules.begin(), cause.rules.end(), finding.rule) != cause.rules.end();
    };
    auto found = std::find_if(findings.begin(), findings.end(), is_of_kind);
    if (found == findings.end()) found = std::find_if(findings.begin(), findings.end(), is_explained);
    return found == findings.end() ? kNone : *found;
}

}  // namespace

std::vector<Cause> likely_causes(std::span<const Finding> findings,
                                 std::span<const model::RuleOutcome> outcomes,
                                 const model::WorkerMeta& meta) {
    const Symptoms symptoms(findings, meta);
    std::vector<Draft> drafts = named_causes(symptoms);
    for (const Hypothesis& hypothesis : hypotheses()) {
        std::optional<Weight> weight = hypothesis.weigh(symptoms);
        const bool is_named = std::any_of(drafts.begin(), drafts.end(), [&](const Draft& draft) {
            return draft.cause.name == hypothesis.name;
        });
        if (!weight || is_named) continue;
        Draft draft;
        draft.cause.name = hypothesis.name;
        draft.cause.title = hypothesis.title;
        draft.cause.confidence = weight->confidence;
        draft.cause.explanation = std::move(weight->explanation);
        draft.cause.fix = std::move(weight->fix);
        draft.explained = explained_by(hypothesis, symptoms);
        if (hypothesis.in_time) draft.onset = symptoms.find(hypothesis.explains.front());
        drafts.push_back(std::move(draft));
    }
    for (Draft& draft : drafts) weigh_evidence(draft, outcomes, meta);
    std::stable_sort(drafts.begin(), drafts.end(),
                     [](const Draft& a, const Draft& b) { return a.cause.confidence > b.cause.confidence; });
    // A cause stays only if it explains something that no likelier one does, or to show the choice that there
    // is where the likeliest is not likely.
    std::set<std::string> explained;
    std::vector<Draft> kept;
    for (Draft& draft : drafts) {
        const std::vector<std::string>& rules = draft.cause.rules;
        const bool adds = std::any_of(rules.begin(), rules.end(),
                                      [&](const std::string& rule) { return !explained.contains(rule); });
        const bool is_choice = kept.size() == 1 && !model::is_sure(kept.front().cause) && !rules.empty();
        if (!adds && !is_choice) continue;
        explained.insert(rules.begin(), rules.end());
        kept.push_back(std::move(draft));
    }
    note_better_ones(kept);
    std::vector<Cause> causes;
    for (Draft& draft : kept) {
        draft.cause.sources = source_lines(draft.cause.name, told_by(draft.cause, findings), meta);
        causes.push_back(std::move(draft.cause));
    }
    return causes;
}

}  // namespace traindbg::diagnose

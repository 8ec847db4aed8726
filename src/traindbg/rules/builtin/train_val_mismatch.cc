// Evaluation inputs that were prepared otherwise than those of the training.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/rules/augmentation.h"
#include "traindbg/rules/builtin/builtin.h"
#include "traindbg/rules/channel_order.h"
#include "traindbg/rules/exchanged_inputs.h"
#include "traindbg/rules/input_differences.h"
#include "traindbg/rules/input_names.h"
#include "traindbg/rules/input_values.h"
#include "traindbg/rules/known_rows.h"
#include "traindbg/rules/loop_facts.h"
#include "traindbg/rules/loss_arguments.h"
#include "traindbg/rules/loss_ratio.h"
#include "traindbg/rules/masked_inside.h"
#include "traindbg/rules/own_statistics.h"
#include "traindbg/rules/robust.h"
#include "traindbg/rules/training_loss.h"

namespace traindbg::rules {
namespace {

using base::human_number;

const model::RuleInfo kTrainValMismatch = {
    .name = "train_val_mismatch",
    .title = "Training and evaluation inputs differ",
    .summary = "The inputs of evaluations are of another size or level than those of the training.",
    .when =
        "Inputs of evaluations are distributed in another way than those of the training, were standardised "
        "by themselves, or the training's inputs drift away or are augmented beyond recognition.\n"
        "- Different inputs: of a floating-point input, five training batches and two evaluation batches "
        "were captured. The means differ by more than `shift` standard deviations of the values, or the "
        "standard deviations by more than `scale` times. In either case it is more than six times what "
        "training batches differ among themselves.\n"
        "- Different inputs (warning): the evaluation's loss is more than 1.3 times that of the training, or "
        "not known.\n"
        "- Different inputs, note only (info): the evaluation's loss is known and not more than 1.3 times "
        "that of the training.\n"
        "- Different inputs, note only (info): each sample has one value, spread evenly in training, and the "
        "evaluation's values go on where those end, as in data that are split by time.\n"
        "- Renumbered, not judged: inputs but for the first one where not every pass that was captured, of "
        "training and of evaluation, was given equally many. A list of a tensor per sample, of batches of "
        "another size, gives those that come after it other numbers.\n"
        "- Other batches, left out: an evaluation computes its loss of more rows of a table than the batch "
        "has whose inputs were captured, as where the model first steers what it is judged by.\n"
        "- Padding, not reported: both have exact zeros in a hundredth of their values or more, and the "
        "values that are not zero have the same mean and spread.\n"
        "- One evaluation batch is enough where no loss of evaluations is seen. It has 5000 values, and no "
        "fewer than a batch of the training, and its rows have four values or more. Three evaluations have "
        "the same rows. It is half of an evaluation, or its values reach `scale` times as far as the "
        "training's.\n"
        "- One evaluation batch is not enough where the evaluation's inputs are only narrower, or only have "
        "fewer zeros.\n"
        "- Standardised by itself: two or more columns of an evaluation (of a table, or channels of images), "
        "of 32 values or more, have a mean of 0 and a standard deviation of 1, within 3e-5. A warning if its "
        "loss is more than 1.3 times that of the training, else a note (info).\n"
        "- Standardised by itself, not reported: the evaluation has rows of the training, or the remembered "
        "rows are too few to tell. Neither where samples or batches are each standardised by themselves, nor "
        "for columns of two values.\n"
        "- Channels exchanged (warning): how far the first channel of images lies above the last one, in "
        "mean and in spread, differs between training and evaluation by a squared distance above 40 (in "
        "standard errors). With the evaluation's channels exchanged it is below 9, and below a tenth of "
        "that.\n"
        "- Channels exchanged, of which images: of floating point, with three channels before height and "
        "width of 8 pixels or more. 64 or more of the training and of an evaluation were looked at.\n"
        "- Channels exchanged: two evaluations in a row show it, and the evaluation's loss is more than 1.3 "
        "times that of the training.\n"
        "- Inputs exchanged: of two inputs of floating point and of one shape, how far the first one's mean "
        "and spread lie above those of the second differs between training and evaluation by a squared "
        "distance above 40 (in standard errors). With the evaluation's inputs exchanged it is below 9, and "
        "below a tenth of that.\n"
        "- Inputs exchanged, when: ten training batches or more and 64 evaluated rows were captured, in two "
        "batches or in one that comes at every evaluation. A warning if the evaluation's loss is more than "
        "1.3 times that of the training or not known, else a note (info).\n"
        "- Drift (warning): the training's first five batches were like the first one that was evaluated "
        "(means within 0.3 standard deviations, these within 1.3 times). Each of the last five, of fifteen "
        "or more, differs from the first five by `shift` or `scale`, and by six times the deviation that "
        "their changes from one to the next tell.\n"
        "- Drift is not reported of inputs that are computed by other models which are trained, nor of what "
        "the model returned itself and is given again (the state of a recurrent network), nor anew while one "
        "batch comes twice in a row in the last five.\n"
        "- destructive_augmentation (warning): the training's inputs are other ones each time, except for "
        "those of which nothing is left. They spread more than `noise` times as wide as the evaluation's, or "
        "hold exact zeros in a fifth more of their values. Either is by more than six times what batches "
        "differ among themselves. After `steps` steps the training's loss is still above `high` of that of "
        "guessing.\n"
        "- destructive_augmentation by colours (warning): the training's images are other ones each time, "
        "and the mean of their first channel lies as often above that of the last one as below: on average "
        "by less than a quarter of what it does in evaluation. The squared distance between both is above 40 "
        "(in standard errors), with channels exchanged, too.\n"
        "- For colours, the training's loss after `steps` steps is above two thirds of `high` of that of "
        "guessing.\n"
        "- destructive_augmentation, not reported: the evaluation's loss is below `high` of that of "
        "guessing, or below 85 % of the training's (what is left of the data teaches enough there), or the "
        "zeros are those of whole samples. These exceptions do not hold for zeros in four fifths more of the "
        "values.\n"
        "- destructive_augmentation, where no loss of evaluations is seen: one batch of 5000 values is "
        "enough, for zeros in four fifths more of the values or a spread four times as wide.\n"
        "- destructive_augmentation by the model (warning): it puts the zeros on itself in training mode. At "
        "three looks or more, four fifths more of what its first layer with weights is given are zeros than "
        "in evaluations, with no dropout in front of it. After `steps` steps the training's loss is above "
        "`high` of that of guessing.\n"
        "- destructive_augmentation by the model, not reported where it is no classification and the "
        "evaluation's loss is lower than the training's.",
    .why =
        "A model is judged on data that it never was prepared for: the evaluation says nothing of the "
        "training, and early stopping and the choice of a checkpoint go wrong with it.",
    .fix =
        "Use the same transform for both: fit mean and standard deviation on the training part and apply "
        "them to both; leave out of the evaluation only what is random. Inputs that drift: x = (x - mean) / "
        "std, which makes a new array, in place of x -= mean, which changes the data that the next epoch "
        "reads.",
    .healthy =
        "Augmentation; inputs that some samples of the training go without; parts of data that differ a "
        "little; noise that is added in training only; batches that are padded with more zeros in one part "
        "than in the other; numbers of tokens and categories, which are not looked at.",
    .cost =
        "One pass over the model's inputs at the first 10 steps and then at every 50th, of the training and "
        "of evaluations each.",
    .original = "",
    .source = "Islam et al., \"A comprehensive study on deep learning bug characteristics\", FSE 2019",
    .severity = model::Severity::kWarning,
    .parameters = {{"shift", "standard deviations", 0.7, 0.1, 100, "difference of the means"},
                   {"scale", "times", 1.8, 1.1, 1e6, "ratio of the standard deviations"},
                   {"noise", "times", 1.25, 1.01, 1e6, "ratio of them that random augmentation adds"},
                   {"high", "share", 0.6, 0.01, 10, "of the loss of guessing, at which little is learned"},
                   {"steps", "steps", 100, 20, 1e9, "steps that a training has to learn something"}},
};

class TrainValMismatch final : public Rule {
  public:
    explicit TrainValMismatch(const Parameters& parameters)
        : limits_{.shift = parameters.at("shift"), .scale = parameters.at("scale")},
          augmentation_{.noise = parameters.at("noise"),
                        .high = parameters.at("high"),
                        .steps = static_cast<std::uint64_t>(parameters.at("steps"))},
          inside_(augmentation_) {}

    void on_step(const model::StepView& step, FindingSink& sink) override {
        const bool is_evaluation = step.mode() == model::Mode::kEval;
        if (!is_evaluation && step.mode() != model::Mode::kTrain) return;
        guessing_.observe(step);
        rows_.observe(step);
        if (!is_evaluation && inside_.judge(step, guessing_, ratio_.value(), sink)) ++judged_;
        ratio_.observe(step);
        const std::optional<double> ratio = ratio_.value();
        const bool has_own = own_.observe(step);
        if ((has_own || is_evaluation) && own_.judge(ratio, sink)) ++judged_;
        const bool has_channels = channels_.observe(step);
        if ((has_channels || is_evaluation) && channels_.judge(ratio, sink)) ++judged_;
        names_.count(step);
        exchanged_.observe(step);
        judged_ += exchanged_.judge(step, names_, rows_, ratio, sink);
        if (!take_inputs(step)) return;
        ++judged_;
        for (auto& [id, input] : inputs_) judge(step, id, input, ratio, sink);
    }
    [[nodiscard]] std::uint64_t steps_judged() const override { return judged_; }
    [[nodiscard]] std::string why_not_judged() const override {
        return "no inputs of floating point were seen both in training and in evaluation; model.eval() marks "
               "one";
    }

  private:
    static constexpr std::string_view kFirstInput = "input/0";  // whose channels are looked at

    // What is said of an input, in the order in which one hides the next.
    enum class Verdict : std::uint8_t { kNothing = 0, kDrift, kAugmentation, kDifferent, kHarmless };

    struct Input {
        InputValues values;
        bool is_data = false;  // of the only model, and not computed by others that are trained
        bool has_drifted = false;
        std::string firing;
    };

    // Whether one of them can be compared.
    bool take_inputs(const model::StepView& step) {
        bool is_any_known = false;
        const bool has_loss_of_others = step.mode() == model::Mode::kEval && is_loss_of_others(step);
        for (const model::TensorSample& sample : step.record->tensors) {
            const model::TensorInfo& info = step.info(sample.tensor);
            if (has_loss_of_others || !is_compared_input(info, sample.statistics)) continue;
            Input& input = inputs_[sample.tensor];
            if (step.mode() == model::Mode::kEval) {
                input.values.add_evaluation(sample.statistics);
            } else {
                input.values.add_training(info, sample.statistics);
                names_.note_computed(step);
                input.is_data = names_.is_data(info.name);
            }
            is_any_known = is_any_known || input.values.is_known();
        }
        return is_any_known;
    }

    // The model is called for several batches before one has a loss, and the first one's inputs are captured.
    // They say nothing of those that have the loss, and may be but the first moments of what it makes.
    [[nodiscard]] static bool is_loss_of_others(const model::StepView& step) {
        const std::optional<LoopFact> rows = loop_fact(step, "rows_evaluated");
        if (!rows) return false;
        for (const model::TensorSample& sample : step.record->tensors) {
            const model::TensorInfo& info = step.info(sample.tensor);
            if (info.name != kFirstInput || info.shape.size() != 2) continue;  // of others, rows may vary
            const auto of_row = static_cast<double>(values_in_row(info));
            return static_cast<double>(sample.statistics.count) < rows->value * of_row;
        }
        return false;
    }

    [[nodiscard]] bool are_colours_turned(std::string_view name) const {
        return name == kFirstInput && channels_.are_colours_turned();
    }
    [[nodiscard]] bool is_destroyed(std::string_view name, const InputValues& values,
                                    const std::optional<double>& ratio) const {
        const TrainingLoss& loss = guessing_.loss();
        if (!rows_.are_others() || loss.count() < augmentation_.steps || loss.is_game()) return false;
        const std::optional<double> share = guessing_.share();
        return share &&
               is_augmented_away(
                   values, {.share = *share, .ratio = ratio, .are_colours_turned = are_colours_turned(name)},
                   augmentation_);
    }
    [[nodiscard]] Verdict verdict_of(std::string_view name, const Input& input,
                                     const std::optional<double>& ratio) const {
        if (!names_.is_one_input(name)) return Verdict::kNothing;
        if (input.has_drifted) return Verdict::kDrift;
        if (is_destroyed(name, input.values, ratio)) return Verdict::kAugmentation;
        if (!do_inputs_differ(input.values, limits_, rows_)) return Verdict::kNothing;
        return may_be_worse(ratio) && !goes_on(input.values) ? Verdict::kDifferent : Verdict::kHarmless;
    }
    [[nodiscard]] static std::string key_of(Verdict verdict, model::TensorId id) {
        switch (verdict) {
            case Verdict::kNothing: return {};
            case Verdict::kDrift: return base::format("drift {}", id);
            case Verdict::kAugmentation: return base::format("augmentation {}", id);
            case Verdict::kDifferent: return base::format("inputs {}", id);
            case Verdict::kHarmless: return base::format("inputs_harmless {}", id);
        }
        return {};
    }

    void judge(const model::StepView& step, model::TensorId id, Input& input,
               const std::optional<double>& ratio, FindingSink& sink) const {
        const InputValues& values = input.values;
        if (!values.is_known() || !(values.training.all.std > 0)) return;
        const bool is_training = step.mode() == model::Mode::kTrain;
        if (is_training) input.has_drifted = input.is_data && has_drifted(values, limits_, input.has_drifted);
        const std::string& name = step.info(id).name;
        const Verdict verdict = verdict_of(name, input, ratio);
        const std::string key = key_of(verdict, id);
        if (!input.firing.empty() && input.firing != key) sink.clear(input.firing);
        input.firing = key;
        if (key.empty() || (verdict == Verdict::kDrift && !is_training)) return;

        model::Finding finding;
        finding.key = key;
        finding.mode = verdict == Verdict::kDrift ? model::Mode::kTrain : model::Mode::kEval;
        finding.severity = verdict == Verdict::kHarmless ? model::Severity::kInfo : model::Severity::kWarning;
        finding.tensor = name;
        if (verdict == Verdict::kDrift) say_drift(values, step.step(), finding);
        else if (verdict == Verdict::kAugmentation) say_augmentation(values, finding);
        else say_difference(values, ratio, finding);
        const model::Statistics &ours = values.training.all, &theirs = values.evaluation.all;
        finding.evidence.push_back({"mean in evaluation", theirs.mean, "in training", ours.mean});
        finding.evidence.push_back({"standard deviation in evaluation", theirs.std, "in training", ours.std});
        finding.evidence.push_back({"means of training batches differ by", values.noise_of_means(), "", 0});
        finding.plots = {{name, "mean"}, {name, "std"}};
        sink.fire(std::move(finding));
    }
    [[nodiscard]] static std::string compared(std::string_view name, const InputValues& values) {
        const model::Statistics &ours = values.training.all, &theirs = values.evaluation.all;
        return base::format(
            "{} has mean {} and standard deviation {} in training, {} and {} in evaluation (from {} to {}, "
            "and from {} to {}).",
            name, human_number(ours.mean), human_number(ours.std), human_number(theirs.mean),
            human_number(theirs.std), human_number(ours.min), human_number(ours.max),
            human_number(theirs.min), human_number(theirs.max));
    }
    static void say_difference(const InputValues& values, const std::optional<double>& ratio,
                               model::Finding& finding) {
        finding.message = compared(finding.tensor, values);
        if (ratio)
            finding.message +=
                base::format(" The evaluation's loss is {:.3g} times that of the training.", *ratio);
        finding.fix =
            "Prepare both alike: the same transform, with mean and standard deviation of the training part; "
            "leave out of the evaluation only what is random.";
    }
    static void say_drift(const InputValues& values, model::StepIndex step, model::Finding& finding) {
        constexpr std::size_t kFirst = InputValues::kFirst;
        const model::Statistics &first = values.first.all, &evaluated = values.first_evaluated;
        const auto middle = [](const Recent& recent) {
            const auto last = recent.last(kFirst);
            return median({last.begin(), last.end()});
        };
        finding.message = base::format(
            "The training's {} has drifted away: mean {} and standard deviation {} in its first {} batches, "
            "about as in the first evaluation ({} and {}), and {} and {} in the last {} that were looked at, "
            "up to step {}.",
            finding.tensor, human_number(first.mean), human_number(first.std), kFirst,
            human_number(evaluated.mean), human_number(evaluated.std), human_number(middle(values.means)),
            human_number(middle(values.stds)), kFirst, step);
        finding.fix =
            "Look for what changes the data in place where it is read or prepared: x -= mean, x /= std, "
            "sub_(), div_(), out=..., of an array or tensor that the data set keeps (a slice, .numpy() and "
            "torch.from_numpy are no copies). Write x = (x - mean) / std.";
    }
    void say_augmentation(const InputValues& values, model::Finding& finding) const {
        const double share = guessing_.share().value_or(1);
        const bool is_of_colours = are_colours_turned(finding.tensor);
        finding.kind = "destructive_augmentation";
        finding.message = compared(finding.tensor, values);
        if (is_of_colours)
            finding.message += base::format(
                " The mean of the first channel less that of the last is {} in evaluation and {} in "
                "training, where colours are turned one way and another.",
                human_number(channels_.in_evaluation()), human_number(channels_.in_training()));
        finding.message += base::format(
            " The training's rows are other ones each time, and after {} steps its loss is {:.0f} % of that "
            "of guessing: the augmentation leaves too little of what is to be learned.",
            guessing_.loss().count(), 100 * share);
        finding.fix = is_of_colours
                          ? "Weaken the augmentation of colours: 0.5 turns the hue (ColorJitter, adjust_hue) "
                            "all round, and 0.02 to 0.1 are usual; channels in any order do likewise. Look "
                            "at a dozen augmented samples: a person must be able to label them."
                          : "Weaken the augmentation: noise well below the spread of the inputs, crops and "
                            "erased parts that leave most of a sample, flips and scales under which the "
                            "label still holds. Look at a dozen augmented samples: a person must be able to "
                            "label them.";
        finding.evidence.push_back({"share of the loss of guessing", share, "limit", augmentation_.high});
    }

    InputLimits limits_;
    AugmentationLimits augmentation_;
    std::uint64_t judged_ = 0;
    Guessing guessing_;
    LossRatio ratio_;
    KnownRows rows_;
    MaskedInside inside_;
    OwnStatistics own_;
    ChannelOrder channels_;
    InputNames names_;
    ExchangedInputs exchanged_;
    std::map<model::TensorId, Input> inputs_;
};

std::vector<model::Requirement> train_val_mismatch_needs(const Parameters&) {
    using enum model::Mode;
    constexpr auto kStatistics = model::What::kStatistics;
    std::vector<model::Requirement> all = {
        {"losses", kTrain, kStatistics, {.every = 1}, kTrainValMismatch.name},
        {"losses", kEval, kStatistics, {.every = 1}, kTrainValMismatch.name},
        {"inputs", kTrain, kStatistics, {.every = 50, .dense_until = 10}, kTrainValMismatch.name},
        {"inputs", kEval, kStatistics, {.every = 50, .dense_until = 10}, kTrainValMismatch.name}};
    for (model::Requirement& more : loss_requirements(kTrainValMismatch.name)) all.push_back(std::move(more));
    for (model::Requirement& more : argument_requirements(kTrainValMismatch.name))
        all.push_back(std::move(more));
    for (model::Requirement& more : row_requirements(kTrainValMismatch.name)) all.push_back(std::move(more));
    return all;
}

}  // namespace

RuleEntry builtin::train_val_mismatch() {
    return {&kTrainValMismatch, &train_val_mismatch_needs, [](const Parameters& p) -> std::unique_ptr<Rule> {
                return std::make_unique<TrainValMismatch>(p);
            }};
}

}  // namespace traindbg::rules

// The model answers the same to every input.

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/rules/builtin/builtin.h"
#include "traindbg/rules/loop_facts.h"
#include "traindbg/rules/loss_arguments.h"
#include "traindbg/rules/updates.h"

namespace traindbg::rules {
namespace {

const model::RuleInfo kConstantOutput = {
    .name = "constant_output",
    .title = "Output does not depend on the input",
    .summary = "The model answers the same to all samples of a batch, although their labels differ.",
    .when =
        "The model's predictions, one value per sample, are the same for all samples of a batch, or a "
        "softmax is taken over a single unit and is always 1.\n"
        "- softmax_single_unit (error): in three captured steps, a loss function is given one value per "
        "sample, and all of them are exactly 1, or 0 behind a log_softmax, as a softmax over one unit "
        "makes them. Their labels are not all 1, too; or a softmax was seen to return one value per sample.\n"
        "- softmax_single_unit (error): in three captured steps, cross_entropy is given one class only.\n"
        "- softmax_single_unit (error): in three captured steps, a loss function is given one value per "
        "sample, all of them are one number within 0.01 of 1 while their labels differ, and a softmax over "
        "the one value of each sample is the last in the model before the loss. Only a change of shape, a "
        "clamp, a logarithm or a number may come after it.\n"
        "- softmax_single_unit, of one value per sample: steps with a learning rate of 0 do not count, and "
        "predictions that vary later take it back.\n"
        "- softmax_single_unit (warning): at three steps in a row, a softmax in the model is taken over a "
        "dimension of size 1 while another dimension beside the batch is larger, as with scores (batch, "
        "positions, 1).\n"
        "- Not judged: such a softmax where its scores compare queries with keys.\n"
        "- constant_output (error): a loss function is given one value per sample. In each of the last "
        "`looks` captured steps, all samples of the batch have one value, equal to the last few bits, and "
        "their labels differ. Steps with a learning rate of 0 do not count.",
    .why = "A constant has no gradient with respect to the input: nothing can be learned from here on.",
    .fix =
        "A single unit goes with sigmoid (binary_cross_entropy_with_logits without either), or is made two "
        "units for cross_entropy. Otherwise look for what cuts the input off: dead ReLUs, a softmax or a "
        "mean over the wrong dimension, an input that is overwritten or multiplied by zero, weights that are "
        "all zero.",
    .healthy =
        "A last layer that begins at zero, which is constant at the first step only, or while the learning "
        "rate is 0; attention over a bag of one, whose sum goes through weights; a choice among one, as "
        "of a mixture of one expert; batches of one sample; labels that are all equal, as in the losses of a "
        "GAN; a constant whose loss is computed beside that of the model, to compare them: nothing is "
        "trained by it.",
    .cost = "One pass over what the loss functions are given at the first 10 steps and then at every 50th.",
    .original = "",
    .source = "Karpathy, \"A recipe for training neural networks\", 2019 (input-independent baseline)",
    .severity = model::Severity::kError,
    .parameters = {{"looks", "captures", 10, 3, 1000, "captured steps in a row that must show it"}},
};

class ConstantOutput final : public Rule {
  public:
    explicit ConstantOutput(const Parameters& parameters)
        : looks_(static_cast<std::uint64_t>(parameters.at("looks"))) {}

    void on_step(const model::StepView& step, FindingSink& sink) override {
        if (step.mode() != model::Mode::kTrain) return;
        rates_.observe(step);
        bool any = false;
        if (const std::optional<LoopFact> unit = loop_fact(step, "softmax_of_unit"); unit && !unit_)
            unit_ = Unit{std::string(unit->place), unit->value};
        for (const LossCall& call : loss_calls(step)) {
            if (call.label == nullptr || call.labelled == nullptr) continue;
            if (values_per_sample(call) != 1 || call.predicted->count < 4) continue;
            any = true;
            look(step, call, sink);
        }
        for (const LoopFact& fact : loop_facts(step, "softmax_of_one")) {
            any = true;
            look_inside(step, fact, sink);
        }
        if (any) ++judged_;
    }
    [[nodiscard]] std::uint64_t steps_judged() const override { return judged_; }
    [[nodiscard]] std::string why_not_judged() const override {
        return "no loss function of torch.nn.functional that is given one value per sample was seen";
    }

  private:
    struct Seen {
        std::uint64_t in_a_row = 0, single_unit = 0;
        model::StepIndex first = 0, first_single = 0, last_single = 0;
    };
    struct Unit {  // of a softmax over the one value of each sample
        std::string place;
        double line = 0;
    };

    // A softmax in the model, which the loss function is not given.
    void look_inside(const model::StepView& step, const LoopFact& fact, FindingSink& sink) {
        Seen& seen = inside_[std::string(fact.place)];
        const bool goes_on = seen.single_unit > 0 && step.step() == seen.last_single + 1;
        seen.single_unit = goes_on ? seen.single_unit + 1 : 1;
        if (!goes_on) seen.first_single = step.step();
        seen.last_single = step.step();
        const bool is_of_predictions = std::any_of(
            seen_.begin(), seen_.end(), [](const auto& one) { return one.second.single_unit > 0; });
        if (seen.single_unit < kEnough || is_of_predictions) return;
        model::Finding finding;
        finding.key = base::format("softmax_of_one {}", fact.place);
        finding.kind = "softmax_single_unit";
        finding.severity = model::Severity::kWarning;  // of a choice of one, by its settings, it is right
        finding.first_step = seen.first_single;
        finding.tensor = fact.tensor;
        finding.layer = fact.place;
        const std::string where = fact.place.empty() ? "the model" : std::string(fact.place);
        finding.message = base::format(
            "{} takes a softmax over a dimension of size 1{}: every value becomes 1, whatever it was, and "
            "nothing before it gets a gradient from it.",
            where, fact.value > 0 ? base::format(" (line {:.0f})", fact.value) : "");
        finding.fix =
            "Give the softmax the dimension that the values compete along, such as dim=1 of scores (batch, "
            "positions, 1). If each position chooses among one by its settings, leave it.";
        finding.evidence.push_back({"values that compete", 1, "", 0});
        sink.fire(std::move(finding));
    }

    static std::int64_t values_per_sample(const LossCall& call) {
        std::int64_t values = 1;
        for (std::size_t i = 1; i < call.prediction->shape.size(); ++i) values *= call.prediction->shape[i];
        return values;
    }

    // Among the activations that other rules ask for.
    static bool has_softmax_of_one(const model::StepView& step) {
        return std::ranges::any_of(step.record->tensors, [&step](const model::TensorSample& sample) {
            const model::TensorInfo& info = step.info(sample.tensor);
            return info.role == model::Role::kActivation && info.shape.size() == 2 && info.shape[1] == 1 &&
                   (info.module_type == "Softmax" || info.name.find(".softmax") != std::string::npos);
        });
    }

    void look(const model::StepView& step, const LossCall& call, FindingSink& sink) {
        const model::Statistics& values = *call.predicted;
        Seen& seen = seen_[call.prediction->id];
        const std::vector<std::int64_t>& shape = call.prediction->shape;
        const bool has_unit = shape.size() >= 2;
        // cross_entropy of one column is zero whatever the column holds.
        const bool one_class = has_unit && call.function == "cross_entropy";
        const bool behind_softmax =
            values.min == values.max && (values.max == 1 || (call.function == "nll_loss" && values.max == 0));
        const bool labels_differ = call.labelled->min != call.labelled->max;
        const bool is_constant = values.max - values.min <= 2.5e-7 * std::abs(values.max);
        // What a softmax over one unit returned need not reach the loss as it was.
        const bool is_of_unit = unit_ && is_constant && labels_differ && std::abs(values.max - 1) <= kNearOne;
        // A discriminator's labels of what is real are all 1, too.
        const bool is_of_shares = call.function == "binary_cross_entropy" || call.function == "nll_loss";
        const bool says_more = labels_differ || call.labelled->mean != values.max ||
                               (behind_softmax && is_of_shares && has_softmax_of_one(step));
        const bool is_of_one = is_of_unit || (behind_softmax && says_more);
        // A last layer that begins at a constant stays there until there is a learning rate.
        const bool is_at_rest = rates_.is_known() && rates_.now() == 0;
        if (one_class || is_of_one) {
            if (is_at_rest && !one_class) return;
            if (seen.single_unit++ == 0) seen.first_single = step.step();
        } else {
            if (seen.single_unit >= kEnough) sink.clear(base::format("single_unit {}", call.function));
            seen.single_unit = 0;
        }
        if (!is_constant) {
            if (seen.in_a_row >= looks_) sink.clear(base::format("constant {}", call.function));
            seen.in_a_row = 0;
        } else if (labels_differ && !is_at_rest && seen.in_a_row++ == 0) {
            seen.first = step.step();
        }
        if (seen.single_unit >= kEnough) return fire_single_unit(seen, call, one_class, sink);
        if (is_constant && seen.in_a_row >= looks_) fire_constant(seen, step, call, sink);
    }

    void fire_single_unit(const Seen& seen, const LossCall& call, bool one_class, FindingSink& sink) const {
        model::Finding finding;
        finding.key = base::format("single_unit {}", call.function);
        finding.kind = "softmax_single_unit";
        finding.severity = model::Severity::kError;
        finding.first_step = seen.first_single;
        finding.tensor = base::format("loss/{}", call.function);
        finding.message =
            one_class
                ? base::format(
                      "cross_entropy is given one class only (shape {}): its softmax over one unit is always "
                      "1, so loss and gradients are zero.",
                      base::join(call.prediction->shape, "x"))
                : base::format(
                      "Every prediction given to {} is exactly {}: that is what a softmax over a single unit "
                      "returns, whatever the unit holds, and its gradient is zero.",
                      call.function, call.predicted->max);
        if (unit_) {
            finding.layer = unit_->place;
            if (!one_class)
                finding.message = base::format(
                    "Every prediction given to {} is {}: {} takes a softmax over the one value of each "
                    "sample{}, which is always 1, and its gradient is zero.",
                    call.function, base::human_number(call.predicted->max),
                    unit_->place.empty() ? std::string("the model") : unit_->place,
                    unit_->line > 0 ? base::format(" (line {:.0f})", unit_->line) : std::string());
        }
        finding.fix =
            "Use binary_cross_entropy_with_logits on the unit as it is (no softmax), or make two units for "
            "cross_entropy.";
        finding.evidence.push_back(
            {"smallest prediction", call.predicted->min, "largest", call.predicted->max});
        finding.evidence.push_back({"units", 1, "", 0});
        finding.plots = {{call.prediction->name, "mean"}};
        sink.fire(std::move(finding));
    }

    static void fire_constant(const Seen& seen, const model::StepView& step, const LossCall& call,
                              FindingSink& sink) {
        model::Finding finding;
        finding.key = base::format("constant {}", call.function);
        finding.severity = model::Severity::kError;
        finding.first_step = seen.first;
        finding.tensor = call.prediction->name;
        finding.message = base::format(
            "All {} predictions of a batch given to {} are {} at step {}, and all are equal in each of {} "
            "captured steps since step {}; the labels reach from {} to {}.",
            call.predicted->count, call.function, base::human_number(call.predicted->max), step.step(),
            seen.in_a_row, seen.first, base::human_number(call.labelled->min),
            base::human_number(call.labelled->max));
        finding.fix =
            "Find the layer where the samples become equal: compare the standard deviation of each layer's "
            "output over a batch. Dead ReLUs, a mean or softmax over the wrong dimension and zero weights do "
            "this.";
        finding.evidence.push_back({"spread of the predictions", call.predicted->max - call.predicted->min,
                                    "of the labels", call.labelled->max - call.labelled->min});
        finding.plots = {{call.prediction->name, "std"}};
        sink.fire(std::move(finding));
    }

    static constexpr std::uint64_t kEnough = 3;  // captured steps
    static constexpr double kNearOne = 0.01;

    std::uint64_t looks_;
    std::uint64_t judged_ = 0;
    std::optional<Unit> unit_;
    LearningRates rates_;
    std::map<std::string, Seen, std::less<>> inside_;  // by the module
    std::map<model::TensorId, Seen> seen_;
};

std::vector<model::Requirement> constant_output_needs(const Parameters&) {
    std::vector<model::Requirement> all = argument_requirements(kConstantOutput.name);
    all.push_back(rate_requirement(kConstantOutput.name));
    return all;
}

}  // namespace

RuleEntry builtin::constant_output() {
    return {&kConstantOutput, &constant_output_needs,
            [](const Parameters& p) -> std::unique_ptr<Rule> { return std::make_unique<ConstantOutput>(p); }};
}

}  // namespace traindbg::rules

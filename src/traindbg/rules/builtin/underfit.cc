// A training that stands still far from fitting its own data.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/rules/builtin/builtin.h"
#include "traindbg/rules/far_from_fit.h"

namespace traindbg::rules {
namespace {

using base::human_number;

const model::RuleInfo kUnderfit = {
    .name = "underfit",
    .title = "Underfit",
    .summary = "The training learned something, and stands still far from fitting its own training data.",
    .when =
        "At the end of the run: the training has learned something, its loss no longer falls, and much of "
        "the loss of the best constant answer is left.\n"
        "- Judged: runs of `min_steps` steps or more with the loss of a known function.\n"
        "- Has learned: the loss has fallen by more than three standard errors and by a tenth of its first "
        "value.\n"
        "- Far from fitting: the loss is still more than `share` of what the best constant answer gives "
        "(the entropy of the labels, or the variance of the targets), and less than 95 % of it.\n"
        "- Standing still: over the last third of the run the loss has no trend (Mann-Kendall z between -2 "
        "and 2.5) and fell by no more than 5 %. It was never below nine tenths of that level for half as "
        "long.\n"
        "- Accuracy: where labels are counted, less than `accuracy` of them are predicted, in training "
        "mode.\n"
        "- Evaluation: the last one by the same function, where there is one, is as bad, within `gap`.\n"
        "- Nearest inputs: where their labels can be compared, they must differ by less than 60 % of the "
        "share that is left. Then six tenths of `share` are enough.\n"
        "- Not judged: the learning rate was below a hundredth of its highest over that time, the loss is "
        "a sum of several, or it is that of a game, as in a GAN.\n"
        "- Note only (info): in general, as the floor of noise in the targets looks the same.\n"
        "- Warning, where it is more certain that the inputs tell more: more than `share` is left, an "
        "evaluation is as bad, and labels of nearest inputs differ by less than a third of what is left "
        "and by less than `alike`.\n"
        "- Also needed for a warning: of labels that are counted, more than three times as many are missed "
        "as those in which nearest inputs differ. Labels of yes or no must not be probabilities, and a yes "
        "must have no weight of its own.",
    .why =
        "A model that does not fit what it is trained on has nothing to give to other data either. More of "
        "the same steps, or more data, do not help.",
    .fix =
        "See whether the model can learn a few batches by heart. If not: more or wider layers, inputs that "
        "tell more, less dropout and weight decay, another learning rate. If it can, and longer training "
        "does not help, it is at the floor of the noise in the targets.",
    .healthy =
        "Targets that are as noisy as that: a regression at its noise floor, returns of shares. A loss that "
        "still falls; an evaluation that is much better (dropout and augmentation make training harder) or "
        "much worse (overfit); a loss that has been lower. Findings above info beside this note, such as "
        "`low_capacity`, `over_regularized`, `learning_rate_too_high` or `label_noise`, say why.",
    .cost =
        "One number a step, of training and of evaluation; the classes of every 5th batch; statistics of "
        "what the loss was given at some steps; a comparison of some hundred rows of the first inputs with "
        "each other, once.",
    .original = "",
    .source =
        "Rauschmayr et al., \"Amazon SageMaker Debugger: a system for real-time insights into machine "
        "learning model training\", MLSys 2021 (Underfit); Cover, Hart, \"Nearest neighbor pattern "
        "classification\", IEEE Trans. Information Theory 13 (1967)",
    .severity = model::Severity::kInfo,
    .parameters = {{"min_steps", "steps", 300, 100, 1e9, "steps with a loss before it judges"},
                   {"share", "share", 0.5, 0.01, 0.95, "of the loss of the best constant answer, left"},
                   {"accuracy", "share", 0.9, 0.01, 1, "of the labels, in training, from which on it fits"},
                   {"gap", "share", 0.25, 0, 10, "between training and evaluation, that counts as none"},
                   {"alike", "share", 0.2, 0, 1,
                    "difference of labels between nearest inputs, that is small"}},
};

class Underfit final : public Rule {
  public:
    explicit Underfit(const Parameters& parameters)
        : min_steps_(static_cast<std::uint64_t>(parameters.at("min_steps"))),
          share_(parameters.at("share")),
          training_({.min_steps = min_steps_,
                     .share = share_,
                     .share_told = kTold * share_,
                     .alike = parameters.at("alike"),
                     .accuracy = parameters.at("accuracy"),
                     .gap = parameters.at("gap")}) {}

    void on_step(const model::StepView& step, FindingSink&) override {
        training_.observe(step);
        if (step.mode() == model::Mode::kTrain) last_ = step.step();
    }
    void on_end(FindingSink& sink) override {
        training_.end();
        if (const std::optional<FarFromFit::Found> found = training_.found()) fire(*found, sink);
    }
    [[nodiscard]] std::uint64_t steps_judged() const override {
        return training_.count() >= min_steps_ ? training_.count() : 0;
    }
    [[nodiscard]] std::string why_not_judged() const override {
        if (training_.loss().count() < min_steps_)
            return base::format("fewer than {} steps with a loss were seen", min_steps_);
        return "it is not known how large the loss of the best constant answer is";
    }

  private:
    void fire(const FarFromFit::Found& found, FindingSink& sink) const {
        model::Finding finding;
        finding.key = "training";
        const bool is_certain = found.is_certain && found.share > share_;
        finding.severity = is_certain ? model::Severity::kWarning : model::Severity::kInfo;
        finding.step = last_;
        finding.first_step = found.since;
        finding.tensor = training_.loss().tensor();
        finding.message = base::format(
            "From step {} on the training loss falls no more, and it is {} at the end (step {}), {:.0f} % of "
            "what one answer to all inputs gives ({}).",
            found.since, human_number(found.level), last_, 100 * found.share, human_number(found.constant));
        if (found.accuracy)
            finding.message +=
                base::format(" {:.0f} % of the training labels are predicted.", 100 * *found.accuracy);
        if (found.evaluation)
            finding.message += base::format(" The evaluation's loss is {}: this is no overfitting.",
                                            human_number(*found.evaluation));
        if (found.unlike) {
            finding.message += base::format(
                " The inputs tell more: labels of nearest ones differ {:.0f} % as much as those of any two.",
                100 * *found.unlike);
        } else {
            finding.message += " Targets whose noise is as large look the same.";
        }
        finding.fix =
            "See whether the model can learn a few batches by heart. If not: more or wider layers, inputs "
            "that tell more, less dropout and weight decay, another learning rate.";
        if (!is_certain) finding.fix += " If it can, the rest is noise in the targets.";
        finding.evidence.push_back({"share of the constant answer's loss", found.share, "limit", share_});
        finding.evidence.push_back({"loss", found.level, "of the constant answer", found.constant});
        if (found.accuracy) finding.evidence.push_back({"training accuracy", *found.accuracy, "of", 1});
        if (found.evaluation)
            finding.evidence.push_back({"evaluation loss", *found.evaluation, "in training", found.level});
        if (found.unlike)
            finding.evidence.push_back(
                {"difference of labels between nearest inputs", *found.unlike, "between any two", 1});
        finding.plots = {{training_.loss().tensor(), "value"}};
        sink.fire(std::move(finding));
    }

    std::uint64_t min_steps_;
    static constexpr double kTold = 0.6;  // of `share`, where the inputs are known to tell more

    double share_;
    FarFromFit training_;
    model::StepIndex last_ = 0;
};

std::vector<model::Requirement> underfit_needs(const Parameters&) {
    return far_from_fit_requirements(kUnderfit.name);
}

}  // namespace

RuleEntry builtin::underfit() {
    return {&kUnderfit, &underfit_needs,
            [](const Parameters& p) -> std::unique_ptr<Rule> { return std::make_unique<Underfit>(p); }};
}

}  // namespace traindbg::rules

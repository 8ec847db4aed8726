// The model is in evaluation mode when it is trained.

#include "traindbg/base/format.h"
#include "traindbg/rules/builtin/builtin.h"
#include "traindbg/rules/loop_facts.h"

namespace traindbg::rules {
namespace {

const model::RuleInfo kEvalModeWhileTraining = {
    .name = "eval_mode_while_training",
    .title = "Evaluation mode while training",
    .summary =
        "The model is trained in evaluation mode: dropout is off, and batch norm uses its running "
        "statistics.",
    .when =
        "At each of `steps` looks in a row, `training` of the whole model is False when an optimizer step "
        "follows a `backward()`, and the model holds modules that act differently then (dropout, batch "
        "norm), none of which is in training mode; or the model is in training mode, and all batch norms "
        "whose parameters get gradients are in evaluation mode and have never seen a batch. No threshold. "
        "Info where all of them are batch norms that brought statistics along and were in evaluation mode "
        "from the start.",
    .why =
        "Dropout does not regularise. Batch norm normalises by statistics that nobody updates: as "
        "initialised, or of an earlier epoch, while the weights move on.",
    .fix =
        "Call model.train() at the beginning of every epoch: model.eval(), usually in a validation function, "
        "holds until then. Models of from_pretrained() come in evaluation mode.",
    .healthy =
        "Fine-tuning with frozen batch norm: the norms alone are in evaluation mode, not the whole model, "
        "and bring statistics along. A part, such as a backbone, in evaluation mode. Models without modules "
        "that tell the modes apart. Attacks that are computed in evaluation mode before a step in training "
        "mode.",
    .cost = "A look at the modules' flags at the first 10 steps and then every 25th.",
    .original = "",
    .source =
        "Jiang et al., \"Training with Confidence: Catching Silent Errors in Deep Learning Training with "
        "Automated Proactive Checks\", OSDI 2025 (the fault, not the method)",
    .severity = model::Severity::kWarning,
    .parameters = {{"steps", "steps", 3, 2, 1000, "looks in a row that must show it"}},
};

class EvalModeWhileTraining final : public Rule {
  public:
    explicit EvalModeWhileTraining(const Parameters& parameters) : seen_(parameters.at("steps")) {}

    void on_step(const model::StepView& step, FindingSink& sink) override {
        if (step.mode() != model::Mode::kTrain) return;
        const std::optional<LoopFact> loaded = loop_fact(step, "loaded_norms_in_eval");
        const std::optional<LoopFact> norms = loop_fact(step, "norms_held_back");
        const std::optional<LoopFact> modules = loaded  ? loaded
                                                : norms ? norms
                                                        : loop_fact(step, "modules_in_eval");
        if (!modules) return;
        const bool shows = modules->value > 0;
        const char* key = loaded ? kLoaded : norms ? kNorms : kKey;
        if (!key_.empty() && (!shows || key_ != key)) {
            sink.clear(key_);
            key_.clear();
        }
        seen_.add(step, shows);
        if (!seen_.is_enough()) return;
        key_ = key;
        model::Finding finding =
            loop_finding(key, loaded ? model::Severity::kInfo : model::Severity::kWarning, seen_, *modules);
        finding.places = static_cast<std::uint64_t>(modules->value);
        finding.message =
            norms
                ? base::format(
                      "All {:.0f} batch norms that are trained{} are in evaluation mode, and have never seen "
                      "a batch, at all of the {} steps looked at since step {}: with mean 0 and variance 1 "
                      "they normalise nothing.",
                      modules->value, and_more(*modules), seen_.count(), seen_.first())
                : base::format(
                      "The model is in evaluation mode while it is trained, at all of the {} steps looked at "
                      "since step {}: {} {} as in evaluation.",
                      seen_.count(), seen_.first(), counted(*modules, "module"),
                      form(modules->value, "acts", "act"));
        finding.fix =
            norms ? "Leave batch norm in training mode: look where its eval() is called, in a train() of the "
                    "model's own, say. To freeze it is for norms that bring statistics along."
            : loaded ? "Nothing, if the statistics of batch norm are meant to stay as they were loaded; "
                       "else call model.train() before training."
                     : "Call model.train() before training, and again after each model.eval().";
        finding.evidence.push_back({"modules in evaluation mode", modules->value, "expected", 0});
        sink.fire(std::move(finding));
    }
    [[nodiscard]] std::uint64_t steps_judged() const override { return seen_.judged(); }
    [[nodiscard]] std::string why_not_judged() const override {
        return "no training step was seen of a model with dropout or batch norm";
    }

  private:
    static constexpr const char* kKey = "mode";
    static constexpr const char* kLoaded = "mode, loaded statistics";
    static constexpr const char* kNorms = "norms";
    std::string key_;  // that fires
    InARow seen_;
};

std::vector<model::Requirement> eval_mode_while_training_needs(const Parameters&) {
    return {loop_requirement(kEvalModeWhileTraining.name)};
}

}  // namespace

RuleEntry builtin::eval_mode_while_training() {
    return {&kEvalModeWhileTraining, &eval_mode_while_training_needs,
            [](const Parameters& p) -> std::unique_ptr<Rule> {
                return std::make_unique<EvalModeWhileTraining>(p);
            }};
}

}  // namespace traindbg::rules

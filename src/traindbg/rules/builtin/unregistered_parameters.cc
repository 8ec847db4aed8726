// The model uses parameters that PyTorch does not know to be its own.

#include "traindbg/base/format.h"
#include "traindbg/rules/builtin/builtin.h"
#include "traindbg/rules/loop_facts.h"

namespace traindbg::rules {
namespace {

const model::RuleInfo kUnregisteredParameters = {
    .name = "unregistered_parameters",
    .title = "Unregistered parameters",
    .summary =
        "The loss depends on parameters that are hidden in a list, a dict, a plain attribute or an object "
        "that is no module: model.parameters() lacks them.",
    .when =
        "In the graph of the loss, at `steps` looks in a row, is a leaf that requires gradients, that is not "
        "among the parameters of a watched model, that no optimizer holds, and that a module of the model "
        "holds in a Python list, tuple or dict, as an attribute that is no Parameter, or in an object whose "
        "class is not derived from nn.Module. No threshold.",
    .why =
        "model.parameters(), .to(device), state_dict() and train() pass over it: it is not trained, not "
        "moved and not saved. The loss falls all the same, because the rest learns.",
    .fix =
        "Use nn.ModuleList, nn.ModuleDict, nn.ParameterList or nn.Parameter instead of a list, dict or "
        "tensor, derive classes with parameters from nn.Module, and make the optimizer after that.",
    .healthy =
        "Inputs that require gradients (attacks, gradient penalties): they are another tensor at each step. "
        "Another model in the loss, such as a discriminator or a frozen network for a perceptual loss: no "
        "module of this model holds it in a list. A network in an object that is no module, whose weights "
        "are not as an initialiser drew them: loaded ones are kept out of the model that way. Parameters "
        "that an optimizer holds.",
    .cost = "One walk through the graph at three steps: the first, the third and the ninth.",
    .original = "",
    .source =
        "Jiang et al., \"Training with Confidence: Catching Silent Errors in Deep Learning Training with "
        "Automated Proactive Checks\", OSDI 2025 (the fault, not the method)",
    .severity = model::Severity::kError,
    .parameters = {{"steps", "steps", 2, 1, 3, "looks in a row that must show it"}},
};

class UnregisteredParameters final : public Rule {
  public:
    explicit UnregisteredParameters(const Parameters& parameters) : seen_(parameters.at("steps")) {}

    void on_step(const model::StepView& step, FindingSink& sink) override {
        if (step.mode() != model::Mode::kTrain) return;
        const std::optional<LoopFact> hidden = loop_fact(step, "unregistered_parameters");
        if (!hidden) return;
        const bool shows = hidden->value > 0;
        if (!shows && seen_.is_enough()) sink.clear(kKey);
        seen_.add(step, shows);
        if (!seen_.is_enough()) return;
        model::Finding finding = loop_finding(kKey, model::Severity::kError, seen_, *hidden);
        finding.places = static_cast<std::uint64_t>(hidden->value);
        finding.message = base::format(
            "The loss depends on {} that model.parameters() does not give: {} held where PyTorch does not "
            "look, and no optimizer has {}.",
            counted(*hidden, "parameter"), form(hidden->value, "it is", "they are"),
            form(hidden->value, "it", "them"));
        const std::string_view holder = hidden->place.substr(0, hidden->place.find('['));
        finding.fix = base::format(
            "Make {} an nn.ModuleList, nn.ModuleDict, nn.ParameterList or nn.Parameter, derive the class of "
            "what holds it from nn.Module, and make the optimizer after that.",
            holder);
        sink.fire(std::move(finding));
    }
    [[nodiscard]] std::uint64_t steps_judged() const override { return seen_.judged(); }
    [[nodiscard]] std::string why_not_judged() const override { return "no graph of a loss was seen whole"; }

  private:
    static constexpr const char* kKey = "graph";
    InARow seen_;
};

std::vector<model::Requirement> unregistered_parameters_needs(const Parameters&) {
    return {loop_requirement(kUnregisteredParameters.name)};
}

}  // namespace

RuleEntry builtin::unregistered_parameters() {
    return {&kUnregisteredParameters, &unregistered_parameters_needs,
            [](const Parameters& p) -> std::unique_ptr<Rule> {
                return std::make_unique<UnregisteredParameters>(p);
            }};
}

}  // namespace traindbg::rules

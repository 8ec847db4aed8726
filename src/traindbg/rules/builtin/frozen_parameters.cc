// Frozen layers of random weights, and optimizers that go on stepping what was frozen.

#include <map>
#include <string>

#include "traindbg/base/format.h"
#include "traindbg/rules/builtin/builtin.h"
#include "traindbg/rules/loop_facts.h"

namespace traindbg::rules {
namespace {

const model::RuleInfo kFrozenParameters = {
    .name = "frozen_parameters",
    .title = "Frozen parameters",
    .summary =
        "Layers are frozen although their weights are random, or against what their module says; or an "
        "optimizer steps on for nothing: all that it trained was frozen.",
    .when =
        "Something that should train does not: a module is frozen with random weights, or unfrozen only by "
        "an attribute that PyTorch ignores, or all parameters of an optimizer have been frozen.\n"
        "- Frozen with random weights (warning): at each of `steps` looks in a row, the training step "
        "calls a module with gradients enabled, none of whose parameters requires gradients. A weight of "
        "it still has the very distribution that an initialiser gives, and its values do not change.\n"
        "- Distributions of weights: uniform up to the bound of one of the usual schemes, or normal with "
        "one of their deviations.\n"
        "- Distributions of an embedding's table: uniform or normal numbers of any size, in which no "
        "direction stands out.\n"
        "- Biases alone: modules that train only their biases count likewise, where most of the modules "
        "with matrices do so.\n"
        "- Held by an optimizer, note only (info): while an optimizer holds all of these parameters, they "
        "may be unfrozen later. It becomes a warning when the training is over.\n"
        "- Taken back: where modules that were frozen with random weights are unfrozen.\n"
        "- Attribute (warning): at each of `steps` looks in a row, a module has an attribute "
        "`requires_grad` of True, and none of its parameters requires gradients. None did since it has the "
        "attribute, and no code of its class is about that word.\n"
        "- Group, note only (info): at each of `steps` looks in a row an optimizer has a group of parameters "
        "none of which ever required a gradient, while it trains others. All of them are numbers or vectors "
        "that a module of the program's own holds itself, in no layer of PyTorch.\n"
        "- Turns (warning): at each of `turns` looks in a row, one of several optimizers, which has "
        "trained before, steps after a backward pass of its own, and none of its parameters requires a "
        "gradient or has one.\n"
        "- No threshold.",
    .why =
        "Freezing is for weights that know something. Random ones let the other layers learn only what "
        "random features allow. `module.requires_grad = True` sets free nothing, and `= False` freezes "
        "nothing: PyTorch does not read that attribute of a module. An optimizer whose parameters were all "
        "frozen changes nothing. In a GAN whose discriminator is frozen for the turn of the generator and "
        "not unfrozen for its own, the generator plays on against an opponent that does not learn.",
    .fix =
        "Load the checkpoint before training (check what load_state_dict reports as missing), or unfreeze: "
        "requires_grad_(True), with the underscore, and make the optimizer after that. Where several models "
        "take turns: requires_grad_(True) before each turn of the one that was frozen. "
        "nn.Embedding.from_pretrained freezes unless it is given freeze=False.",
    .healthy =
        "Layers that are set free later, stage by stage. Weights that were loaded or trained: "
        "load_state_dict copied them, or their distribution is another one. Modules that run under "
        "torch.no_grad(): targets of distillation, momentum encoders. Averages of other weights: they "
        "change. Small tensors, biases and norms, of which that cannot be told. An optimizer that shares its "
        "backward passes with another one, and whose part is frozen meanwhile; one that trains again later. "
        "A group whose "
        "parameters an option keeps frozen, or whose values are known (a note).",
    .cost =
        "The distribution of frozen weights once, and the order in which modules are called at no more than "
        "six steps; nothing where no module is frozen. Of several optimizers, whether their parameters "
        "require gradients.",
    .original = "",
    .source =
        "Jiang et al., \"Training with Confidence: Catching Silent Errors in Deep Learning Training with "
        "Automated Proactive Checks\", OSDI 2025 (the fault, not the method); mmpretrain issue 702",
    .severity = model::Severity::kWarning,
    .parameters = {{"steps", "steps", 3, 2, 1000, "looks in a row that must show it"},
                   {"turns", "steps", 5, 2, 1000, "looks in a row at turns that train nothing"}},
};

class FrozenParameters final : public Rule {
  public:
    explicit FrozenParameters(const Parameters& parameters)
        : seen_(parameters.at("steps")),
          said_(parameters.at("steps")),
          group_(parameters.at("steps")),
          turns_(parameters.at("turns")) {}

    void on_step(const model::StepView& step, FindingSink& sink) override {
        if (step.mode() != model::Mode::kTrain) return;
        judge_modules(step, sink);
        judge_said(step, sink);
        judge_group(step, sink);
        judge_turns(step, sink);
    }
    // What is frozen now was frozen for the whole training.
    void on_end(FindingSink& sink) override {
        if (!seen_.is_enough() || !is_held_) return;
        sink.clear(kKey);
        finding_.severity = model::Severity::kWarning;
        sink.fire(std::move(finding_));
    }
    [[nodiscard]] std::uint64_t steps_judged() const override { return seen_.judged(); }
    [[nodiscard]] std::string why_not_judged() const override {
        return "no training step was seen from its beginning to its end";
    }

  private:
    void judge_modules(const model::StepView& step, FindingSink& sink) {
        const std::optional<LoopFact> frozen = loop_fact(step, "frozen_fresh_modules");
        if (!frozen) return;
        const bool shows = frozen->value > 0;
        if (!shows && seen_.is_enough()) {
            if (loop_fact(step, "frozen_fresh_uncalled")) sink.clear(kKey);  // frozen still
            else take_back(step, sink);
        }
        seen_.add(step, shows);
        if (!seen_.is_enough()) return;
        const std::optional<LoopFact> held = loop_fact(step, "frozen_fresh_held");
        is_held_ = held && held->value >= frozen->value;
        const auto severity = is_held_ ? model::Severity::kInfo : model::Severity::kWarning;
        model::Finding finding = loop_finding(kKey, severity, seen_, *frozen);
        finding.places = static_cast<std::uint64_t>(frozen->value);
        const std::optional<LoopFact> biased = loop_fact(step, "frozen_fresh_biased");
        const bool only_biases = biased && biased->value > 0;
        finding.message = base::format(
            "{} {} frozen with random weights: {} requires gradients, and the weights are distributed as an "
            "initialiser draws them.",
            counted(*frozen, "module"), form(frozen->value, "is", "are"),
            only_biases ? "nothing but biases" : "none of the parameters");
        finding.fix = base::format(
            "Load trained weights into {0} before training, or unfreeze it: {0}.requires_grad_(True), before "
            "the optimizer is made (nn.Embedding.from_pretrained: freeze=False).",
            frozen->place);
        finding_ = finding;
        sink.fire(std::move(finding));
    }
    void take_back(const model::StepView& step, FindingSink& sink) {
        finding_.message =
            base::format("{} {} frozen with random weights at first, and set free by step {}.",
                         counted({static_cast<double>(finding_.places), finding_.layer, {}}, "module"),
                         finding_.places == 1 ? "was" : "were", step.step());
        finding_.fix = "Nothing, where layers are meant to be set free in stages.";
        sink.take_back(finding_);
    }

    // `module.requires_grad = True`, where the method requires_grad_ was meant.
    void judge_said(const model::StepView& step, FindingSink& sink) {
        const std::optional<LoopFact> said = loop_fact(step, "said_to_train");
        if (!said) return;
        const bool shows = said->value > 0;
        if (!shows && said_.is_enough()) sink.clear(kSaid);
        said_.add(step, shows);
        const std::optional<LoopFact> parameters = loop_fact(step, "said_to_train_parameters");
        if (!said_.is_enough() || !parameters) return;
        model::Finding finding = loop_finding(kSaid, model::Severity::kWarning, said_, *said);
        finding.places = static_cast<std::uint64_t>(said->value);
        finding.message = base::format(
            "{0}.requires_grad was set to True, which is an attribute of the module that PyTorch does not "
            "read: none of its {1:.0f} parameters requires gradients, they stay as they are.",
            said->place, parameters->value);
        finding.fix =
            base::format("Call the method: {}.requires_grad_(True), with the underscore.", said->place);
        sink.fire(std::move(finding));
    }

    // Parameters with a group of their own, which somebody may mean to train: an option, a later stage or a
    // scale that is known may keep them frozen as well.
    void judge_group(const model::StepView& step, FindingSink& sink) {
        const std::optional<LoopFact> group = loop_fact(step, "frozen_group");
        if (!group) return;
        const bool shows = group->value > 0;
        if (!shows && group_.is_enough()) sink.clear(kGroup);
        group_.add(step, shows);
        if (!group_.is_enough()) return;
        model::Finding finding = loop_finding(kGroup, model::Severity::kInfo, group_, *group);
        finding.places = static_cast<std::uint64_t>(group->value);
        finding.message = base::format(
            "{} {} a group of the optimizer, and {} no gradients: {} as {} made, however the loss depends on "
            "{}.",
            counted(*group, "parameter"), form(group->value, "has", "have"),
            form(group->value, "requires", "require"), form(group->value, "it stays", "they stay"),
            form(group->value, "it was", "they were"), form(group->value, "it", "them"));
        finding.fix = base::format(
            "If {} is to be found, make it without requires_grad=False, or call requires_grad_(True) on it; "
            "a constant belongs in a buffer and in no group.",
            group->place);
        sink.fire(std::move(finding));
    }

    // Of each optimizer; a step that does not tell of one, saw no turn of it.
    void judge_turns(const model::StepView& step, FindingSink& sink) {
        for (const LoopFact& turn : loop_facts(step, "frozen_turn")) {
            const std::string key = base::format("turn of {}", turn.place);
            InARow& seen = in_turn_.try_emplace(key, turns_).first->second;
            const bool shows = turn.value > 0;
            if (!shows && seen.is_enough()) sink.clear(key);
            seen.add(step, shows);
            if (!seen.is_enough()) continue;
            model::Finding finding = loop_finding(key, model::Severity::kWarning, seen, turn);
            finding.message = base::format(
                "The optimizer of {} steps for nothing since step {}: at all of the {} steps looked at, none "
                "of its {:.0f} parameters requires a gradient any more. Something froze them after they were "
                "trained.",
                turn.place, seen.first(), seen.count(), turn.value);
            finding.fix = base::format(
                "Call requires_grad_(True) on {} before each of its turns, or requires_grad_(False) only for "
                "the turn of the other one.",
                turn.place);
            sink.fire(std::move(finding));
        }
    }

    static constexpr const char* kKey = "frozen";
    static constexpr const char* kSaid = "said to train";
    static constexpr const char* kGroup = "group";
    InARow seen_;
    InARow said_;
    InARow group_;
    bool is_held_ = false;  // an optimizer has them all: they train as soon as they require gradients
    model::Finding finding_;
    double turns_;
    std::map<std::string, InARow> in_turn_;  // by the keys of their findings
};

std::vector<model::Requirement> frozen_parameters_needs(const Parameters&) {
    return {loop_requirement(kFrozenParameters.name)};
}

}  // namespace

RuleEntry builtin::frozen_parameters() {
    return {&kFrozenParameters, &frozen_parameters_needs, [](const Parameters& p) -> std::unique_ptr<Rule> {
                return std::make_unique<FrozenParameters>(p);
            }};
}

}  // namespace traindbg::rules

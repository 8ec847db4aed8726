// Parameters get gradients, but no optimizer has them.

#include "traindbg/base/format.h"
#include "traindbg/rules/builtin/builtin.h"
#include "traindbg/rules/loop_facts.h"

namespace traindbg::rules {
namespace {

const model::RuleInfo kParametersNotInOptimizer = {
    .name = "parameters_not_in_optimizer",
    .title = "Parameters not in the optimizer",
    .summary =
        "Parameters of the model require gradients and get them, but no optimizer was given them: they never "
        "change.",
    .when =
        "Parameters get gradients but no optimizer holds them, and their values never change.\n"
        "- Parameters of a watched model: at every look over `steps` steps in a row, from the second step "
        "on, a parameter requires gradients and has one. No optimizer of the process holds it, and nothing "
        "else changes its values.\n"
        "- Optimizers that have not stepped yet count, too.\n"
        "- Error: such weights still have the distribution that an initialiser gives.\n"
        "- Warning: they do not have it and did not require gradients before, or nothing tells where the "
        "weights come from.\n"
        "- Note only (info): otherwise, where they do not have it because they were trained or loaded "
        "before, or where an optimizer had them at an earlier look: a later stage goes without them.\n"
        "- Outside of watched models: the same of parameters that the graph of the loss ends in, such as "
        "those of a criterion. Warning where they are as they were drawn, else info. Few values do not show "
        "that: then the program's text has to say that they were made of torch.randn or torch.rand, or an "
        "initialiser wrote them.\n"
        "- Model replaced (error): the model for which the optimizer was made is gone. At ten steps in a "
        "row, a backward pass gave no gradient to what the optimizer has, but did to parameters that no "
        "optimizer has and that do not change.\n"
        "- Copy trained (error): the graphs of two losses that are looked at end in copies of the "
        "optimizer's parameters, which no optimizer has, and in none of the optimizer's own.",
    .why =
        "backward() computes gradients that nobody uses. The part stays random; the rest learns to work "
        "around it, so that the loss falls, only less far.",
    .fix =
        "Make the optimizer after the model is complete: after heads are replaced, layers are added, and the "
        "model is moved or wrapped; give it model.parameters(), or add_param_group(). If the part is meant "
        "to stay as it is, say requires_grad_(False): its gradients cost time and memory. To go back to an "
        "earlier model, load its state into the one that the optimizer has.",
    .healthy =
        "Several optimizers that step in turn or seldom, as in a GAN: all that exist count. Parameters that "
        "a loop changes by hand. Frozen parameters, and those without a gradient. A loaded model of which "
        "only the head is trained (info). Networks in a loss whose weights were loaded (info); copies of "
        "what is trained, as targets are.",
    .cost =
        "A look at the parameters' gradients at the first 10 steps and then every 25th, and at the ends of "
        "the loss's graph at three, of which 64 parameters are looked at beside the model's. Where one is "
        "found for the first time: a search for optimizers among the objects of the process, and the "
        "distribution of those weights.",
    .original = "",
    .source =
        "Jiang et al., \"Training with Confidence: Catching Silent Errors in Deep Learning Training with "
        "Automated Proactive Checks\", OSDI 2025 (the fault, not the method); accelerate issue 2665",
    .severity = model::Severity::kError,
    .parameters = {{"steps", "steps", 5, 2, 1000, "in a row, of which every look must show it"}},
};

class ParametersNotInOptimizer final : public Rule {
  public:
    explicit ParametersNotInOptimizer(const Parameters& parameters)
        : steps_(parameters.at("steps")), seen_(parameters.at("steps")), outside_(parameters.at("steps")) {}

    void on_step(const model::StepView& step, FindingSink& sink) override {
        if (step.mode() != model::Mode::kTrain) return;
        judge_outside(step, sink);
        judge_left_behind(step, sink);
        judge_copy(step, sink);
        const std::optional<LoopFact> left_out = loop_fact(step, "not_in_optimizer");
        if (!left_out) return;
        const bool shows = left_out->value > 0;
        if (!shows && is_firing_)
            for (const char* key : {kKey, kUnknown, kLoaded}) sink.clear(key);
        seen_.add(step, shows);
        // Steps and not looks, which are at every step at first and 25 steps apart later.
        const auto lasts = static_cast<double>(step.step() - seen_.first() + 1);
        is_firing_ = shows && lasts >= steps_;
        if (!is_firing_) return;
        const std::optional<LoopFact> fresh = loop_fact(step, "not_in_optimizer_fresh");
        const std::optional<LoopFact> loaded = loop_fact(step, "not_in_optimizer_loaded");
        const std::optional<LoopFact> thawed = loop_fact(step, "not_in_optimizer_thawed");
        const bool is_fresh = fresh && fresh->value > 0;
        const bool is_thawed = thawed && thawed->value > 0;
        const bool is_loaded = !is_thawed && loaded && loaded->value > 0;
        model::Finding finding = is_fresh ? loop_finding(kKey, model::Severity::kError, seen_, *left_out)
                                 : is_loaded
                                     ? loop_finding(kLoaded, model::Severity::kInfo, seen_, *left_out)
                                     : loop_finding(kUnknown, model::Severity::kWarning, seen_, *left_out);
        finding.places = static_cast<std::uint64_t>(left_out->value);
        finding.evidence = {{"steps in a row", lasts, "limit", steps_}};
        finding.message = base::format(
            "{:.0f} parameters, the first of them in {}, get gradients, but no optimizer has them: they "
            "never change.{}",
            left_out->value, left_out->place,
            is_thawed  ? " They were frozen up to then, as if for an optimizer that was made without them."
            : is_fresh ? " Their weights are as they were initialised."
                       : "");
        finding.fix =
            is_loaded ? base::format(
                            "Nothing, if {} is meant to stay as it is; requires_grad_(False) saves the time "
                            "for its gradients. Else give its parameters to the optimizer.",
                            left_out->place)
            : is_thawed
                ? base::format(
                      "Where they are unfrozen, give them to the optimizer: "
                      "optimizer.add_param_group({{\"params\": {}.parameters(), \"lr\": ...}}); or make the "
                      "optimizer with all parameters from the start, which skips those without a gradient.",
                      left_out->place)
                : base::format(
                      "Give the parameters of {} to the optimizer: make it with model.parameters() after the "
                      "model is complete, or call optimizer.add_param_group().",
                      left_out->place);
        sink.fire(std::move(finding));
    }
    [[nodiscard]] std::uint64_t steps_judged() const override { return seen_.judged(); }
    [[nodiscard]] std::string why_not_judged() const override {
        return "no training step was seen from its beginning to its end";
    }

  private:
    // What the loss has beside the model.
    void judge_outside(const model::StepView& step, FindingSink& sink) {
        const std::optional<LoopFact> found = loop_fact(step, "outside_optimizer");
        if (!found) return;
        const bool shows = found->value > 0;
        if (!shows && is_firing_outside_)
            for (const char* key : {kOutside, kOutsideNote}) sink.clear(key);
        outside_.add(step, shows);
        const auto lasts = static_cast<double>(step.step() - outside_.first() + 1);
        is_firing_outside_ = shows && lasts >= steps_;
        if (!is_firing_outside_) return;
        const std::optional<LoopFact> fresh = loop_fact(step, "outside_optimizer_fresh");
        const std::optional<LoopFact> more = loop_fact(step, "outside_optimizer_more");
        const bool is_fresh = fresh && fresh->value > 0;
        model::Finding finding = is_fresh
                                     ? loop_finding(kOutside, model::Severity::kWarning, outside_, *found)
                                     : loop_finding(kOutsideNote, model::Severity::kInfo, outside_, *found);
        finding.places = static_cast<std::uint64_t>(found->value);
        finding.evidence = {{"steps in a row", lasts, "limit", steps_}};
        finding.message = base::format(
            "The loss depends on {:.0f} parameters beside the model, the first of them in {}: they get "
            "gradients, but no optimizer has them, and they never change.{}{}",
            found->value, found->place, is_fresh ? " Their values are as they were drawn." : "",
            more && more->value > 0 ? base::format(" {:.0f} more were not looked at.", more->value) : "");
        finding.fix =
            is_fresh ? base::format(
                           "Give what {0} has to the optimizer, too, beside model.parameters(). If it is "
                           "meant to stay as it is: requires_grad_(False).",
                           found->place)
                     : base::format(
                           "Nothing, if {} is meant to stay as it is; requires_grad_(False) saves the time "
                           "for its gradients. Else give its parameters to the optimizer.",
                           found->place);
        sink.fire(std::move(finding));
    }

    // The loop trains another model than the one for which the optimizer was made.
    void judge_left_behind(const model::StepView& step, FindingSink& sink) {
        const std::optional<LoopFact> left = loop_fact(step, "optimizer_left_behind");
        if (!left || left->value <= 0) return;
        seen_.add(step, true);
        model::Finding finding = loop_finding("left behind", model::Severity::kError, seen_, *left);
        finding.places = static_cast<std::uint64_t>(left->value);
        finding.evidence = {{"parameters in no optimizer", left->value, "expected", 0}};
        finding.message = base::format(
            "The optimizer steps parameters of a model that is gone. backward() gives gradients to {:.0f} "
            "others, which no optimizer has: nothing is trained any more, from step {} on.",
            left->value, step.step());
        finding.fix =
            "Keep the model that the optimizer was made for: model.load_state_dict(best.state_dict()) in "
            "place of model = copy.deepcopy(best). Or make a new optimizer with the parameters of the new "
            "model.";
        sink.fire(std::move(finding));
    }

    // The loop trains a copy that was made once the optimizer was there.
    void judge_copy(const model::StepView& step, FindingSink& sink) {
        if (loop_fact(step, "trainings")) of_copy_ = InARow(2);
        const std::optional<LoopFact> copies = loop_fact(step, "loss_is_of_a_copy");
        const std::optional<LoopFact> reached = loop_fact(step, "parameters_reached");
        if (!copies || !reached) return;
        of_copy_.add(step, copies->value > 0 && reached->value <= 0);
        if (!of_copy_.is_enough()) return;
        model::Finding finding = loop_finding("copy", model::Severity::kError, of_copy_, *copies);
        finding.places = static_cast<std::uint64_t>(copies->value);
        finding.evidence = {{"parameters in no optimizer", copies->value, "expected", 0}};
        finding.message = base::format(
            "The loss is computed with a copy of the model that the optimizer was made for: backward() gives "
            "gradients to {:.0f} parameters of that copy, which no optimizer has, and to none of the "
            "optimizer's, at all of the {} graphs looked at.",
            copies->value, of_copy_.count());
        finding.fix =
            "Make the optimizer after the model is complete, with the parameters of the model that the loop "
            "calls; or train the one that it was made for, and copy that.";
        sink.fire(std::move(finding));
    }

    static constexpr const char* kOutside = "beside the model";
    static constexpr const char* kOutsideNote = "beside the model, perhaps meant";
    static constexpr const char* kKey = "optimizer";
    static constexpr const char* kUnknown = "optimizer, perhaps";
    static constexpr const char* kLoaded = "optimizer, loaded weights";
    double steps_;
    InARow seen_, outside_, of_copy_{2};
    bool is_firing_ = false, is_firing_outside_ = false;
};

std::vector<model::Requirement> parameters_not_in_optimizer_needs(const Parameters&) {
    return {loop_requirement(kParametersNotInOptimizer.name)};
}

}  // namespace

RuleEntry builtin::parameters_not_in_optimizer() {
    return {&kParametersNotInOptimizer, &parameters_not_in_optimizer_needs,
            [](const Parameters& p) -> std::unique_ptr<Rule> {
                return std::make_unique<ParametersNotInOptimizer>(p);
            }};
}

}  // namespace traindbg::rules

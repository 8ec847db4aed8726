// A part of the model runs, but the loss does not lead back to it.

#include "traindbg/base/format.h"
#include "traindbg/rules/builtin/builtin.h"
#include "traindbg/rules/loop_facts.h"

namespace traindbg::rules {
namespace {

const model::RuleInfo kDetachedGraph = {
    .name = "detached_graph",
    .title = "Detached graph",
    .summary = "The first modules of the model run in every step, and their parameters never get a gradient.",
    .when =
        "At each of `steps` looks in a row, the modules that the forward pass calls first have parameters "
        "that require gradients and that the optimizer holds, none of them has ever had a gradient, and a "
        "module that is called after them gets one. Told are the modules up to the first one that has "
        "ever been reached.",
    .why =
        "The graph is cut between these modules and the rest: they stay as they were initialised, and the "
        "rest learns from random features. The loss still falls, which hides it.",
    .fix =
        "Look behind the last module named for .detach(), .data, .numpy(), torch.tensor(...), argmax or "
        "torch.no_grad(), and remove it. If the part is meant to stay as it is: requires_grad_(False), "
        "and leave it out of the optimizer.",
    .healthy =
        "Parts that are not called, or called at some steps only: experts, branches. Heads and poolers "
        "whose output nobody uses: they come after modules that are trained. Frozen parameters, and those "
        "of another optimizer. Parameters that the optimizer has state of: they were trained before. A "
        "loaded backbone that runs under torch.no_grad() (info).",
    .cost =
        "The order in which modules are called, at no more than six steps, and only where a parameter of "
        "the optimizer has no gradient.",
    .original = "",
    .source =
        "Jiang et al., \"Training with Confidence: Catching Silent Errors in Deep Learning Training with "
        "Automated Proactive Checks\", OSDI 2025 (the fault, not the method)",
    .severity = model::Severity::kError,
    .parameters = {{"steps", "steps", 3, 2, 1000, "looks in a row that must show it"}},
};

class DetachedGraph final : public Rule {
  public:
    explicit DetachedGraph(const Parameters& parameters) : seen_(parameters.at("steps")) {}

    void on_step(const model::StepView& step, FindingSink& sink) override {
        if (step.mode() != model::Mode::kTrain) return;
        const std::optional<LoopFact> detached = loop_fact(step, "detached_modules");
        if (!detached) return;
        const bool shows = detached->value > 0;
        if (!shows && seen_.is_enough()) {
            sink.clear(kKey);
            sink.clear(kMeant);
        }
        seen_.add(step, shows);
        if (!seen_.is_enough()) return;
        const std::optional<LoopFact> loaded = loop_fact(step, "detached_modules_loaded");
        const bool meant = loaded && loaded->value > 0;
        model::Finding finding =
            loop_finding(meant ? kMeant : kKey, meant ? model::Severity::kInfo : model::Severity::kError,
                         seen_, *detached);
        finding.places = static_cast<std::uint64_t>(detached->value);
        finding.message = base::format(
            "{:.0f} modules{} run first in every step, the optimizer holds their parameters, and none of "
            "them ever "
            "got a gradient: the loss does not lead back to them.",
            detached->value, and_more(*detached));
        finding.fix =
            meant ? "Nothing, if these weights are meant to stay: then requires_grad_(False), and leave "
                    "them out of the optimizer."
                  : base::format(
                        "Remove what cuts the graph after {} or the modules that follow it: .detach(), "
                        ".data, .numpy(), torch.tensor(...), or torch.no_grad() around them.",
                        detached->place);
        sink.fire(std::move(finding));
    }
    [[nodiscard]] std::uint64_t steps_judged() const override { return seen_.judged(); }
    [[nodiscard]] std::string why_not_judged() const override {
        return "no training step was seen from its beginning to its end";
    }

  private:
    static constexpr const char* kKey = "graph";
    static constexpr const char* kMeant = "graph of loaded weights";
    InARow seen_;
};

std::vector<model::Requirement> detached_graph_needs(const Parameters&) {
    return {loop_requirement(kDetachedGraph.name)};
}

}  // namespace

RuleEntry builtin::detached_graph() {
    return {&kDetachedGraph, &detached_graph_needs,
            [](const Parameters& p) -> std::unique_ptr<Rule> { return std::make_unique<DetachedGraph>(p); }};
}

}  // namespace traindbg::rules

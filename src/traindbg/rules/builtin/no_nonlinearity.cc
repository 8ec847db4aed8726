// Layers follow each other without a nonlinearity between them.

#include "traindbg/base/format.h"
#include "traindbg/rules/builtin/builtin.h"
#include "traindbg/rules/loop_facts.h"

namespace traindbg::rules {
namespace {

const model::RuleInfo kNoNonlinearity = {
    .name = "no_nonlinearity",
    .title = "No nonlinearity",
    .summary =
        "Layers that multiply by weights follow each other with nothing nonlinear between: together they can "
        "do no more than one.",
    .when =
        "At `steps` looks in a row, the graph of the loss shows linear or convolutional layers that feed "
        "straight into the next one, without a nonlinearity between them.\n"
        "- A pair: the output of a linear or convolutional layer goes only into the next one. Between them "
        "there are only views, dropout, a bias that is added, or a leaky ReLU of slope 1, which is what "
        "LeakyReLU(True) makes.\n"
        "- Many pairs (warning): this holds for half or more of the places between such layers, and for "
        "more than one pair.\n"
        "- A linear model (warning): all such layers, from the data to the loss, are one chain, or branches "
        "of one that are added or put side by side. Between them there is only what a pair may have, batch "
        "norm, average pooling and interpolation. Rows of embeddings may come in beside the data.\n"
        "- Other pairs, note only (info): all other cases, such as a single pair.\n"
        "- Weights that are computed from parameters, as weight_norm and spectral_norm do, count as weights. "
        "A parameter times a mask, as prune makes it, does not.\n"
        "- Not counted: pairs whose inner width is smaller than what goes in and smaller than what comes "
        "out, and convolutions along different dimensions, such as (3, 1) and (1, 3).",
    .why =
        "A product of matrices is a matrix: the layers cost time and memory, and the model can only draw "
        "straight lines.",
    .fix = "Put an activation between them, such as nn.ReLU(), or leave one of them out.",
    .healthy =
        "Bottlenecks, low-rank factors, LoRA and linear auto-encoders: the narrow middle is what they are "
        "for. Sparse factors with masks, and filters in two directions. Projections of attention, residual "
        "connections, norms and pooling between layers of a model "
        "that has a nonlinearity elsewhere. Convolutions in groups and a pointwise one after them. A single "
        "pair, such as two linear layers as a head (info).",
    .cost = "One walk through the graph at three steps: the first, the third and the ninth.",
    .original = "",
    .source =
        "Schoop et al., \"UMLAUT\", CHI 2021; Nikanjam et al., \"NeuraLint\", TOSEM 2021 (the fault, not the "
        "method)",
    .severity = model::Severity::kWarning,
    .parameters = {{"steps", "steps", 2, 1, 3, "looks in a row that must show it"}},
};

class NoNonlinearity final : public Rule {
  public:
    explicit NoNonlinearity(const Parameters& parameters) : seen_(parameters.at("steps")) {}

    void on_step(const model::StepView& step, FindingSink& sink) override {
        if (step.mode() != model::Mode::kTrain) return;
        const std::optional<LoopFact> layers = loop_fact(step, "affine_layers");
        const std::optional<LoopFact> pairs = loop_fact(step, "adjacent_affine_layers");
        if (!layers || !pairs) return;
        const std::optional<LoopFact> linear = loop_fact(step, "is_linear");
        const double gaps = layers->value - 1;
        const bool is_linear = linear && linear->value > 0;
        const bool shows = pairs->value > 0 || is_linear;
        const bool severe = is_linear || (pairs->value >= 2 && 2 * pairs->value >= gaps);
        const char* key = severe ? kKey : kNote;
        if (!key_.empty() && (!shows || key_ != key)) {
            sink.clear(key_);
            key_.clear();
        }
        seen_.add(step, shows);
        if (!seen_.is_enough()) return;
        key_ = key;
        model::Finding finding =
            loop_finding(key, severe ? model::Severity::kWarning : model::Severity::kInfo, seen_,
                         is_linear ? *linear : *pairs);
        finding.places = static_cast<std::uint64_t>(is_linear ? gaps : pairs->value);
        finding.message =
            is_linear
                ? base::format(
                      "There is no nonlinearity in the model: its {:.0f} layers with weights follow each "
                      "other, and together they are one linear map.",
                      layers->value)
                : base::format(
                      "The output of {} goes into the next layer without a nonlinearity; so it is {:.0f} "
                      "times between {:.0f} layers with weights.",
                      pairs->place, pairs->value, layers->value);
        finding.fix =
            base::format("Put an activation behind {}, such as nn.ReLU(){}.", finding.layer,
                         (is_linear ? gaps : pairs->value) > 1 ? ", and behind the others like it" : "");
        finding.evidence.push_back(
            {"pairs without a nonlinearity", is_linear ? gaps : pairs->value, "of", gaps});
        sink.fire(std::move(finding));
    }
    [[nodiscard]] std::uint64_t steps_judged() const override { return seen_.judged(); }
    [[nodiscard]] std::string why_not_judged() const override {
        return "no graph of a loss with layers of a watched model was seen whole";
    }

  private:
    static constexpr const char* kKey = "graph";
    static constexpr const char* kNote = "graph, in places";
    std::string key_;  // that fires
    InARow seen_;
};

std::vector<model::Requirement> no_nonlinearity_needs(const Parameters&) {
    return {loop_requirement(kNoNonlinearity.name)};
}

}  // namespace

RuleEntry builtin::no_nonlinearity() {
    return {&kNoNonlinearity, &no_nonlinearity_needs,
            [](const Parameters& p) -> std::unique_ptr<Rule> { return std::make_unique<NoNonlinearity>(p); }};
}

}  // namespace traindbg::rules

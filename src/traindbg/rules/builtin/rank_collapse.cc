// What passes through a layer, or comes out of the model, lies in far fewer directions than it has values.

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/rules/builtin/builtin.h"
#include "traindbg/rules/data_labels.h"
#include "traindbg/rules/loop_facts.h"
#include "traindbg/rules/training_loss.h"

namespace traindbg::rules {
namespace {

using base::human_number;

const model::RuleInfo kRankCollapse = {
    .name = "rank_collapse",
    .title = "Units that say the same",
    .summary =
        "Many units of a layer, or values of a representation, vary together: from sample to sample they "
        "differ in one direction or two.",
    .when =
        "A note (info): what a model returns, or what one of its layers is given, varies from sample to "
        "sample in only a few directions, at `looks` looks in a row.\n"
        "- Directions: they are counted by the participation ratio of the eigenvalues of the covariance "
        "over the samples of a batch, (sum)^2 / (sum of squares).\n"
        "- Output (info), from step `patience` on: the model is trained without labels of the data (as for "
        "representation_collapse), and its output has at least `units` values per sample. It spreads in "
        "fewer than `share` of the directions of what the model's first layer is given, and in fewer than "
        "half of those that it had in the first looks.\n"
        "- Layer (info), after `steps` steps: the training has not learned. What a layer between the first "
        "and the last is given, of `units` values or more, spreads in fewer than `directions` directions.\n"
        "- In both cases, what the first layer is given spreads in at least four directions.",
    .why =
        "Units that are copies of each other are worth one. A representation that was to tell samples apart "
        "by many values tells them apart by one or two; through a layer whose values all move together, no "
        "more than one number of a sample gets to the layers behind it.",
    .fix =
        "Representations: add the term that pushes values apart (the covariance of VICReg, the off-diagonal "
        "of Barlow Twins), and see that it is not weighed or masked away. Layers: normalise between them, "
        "add residual connections, use the default initialisation.",
    .healthy =
        "The last hidden layer of a classification, which keeps as many directions as there are classes; "
        "inputs that vary in few directions; bottlenecks of fewer units; metric learning with two or three "
        "classes, whose vectors need no more.",
    .cost =
        "At the first ten steps, then at every 25th, and from about 800 steps on at every 100th: the "
        "products of up to 64 samples with each other, by up to 512 values of each, of what the model "
        "returns and of what up to 16 layers are given.",
    .original = "",
    .source =
        "Jing et al., \"Understanding dimensional collapse in contrastive self-supervised learning\", ICLR "
        "2022; Dong, Cordonnier, Loukas, \"Attention is not all you need: pure attention loses rank doubly "
        "exponentially with depth\", ICML 2021",
    .severity = model::Severity::kInfo,
    .parameters = {{"share", "share", 0.25, 0.001, 1, "of the directions of what the first layer is given"},
                   {"directions", "directions", 1.5, 1, 1e3, "of what a layer is given, in fewer it fires"},
                   {"units", "units", 16, 4, 1e6, "fewest values of a sample that are judged"},
                   {"looks", "looks", 3, 2, 1000, "looks in a row that must show it"},
                   {"patience", "steps", 50, 1, 1e9, "first step that counts"},
                   {"steps", "steps", 200, 20, 1e9, "in which a training should have learned"}},
};

class RankCollapse final : public Rule {
  public:
    explicit RankCollapse(const Parameters& parameters)
        : share_(parameters.at("share")),
          directions_(parameters.at("directions")),
          units_(parameters.at("units")),
          looks_(parameters.at("looks")),
          patience_(static_cast<std::uint64_t>(parameters.at("patience"))),
          steps_(static_cast<std::uint64_t>(parameters.at("steps"))) {}

    void on_step(const model::StepView& step, FindingSink& sink) override {
        if (step.mode() != model::Mode::kTrain) return;
        labels_.observe(step);
        game_.observe(step);
        loss_.observe(step);
        const auto input = loop_fact(step, "input_directions");
        if (!input || !(input->value >= kFewestOfInput)) return;
        ++judged_;
        look_at_outputs(step, input->value, sink);
        look_at_layer(step, input->value, sink);
    }
    [[nodiscard]] std::uint64_t steps_judged() const override { return judged_; }
    [[nodiscard]] std::string why_not_judged() const override {
        return "no layer was seen whose input varies in four directions or more, over 8 samples or more";
    }

  private:
    struct Seen {
        explicit Seen(double looks) : in_a_row(looks) {}
        InARow in_a_row;
        double start = 0;  // the most of the first looks
        int first_looks = 0;
    };

    void look_at_outputs(const model::StepView& step, double input, FindingSink& sink) {
        for (const LoopFact& output : loop_facts(step, "output_directions")) {
            double units = 0;
            for (const LoopFact& one : loop_facts(step, "output_units"))
                if (one.place == output.place) units = one.value;
            if (units < units_ || !std::isfinite(output.value)) continue;
            Seen& seen = seen_.try_emplace(std::string(output.place), looks_).first->second;
            if (seen.first_looks < 3) {
                ++seen.first_looks;
                seen.start = std::max(seen.start, output.value);
            }
            const bool shows = !labels_.are_given() && !game_.is_on() && step.step() >= patience_ &&
                               output.value < share_ * input && output.value < 0.5 * seen.start;
            if (!set(step, seen, output, shows, sink)) continue;
            model::Finding finding =
                loop_finding(output.place, model::Severity::kInfo, seen.in_a_row, output);
            finding.message = base::format(
                "The {:.0f} values that {} returns for each sample spread in {} directions at step {}; in "
                "the first steps they did in {}, and what the first layer is given does in {}.",
                units, output.place, human_number(output.value), step.step(), human_number(seen.start),
                human_number(input));
            finding.fix =
                "Look at the term that pushes the values apart (covariance, off-diagonal, negatives): its "
                "weight, its mask. With two or three kinds of samples to tell apart, nothing.";
            finish(std::move(finding), output, input, sink);
        }
    }

    void look_at_layer(const model::StepView& step, double input, FindingSink& sink) {
        const auto layer = loop_fact(step, "given_directions");
        const auto units = loop_fact(step, "given_units");
        if (!layer || !units || units->value < units_ || !std::isfinite(layer->value)) return;
        const bool shows = loss_.count() >= steps_ && loss_.is_known_function() && !loss_.is_game() &&
                           !loss_.has_learned() && layer->value < directions_;
        if (!set(step, layer_, {layer->value, "layer", layer->tensor}, shows, sink)) return;
        model::Finding finding = loop_finding("layer", model::Severity::kInfo, layer_.in_a_row, *layer);
        finding.message = base::format(
            "The {:.0f} values that {} is given of each sample spread in {} directions at step {}, and what "
            "the first layer is given does in {}: hardly more than one number of a sample gets that far, and "
            "the training has not learned.",
            units->value, layer->place, human_number(layer->value), step.step(), human_number(input));
        finding.fix = base::format(
            "Look at the layers in front of {}: normalise between them, add residual connections, use the "
            "default initialisation.",
            layer->place);
        finish(std::move(finding), *layer, input, sink);
    }

    // Whether it is to be told now.
    bool set(const model::StepView& step, Seen& seen, const LoopFact& fact, bool shows, FindingSink& sink) {
        if (!shows && seen.in_a_row.is_enough()) sink.clear(fact.place);
        seen.in_a_row.add(step, shows);
        return seen.in_a_row.is_enough();
    }

    static void finish(model::Finding finding, const LoopFact& fact, double input, FindingSink& sink) {
        finding.evidence.insert(finding.evidence.begin(),
                                {"directions", fact.value, "of what the first layer is given", input});
        finding.plots.insert(finding.plots.begin(), {std::string(fact.tensor), "value"});
        sink.fire(std::move(finding));
    }

    static constexpr double kFewestOfInput = 4;

    double share_, directions_, units_, looks_;
    std::uint64_t patience_, steps_;
    std::uint64_t judged_ = 0;
    DataLabels labels_;
    Game game_;
    TrainingLoss loss_;
    std::map<std::string, Seen, std::less<>> seen_;
    Seen layer_{looks_};
};

std::vector<model::Requirement> rank_collapse_needs(const Parameters&) {
    std::vector<model::Requirement> all = loss_requirements(kRankCollapse.name);
    all.push_back(loop_requirement(kRankCollapse.name));
    all.push_back(label_requirement(kRankCollapse.name));
    return all;
}

}  // namespace

RuleEntry builtin::rank_collapse() {
    return {&kRankCollapse, &rank_collapse_needs,
            [](const Parameters& p) -> std::unique_ptr<Rule> { return std::make_unique<RankCollapse>(p); }};
}

}  // namespace traindbg::rules

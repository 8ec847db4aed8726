// Positions of a sequence see the value that they are to predict.

#include <string_view>

#include "traindbg/base/format.h"
#include "traindbg/rules/builtin/builtin.h"
#include "traindbg/rules/loop_facts.h"

namespace traindbg::rules {
namespace {

const model::RuleInfo kFutureLeak = {
    .name = "future_leak",
    .title = "The model sees what it is to predict",
    .summary = "Each target is the input's next value, and a layer shows positions what comes later.",
    .when =
        "The targets are the model's input one position on, and a layer, or a probe of the model, shows "
        "that positions see later ones.\n"
        "- By layers (error): in `looks` steps in a row, the targets of the loss are an input of the model "
        "one position on (99 % of them, bit for bit), and a layer over a sequence of that length lets "
        "positions see later ones.\n"
        "- Layers with attention: the mask shows the next position, or half of all later ones.\n"
        "- Other layers: a bidirectional recurrent layer. A convolution, a mean or a maximum over one "
        "dimension that is padded on both sides. A matrix that mixes positions (a spatial gate, a mixer) "
        "with anything above its diagonal. A convolution by a Fourier transform (torch.fft) of too few "
        "positions: what goes beyond the end comes in at the front.\n"
        "- Not counted of the last kind: where the last target is the input's first value in all rows (a "
        "ring), the first position has no target (overlap-save), or what would come in at the front is the "
        "same in all rows (zeros behind a record).\n"
        "- Several inputs: where another input is as long, as in a translation model, all such layers must "
        "let positions see later ones.\n"
        "- By a probe (error): with --probe, in `looks` probes in a row, a copy of the model in evaluation "
        "mode got this input with other values from the middle on. It returned something else for "
        "positions before the middle.\n"
        "- Scaled with the target (warning): in `looks` of the first five steps in a row, each row of the "
        "input, joined with its target, has a mean of 0 (1e-4) and a standard deviation of 1 (2 %), in 98 "
        "rows of 100. Less than a tenth of the rows of the input alone, or of the target alone, have a mean "
        "of 0.\n"
        "- Scaled, the target comes next: in half of the first 32 rows, the input's last value and the "
        "target's first are less than half as far apart as two values of a row are on average. So are "
        "neighbours in the input.\n"
        "- Cut late, note only (info): in `looks` of the first five steps in a row, the last value of each "
        "series is its target's first, bit for bit (98 % of the rows), and that changes from row to row "
        "(50 %). The target's second value is none of the input's in nine rows of ten.\n"
        "- Cut late, of which series: eight steps or more are given. In half of the first 32 rows, "
        "neighbours are less than half as far apart as two values of a row are on average.\n"
        "- Series: inputs of four steps or more and targets of two or more, of eight rows "
        "or more; of several values, each by itself.",
    .why =
        "The model copies the answer. The loss falls far below what the data allows, in validation, too, and "
        "what it has learned is worth nothing where the next value is not known yet.",
    .fix =
        "A causal mask: is_causal=True of scaled_dot_product_attention, or "
        "nn.Transformer.generate_square_subsequent_mask(length) as the attention's mask (in transformers "
        "is_decoder=True in the configuration of a model such as BERT); a recurrent layer "
        "of one direction; convolutions that are padded on the left only; the lower triangle of a matrix "
        "that mixes positions (weight.tril()). Scaled with the target: the mean and the spread of what is "
        "given, for both.",
    .healthy =
        "Targets that are not the next value (masked words, labels, the input itself); an encoder of another "
        "sequence, whose positions may all see each other; convolutions that are padded on one side; series "
        "that are scaled as a whole, or each window by what is given of it; rows that were scaled each as a "
        "whole and then parted into masked values and others, every other value, or parts without an order. "
        "A rollout that begins with the state that is known, and a candle that opens at the last close (a "
        "note). "
        "A spectrum whose upper half is predicted from its lower one looks like a series, and is told.",
    .cost =
        "In at most six steps: the masks of attention, the shapes that recurrent layers and convolutions are "
        "given, and a comparison of the targets with the first rows of the inputs. One pass over inputs and "
        "targets in five.",
    .original = "",
    .source = "Vaswani et al., \"Attention is all you need\", NeurIPS 2017 (section 3.2.3)",
    .severity = model::Severity::kError,
    .parameters = {{"looks", "steps", 2, 1, 6, "steps in a row that must show it"}},
};

class FutureLeak final : public Rule {
  public:
    explicit FutureLeak(const Parameters& parameters)
        : seen_(parameters.at("looks")),
          probed_(parameters.at("looks")),
          scaled_(parameters.at("looks")),
          begins_(parameters.at("looks")) {}

    void on_step(const model::StepView& step, FindingSink& sink) override {
        if (step.mode() != model::Mode::kTrain) return;
        if (const std::optional<LoopFact> changed = loop_fact(step, "earlier_changed")) {
            probed_.add(step, changed->value > 0);
            if (probed_.is_enough()) fire_probed(*changed, sink);
        }
        look_at_scale(step, sink);
        look_at_seam(step, sink);
        const std::optional<LoopFact> later = loop_fact(step, "later_seen");
        if (!later) return;
        seen_.add(step, later->value > 0);
        if (!seen_.is_enough()) return;
        model::Finding finding = loop_finding("sequence", model::Severity::kError, seen_, *later);
        finding.places = static_cast<std::uint64_t>(later->value);
        finding.message = base::format(
            "The targets are the model's input one position on, and a layer shows positions what comes "
            "later{}: the model sees what it is to predict.",
            and_more(*later));
        finding.fix = base::format(
            "Let positions of {} see only earlier ones: a causal mask (is_causal=True, or "
            "nn.Transformer.generate_square_subsequent_mask, or is_decoder=True in the configuration of a "
            "model of transformers) for attention, bidirectional=False for a recurrent layer, padding on the "
            "left only for a convolution (by a Fourier transform n=2 * length), weight.tril() for a matrix "
            "over positions.",
            later->place.empty() ? std::string_view("the model") : later->place);
        finding.evidence.push_back({"layers that show later positions", later->value, "expected", 0});
        sink.fire(std::move(finding));
    }
    [[nodiscard]] std::uint64_t steps_judged() const override {
        return seen_.judged() + probed_.judged() + scaled_.judged() + begins_.judged();
    }
    [[nodiscard]] std::string why_not_judged() const override {
        return "no layer over a sequence was seen whose targets are the input one position on, and no input "
               "that is a series with a target of several values";
    }

  private:
    // Input and target were standardised together, before they were cut apart.
    void look_at_scale(const model::StepView& step, FindingSink& sink) {
        const std::optional<LoopFact> together = loop_fact(step, "label_scaled_together"),
                                      alone = loop_fact(step, "label_scaled_alone"),
                                      places = loop_fact(step, "label_scaled_places");
        if (!together || !alone || !places) return;
        scaled_.add(step, together->value >= kScaled && alone->value < kScaledAlone);
        if (!scaled_.is_enough()) return;
        model::Finding finding = loop_finding("scale", model::Severity::kWarning, scaled_, *together);
        finding.tensor = input_of(step);
        finding.message = base::format(
            "The model's input and its target have a mean of 0 and a standard deviation of 1 together, over "
            "{:.0f} values of each row, and not alone: each window was scaled before it was cut into what is "
            "given and what is to be predicted, so that the one tells the level of the other.",
            places->value);
        finding.fix =
            "Take mean and standard deviation of what is given alone, and scale the target with the same.";
        finding.evidence.push_back(
            {"share of rows scaled with their target", together->value, "limit", kScaled});
        finding.evidence.push_back(
            {"share of rows whose parts have a mean of 0", alone->value, "limit", kScaledAlone});
        sink.fire(std::move(finding));
    }
    // The window's end is one step late: what is to be predicted first is given. A rollout that begins with
    // the known state, or a candle that opens where the last one closed, looks the same.
    void look_at_seam(const model::StepView& step, FindingSink& sink) {
        const std::optional<LoopFact> given = loop_fact(step, "label_begins_given"),
                                      again = loop_fact(step, "label_begins_again"),
                                      changed = loop_fact(step, "label_begins_changed");
        if (!given || !again || !changed) return;
        begins_.add(step, given->value >= kScaled && again->value < kAgain && changed->value >= kChanged);
        if (!begins_.is_enough()) return;
        model::Finding finding = loop_finding("seam", model::Severity::kInfo, begins_, *given);
        finding.tensor = input_of(step);
        finding.message = base::format(
            "The last value of the model's input is the first of its target, bit for bit, in {:.3g} % of the "
            "rows: the window that is given ends one step late, within what is to be predicted, unless the "
            "target is to begin with what is known.",
            100 * given->value);
        finding.fix =
            "End the input one step earlier (x[t - n:t] for a target y[t:t + h]), and see whether what is "
            "evaluated was cut in the same way.";
        finding.evidence.push_back(
            {"share of rows whose first target is given", given->value, "limit", kScaled});
        finding.evidence.push_back({"share of rows whose second target is", again->value, "limit", kAgain});
        sink.fire(std::move(finding));
    }
    [[nodiscard]] static std::string_view input_of(const model::StepView& step) {
        for (const model::TensorSample& sample : step.record->tensors)
            if (step.info(sample.tensor).role == model::Role::kInput) return step.info(sample.tensor).name;
        return {};
    }
    void fire_probed(const LoopFact& changed, FindingSink& sink) const {
        if (seen_.is_enough()) return;  // it was told already, with the layers
        model::Finding finding = loop_finding("sequence", model::Severity::kError, probed_, changed);
        const std::string where =
            changed.place.empty() ? std::string("the model") : base::format("{}", changed.place);
        finding.message = base::format(
            "The targets are the model's input one position on, and {:.3g} % of the earlier outputs change "
            "when later inputs do; it shows first in {}: the model sees what it is to predict.",
            100 * changed.value, where);
        finding.fix = base::format(
            "Let positions of {} see only earlier ones: a causal mask before the softmax, sums and means "
            "over what came before (cumsum), padding on the left only for a convolution.",
            where);
        finding.evidence.push_back({"share of earlier outputs that changed", changed.value, "expected", 0});
        sink.fire(std::move(finding));
    }

    static constexpr double kScaled = 0.98, kScaledAlone = 0.1, kAgain = 0.1, kChanged = 0.5;  // of the rows

    InARow seen_, probed_, scaled_, begins_;
};

std::vector<model::Requirement> future_leak_needs(const Parameters&) {
    std::vector<model::Requirement> all = sequence_requirements(kFutureLeak.name);
    all.push_back({"labels",
                   model::Mode::kTrain,
                   model::What::kStatistics,
                   {.every = 0, .dense_until = 6},
                   kFutureLeak.name});
    return all;
}

}  // namespace

RuleEntry builtin::future_leak() {
    return {&kFutureLeak, &future_leak_needs,
            [](const Parameters& p) -> std::unique_ptr<Rule> { return std::make_unique<FutureLeak>(p); }};
}

}  // namespace traindbg::rules

// A model without labels that returns the same for every sample.

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/rules/builtin/builtin.h"
#include "traindbg/rules/data_labels.h"
#include "traindbg/rules/loop_facts.h"

namespace traindbg::rules {
namespace {

using base::human_number;

const model::RuleInfo kRepresentationCollapse = {
    .name = "representation_collapse",
    .title = "Representation collapse",
    .summary = "A model that is trained without labels returns nearly the same for all samples of a batch.",
    .when =
        "In a training without labels, what the model returns becomes nearly the same for all samples of a "
        "batch, compared with the first looks or with the size of the values.\n"
        "- Judged: no loss function is given labels of the data. There are none, or all of a run are equal, "
        "they are row numbers, or they have a gradient, because the model itself made them.\n"
        "- Measured: the standard deviation from sample to sample of what the model returns, which must "
        "have two or more values for each sample. It must be too small at `looks` looks in a row, from "
        "step `patience` on.\n"
        "- Collapsed (warning): it is less than `share` of what it was in the first three looks, or less "
        "than a thousandth of the size of the values.\n"
        "- Small and fallen (warning): it is less than `share` of the size of the values, and less than "
        "half of what it was. In place of the latter, its ratio to the size may be less than a third of "
        "what that was, in less than half as many directions, while all else that the same model returns has "
        "fallen, too.\n"
        "- Nothing pushes apart (warning): all targets of a cosine_embedding_loss are 1, and both of its "
        "vectors have a gradient. Then less than 15 % of what it was and of the size of the values is "
        "enough.\n"
        "- Compared with itself (warning): all that loss functions do is compare by differences two things "
        "that have a gradient and are of different samples. Nothing else takes part in the loss, such as a "
        "target in a term that is written out.\n"
        "- Compared with itself, how far: less than a tenth of the size is enough, if it is also less than "
        "two thirds of the most that it has been, its ratio to the size less than a third of what that "
        "was at first, and samples spread in four or more directions then.\n"
        "- Cosines (warning): the loss is nothing but cosines, or squared distances of vectors of length "
        "1, each with a gradient on both sides. Or cosine_embedding_loss is the only loss function and all "
        "its targets are 1.\n"
        "- Cosines, how far: lengths do not count, only how far samples point another way than their mean "
        "does. Of everything that is returned, this must be less than 15 % of what it was.\n"
        "- One value a sample: where models return only that, as the distance of a pair, the same is asked "
        "of the last layer that was called two to four times in a step, once for each input. Not judged "
        "where several optimizers play against each other.\n"
        "- Not judged: what the loss is only the sum or the mean of, each value times a number at most. It "
        "is a loss itself, such as the log-probability of each token.",
    .why =
        "Vectors that are all equal have every two views of a sample at distance 0, so the loss is content; "
        "a generator of one picture has lost what it was asked to draw. Nothing can be told from them.",
    .fix =
        "Vectors: compare with other samples, too (contrastive or triplet loss), or stop the gradient of one "
        "branch and give the other a predictor, or add a term for the variance (VICReg). Generator: draw "
        "noise of variance 1, and see that it is used.",
    .healthy =
        "Classifiers and regressions, whose outputs say what their labels say; policies, whose losses are "
        "made of log-probabilities of choices; a single value for each sample, as of a critic; small "
        "batches; the first steps of a deep network, whose random vectors are much alike.",
    .cost =
        "The deviation of what the model, or a layer that is called again, returns, of up to 64 samples and "
        "4,096 values each, at the first ten steps, then every 25th, and from about 800 steps on every "
        "100th.",
    .original = "",
    .source =
        "Bardes, Ponce, LeCun, \"VICReg: Variance-invariance-covariance regularization for self-supervised "
        "learning\", ICLR 2022",
    .severity = model::Severity::kWarning,
    .parameters = {{"share", "share", 0.04, 1e-9, 1, "deviation over size, or over that of the start"},
                   {"looks", "looks", 3, 2, 1000, "looks in a row that must show it"},
                   {"patience", "steps", 50, 1, 1e9, "first step that counts"}},
};

constexpr double kVanishing = 1e-3;  // of the size of the values
constexpr double kHalf = 0.5;        // of what it was at first
constexpr int kFirstLooks = 3;
constexpr double kShareOfPulled = 0.15;
// Of a model whose vectors are compared with each other alone: of the size, and of that share at the start.
constexpr double kShareOfCompared = 0.1, kFallOfCompared = 1.0 / 3;
// Of the largest deviation so far: where a variance term holds it, only a mean drifts away, and the size
// grows.
constexpr double kLeftOfCompared = 2.0 / 3;
constexpr double kFewestDirections = 4;  // at the start; values of a few actions have less
constexpr const char* kTurn = "directions";

class RepresentationCollapse final : public Rule {
  public:
    explicit RepresentationCollapse(const Parameters& parameters)
        : share_(parameters.at("share")),
          looks_(parameters.at("looks")),
          turned_(looks_),
          patience_(static_cast<std::uint64_t>(parameters.at("patience"))) {}

    void on_step(const model::StepView& step, FindingSink& sink) override {
        if (step.mode() != model::Mode::kTrain) return;
        look_at_labels(step, sink);
        look_at_policy(step, sink);
        look_at_losses(step, sink);
        game_.observe(step);
        if (is_supervised_ || has_policy_) return;
        look_at(step, "output_deviation", "output_size", sink);
        look_at_turns(step, sink);
        // Of a critic no output need differ any more, once its opponent is as good.
        if (!game_.is_on()) look_at(step, "branch_deviation", "branch_size", sink);
    }
    [[nodiscard]] std::uint64_t steps_judged() const override {
        return is_supervised_ || has_policy_ ? 0 : judged_;
    }
    [[nodiscard]] std::string why_not_judged() const override {
        return has_policy_ ? "the loss is that of a policy"
               : is_supervised_
                   ? "the loss is given labels"
                   : "no model or repeated layer was seen that returns several values for each of "
                     "8 samples or more";
    }

  private:
    struct Output {
        explicit Output(double looks) : seen(looks) {}
        InARow seen;
        double start = 0;        // the largest deviation of the first looks
        double start_share = 0;  // of the size, likewise
        double start_directions = 0;
        double most = 0;  // the largest deviation so far
        double last = 0, last_size = 0;
        int first_looks = 0;

        // Samples differ as they did at first, in numbers and beside the size of the values.
        [[nodiscard]] bool is_spread() const {
            return first_looks >= kFirstLooks && last >= kHalf * start &&
                   last >= kFallOfCompared * start_share * last_size;
        }
    };

    // What an actor and a critic return is as much alike as what they are asked about.
    void look_at_policy(const model::StepView& step, FindingSink& sink) {
        const std::optional<LoopFact> policy = loop_fact(step, "loss_has_policy");
        if (has_policy_ || !policy || policy->value <= 0) return;
        has_policy_ = true;
        for (const auto& [place, output] : outputs_) sink.clear(place);
        sink.clear(kTurn);
    }
    // What the loss is but the sum of is a loss itself, one for each value: all of them may become small.
    void look_at_losses(const model::StepView& step, FindingSink& sink) {
        for (const LoopFact& summed : loop_facts(step, "loss_sums_output"))
            if (++sums_[std::string(summed.place)] == 2) sink.clear(summed.place);
    }
    [[nodiscard]] bool is_loss(std::string_view place) const {
        const auto known = sums_.find(place);
        return known != sums_.end() && known->second >= 2;
    }
    void look_at_labels(const model::StepView& step, FindingSink& sink) {
        if (is_supervised_) return;
        labels_.observe(step);
        if (loop_fact(step, "backward_passes"))
            is_compared_ = loop_fact(step, "compared_to_itself").has_value();
        for (const model::TensorSample& sample : step.record->tensors)
            if (step.info(sample.tensor).name == "label/cosine_embedding_loss") {
                const bool are_pulled = sample.statistics.min == 1 && sample.statistics.max == 1;
                is_only_pulled_ = are_pulled && (is_only_pulled_ || !has_pairs_);
                has_pairs_ = true;
            }
        if (!labels_.are_given()) return;
        is_supervised_ = true;
        for (const auto& [place, output] : outputs_) sink.clear(place);
        sink.clear(kTurn);
    }

    void look_at(const model::StepView& step, std::string_view deviations, std::string_view sizes,
                 FindingSink& sink) {
        for (const LoopFact& deviation : loop_facts(step, deviations))
            for (const LoopFact& size : loop_facts(step, sizes))
                if (size.place == deviation.place && !is_loss(deviation.place))
                    look(step, deviation, size.value, directions_of(step, deviation.place), sink);
    }

    // In how many directions samples of what is returned there spread; 0 where that is not told.
    static double directions_of(const model::StepView& step, std::string_view place) {
        for (const LoopFact& directions : loop_facts(step, "output_directions"))
            if (directions.place == place) return directions.value;
        return 0;
    }

    // Whether something else that the same model returns tells samples apart as it did at first. Then what
    // only moved together is one number for all of them by its nature, as the log-variance of codes is.
    [[nodiscard]] bool has_spread_beside(std::string_view place) const {
        const std::size_t end = place.rfind('.');
        if (end == std::string_view::npos) return false;
        const std::string_view all = place.substr(0, end + 1);
        return std::ranges::any_of(outputs_, [&](const auto& each) {
            return each.first != place && each.first.starts_with(all) && each.second.is_spread();
        });
    }

    void look(const model::StepView& step, const LoopFact& deviation, double size, double directions,
              FindingSink& sink) {
        if (!std::isfinite(deviation.value) || !std::isfinite(size)) return;
        ++judged_;
        Output& output = outputs_.try_emplace(std::string(deviation.place), looks_).first->second;
        output.most = std::max(output.most, deviation.value);
        output.last = deviation.value;
        output.last_size = size;
        if (output.first_looks < kFirstLooks) {
            ++output.first_looks;
            output.start = std::max(output.start, deviation.value);
            if (size > 0) output.start_share = std::max(output.start_share, deviation.value / size);
            output.start_directions = std::max(output.start_directions, directions);
        }
        if (step.step() < patience_) return;
        // Targets far from 0 and a policy that is not sure yet are much alike from the start, and stay so.
        const bool is_pulled =
            is_only_pulled_ && labels_.are_made() && deviation.value < kShareOfPulled * size;
        const double share = is_pulled ? kShareOfPulled : share_;
        // Where outputs begin small, only their share of the size says that they move together.
        const bool is_of_size = deviation.value < kFallOfCompared * output.start_share * size &&
                                directions > 0 && directions < kHalf * output.start_directions &&
                                !has_spread_beside(deviation.place);
        const bool is_smaller = deviation.value < kHalf * output.start;
        const bool has_fallen = is_smaller || is_of_size;
        const bool is_nothing = deviation.value < share * output.start ||
                                deviation.value < kVanishing * size ||
                                (deviation.value < share_ * size && has_fallen);
        const bool is_common = is_compared_ && output.start_directions >= kFewestDirections &&
                               deviation.value < kShareOfCompared * size &&
                               deviation.value < kLeftOfCompared * output.most &&
                               deviation.value < kFallOfCompared * output.start_share * size;
        const bool shows = is_nothing || is_common;
        if (!shows && output.seen.is_enough()) sink.clear(deviation.place);
        output.seen.add(step, shows);
        if (!output.seen.is_enough()) return;
        model::Finding finding =
            loop_finding(deviation.place, model::Severity::kWarning, output.seen, deviation);
        finding.message = base::format(
            "What {} returns is nearly the same for all samples of a batch: it differs by {} from sample to "
            "sample at step {}, its values are {} in size, and it differed by {} in the first steps.",
            deviation.place, human_number(deviation.value), step.step(), human_number(size),
            human_number(output.start));
        finding.fix =
            "Compare with other samples, too (a contrastive or triplet loss), or add a term for the variance "
            "of the vectors; in a generator, draw noise of variance 1 and see that it reaches the output.";
        if (is_only_pulled_) lead_to_pairs(finding);
        const bool is_grown = is_nothing && !(deviation.value < share * output.start) && !is_smaller;
        if (!is_nothing || is_grown) {
            finding.message = base::format(
                "What {} returns is nearly the same for all samples of a batch: from sample to sample it "
                "differs by {:.0f} % of the size of its values at step {}, and did by {:.0f} % in the first "
                "steps{}.",
                deviation.place, 100 * deviation.value / size, step.step(), 100 * output.start_share,
                is_grown
                    ? base::format(", in {:.1f} directions of {:.1f}", directions, output.start_directions)
                    : std::string(". Loss functions compare it with what has a gradient itself, and with "
                                  "nothing else"));
            finding.fix =
                "See that the term that is to keep the vectors apart is taken over the samples of the batch, "
                "not over the values of one sample (dim=0 of [batch, values]), and that it is not weighed "
                "away; or detach one side of the comparison, or compare with other samples, too.";
        }
        finding.evidence.insert(finding.evidence.begin(),
                                {"deviation from sample to sample", deviation.value, "size", size});
        finding.plots.insert(finding.plots.begin(), {std::string(deviation.tensor), "value"});
        sink.fire(std::move(finding));
    }

    // What pushes apart is missing in the loss, whatever it is that became one.
    static void lead_to_pairs(model::Finding& finding) {
        finding.tensor = "loss/cosine_embedding_loss";
        finding.layer.clear();
        finding.fix =
            "Give the loss pairs that do not belong together, too, with target -1: without them it is "
            "content when all vectors are one.";
    }

    // Cosines know no length: samples that all point one way are all the same to the loss. What a predictor
    // returns may do so for a while, and then what it predicts does not.
    void look_at_turns(const model::StepView& step, FindingSink& sink) {
        const std::vector<LoopFact> turns = loop_facts(step, "output_turn");
        if (turns.empty()) return;
        const auto most = std::max_element(turns.begin(), turns.end(),
                                           [](const auto& a, const auto& b) { return a.value < b.value; });
        if (!std::isfinite(most->value)) return;
        ++judged_;
        if (first_turns_ < kFirstLooks) {
            ++first_turns_;
            first_turn_ = std::max(first_turn_, most->value);
        }
        // Of pairs, those that do not belong together are pushed apart.
        if (step.step() < patience_ || (has_pairs_ && !is_only_pulled_)) return;
        const bool shows = most->value < kShareOfPulled * first_turn_;
        if (!shows && turned_.is_enough()) sink.clear(kTurn);
        turned_.add(step, shows);
        // Said of an output's values already.
        const bool is_told = has_pairs_ && std::ranges::any_of(outputs_, [](const auto& each) {
                                 return each.second.seen.is_enough();
                             });
        if (!turned_.is_enough() || is_told) return;
        model::Finding finding = loop_finding(kTurn, model::Severity::kWarning, turned_, *most);
        finding.message = base::format(
            "All that the model returns points nearly the same way for all samples of a batch: unit vectors "
            "of {} lie {} from their mean at step {}, and {} in the first steps. {}",
            most->place, human_number(most->value), step.step(), human_number(first_turn_),
            has_pairs_ ? "All targets of cosine_embedding_loss are 1, so nothing pushes vectors apart."
                       : "The loss is made of cosines alone, and both sides of each have a gradient.");
        finding.fix =
            "Detach one side of each cosine (z.detach()) and let the other be predicted from its view, or "
            "compare with other samples, too (a contrastive loss).";
        if (has_pairs_) lead_to_pairs(finding);
        finding.evidence.insert(finding.evidence.begin(),
                                {"from their mean direction", most->value, "at the start", first_turn_});
        finding.plots.insert(finding.plots.begin(), {std::string(most->tensor), "value"});
        sink.fire(std::move(finding));
    }

    double share_, looks_;
    InARow turned_;
    int first_turns_ = 0;
    double first_turn_ = 0;  // the largest of the first looks
    std::uint64_t patience_;
    std::uint64_t judged_ = 0;
    bool is_supervised_ = false, has_policy_ = false;
    DataLabels labels_;
    bool is_compared_ = false;     // loss functions compare what has a gradient, and nothing else
    bool has_pairs_ = false;       // cosine_embedding_loss is given targets
    bool is_only_pulled_ = false;  // a loss of pairs that has no pair to push apart
    Game game_;
    std::map<std::string, Output, std::less<>> outputs_;
    std::map<std::string, int, std::less<>> sums_;  // looks at which the loss was the sum of an output
};

std::vector<model::Requirement> representation_collapse_needs(const Parameters&) {
    return {loop_requirement(kRepresentationCollapse.name), label_requirement(kRepresentationCollapse.name)};
}

}  // namespace

RuleEntry builtin::representation_collapse() {
    return {&kRepresentationCollapse, &representation_collapse_needs,
            [](const Parameters& p) -> std::unique_ptr<Rule> {
                return std::make_unique<RepresentationCollapse>(p);
            }};
}

}  // namespace traindbg::rules

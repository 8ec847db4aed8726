// Classes, trained as if their numbers were amounts; angles, as if they did not begin anew.

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/model/histogram.h"
#include "traindbg/rules/builtin/builtin.h"
#include "traindbg/rules/loop_facts.h"
#include "traindbg/rules/loss_arguments.h"

namespace traindbg::rules {
namespace {

const model::RuleInfo kWrongLoss = {
    .name = "wrong_loss",
    .title = "Regression loss for classes",
    .summary =
        "Class indexes, or angles that go all around, are given to a loss that takes them for amounts; or an "
        "absolute error makes every answer 0.",
    .when =
        "A regression loss is given targets that look like class indices, one-hot targets of which the "
        "model learns little, or angles on both sides of where they begin anew; or l1_loss has made all "
        "predictions 0.\n"
        "- Losses: mse_loss, l1_loss, smooth_l1_loss or huber_loss.\n"
        "- Class indices (warning): there is one prediction per sample, or one for each pixel of an image. "
        "In all captured steps the targets are whole numbers from 0 to at most `classes` - 1, at least "
        "three different ones, each about equally frequent, as in a balanced data set. Judged after 30 "
        "steps.\n"
        "- How they are recognised: by the sums of the targets, their sums of squares and their histogram.\n"
        "- Pixels: here it is also enough that all classes but the most frequent one, the background, are "
        "about equally frequent, if these are at least three.\n"
        "- Class indices, note only (info): the typical error has become so small that rounding gives the "
        "right class.\n"
        "- One-hot targets (warning): after 200 steps the loss is above 80 % of that of a constant answer.\n"
        "- Most targets are 0 (warning): l1_loss, of whose targets more than half are exactly 0, but not "
        "all. At six looks in a row, from step 30 on, no prediction is further from 0 than 2 % of the "
        "targets' root mean square, and not all are 0.\n"
        "- Most targets are 0, also needed: the predictions went there. At an earlier look one was further "
        "from 0 than 10 % of that root mean square.\n"
        "- Most targets are 0, and their mean is not: over all looks it is more than 10 % of the root mean "
        "square away from 0, and three standard errors on top of that.\n"
        "- Angles (warning): in the graphs of two of the first steps, the model's angle, made by atan2 or "
        "torch.angle, is compared with a given one by one of these losses or their formula, written out.\n"
        "- Angles, which: given ones lie within a twelfth of a turn of both ends of one turn, and some are "
        "compared the longer way round, by more than half a turn.",
    .why =
        "The numbers of classes have no order: between 3 and 5 a model that is unsure answers 4, which is "
        "neither. The loss falls, and accuracy stays poor. The best constant answer to an absolute error is "
        "the middle of the targets, which is 0 where most of them are. Angles of 359 and 1 degree are close, "
        "and such a loss drives the one away from the other.",
    .fix =
        "One output per class, and torch.nn.functional.cross_entropy with the class index as target. Of "
        "angles, (1 - torch.cos(output - target)).mean().",
    .healthy =
        "Counts, ratings and grades, which have an order and are seldom equally frequent; real numbers; "
        "labels of 0 and 1; one-hot targets with a squared error (Brier score) that learns. An absolute "
        "error "
        "of corrections that are mostly 0, and otherwise as often above it as below: 0 is their mean, too. A "
        "last layer that begins at 0 and waits for the end of a warm-up. Differences of angles that are "
        "brought back into half a turn first.",
    .cost =
        "One pass over what the loss functions are given at the first 10 steps and then at every 50th, and a "
        "histogram of the labels at the first 5. The nodes next to the loss in the graph of three steps.",
    .original = "",
    .source =
        "Nikanjam et al., \"Automatic Fault Detection for Deep Learning Programs Using Graph "
        "Transformations\", TOSEM 2022",
    .severity = model::Severity::kWarning,
    .parameters = {{"classes", "classes", 20, 3, 31, "most classes that targets are taken for"}},
};

class WrongLoss final : public Rule {
  public:
    explicit WrongLoss(const Parameters& parameters) : most_(parameters.at("classes")) {}

    void on_step(const model::StepView& step, FindingSink& sink) override {
        if (step.mode() != model::Mode::kTrain) return;
        guessing_.observe(step);
        judge_angles(step, sink);
        for (const LossCall& call : loss_calls(step)) {
            if (!is_regression(call.function) || call.labelled == nullptr) continue;
            if (!function_.empty() && function_ != call.function) continue;
            function_ = call.function;
            label_ = call.label->name;
            ++judged_;
            look(call);
            look_at_middle(step, call, sink);
        }
        if (function_.empty() || step.step() < kFirstJudged) return;
        last_ = step.step();
        judge(sink);
    }
    [[nodiscard]] std::uint64_t steps_judged() const override { return judged_; }
    [[nodiscard]] std::string why_not_judged() const override {
        return "no regression loss of torch.nn.functional was seen";
    }

  private:
    // Near a whole number, as far as a mean that was stored as float32 can tell.
    static bool is_whole(double value) {
        return std::abs(value - std::round(value)) < 0.02 + 3e-7 * std::abs(value);
    }

    // [samples, height, width] or [samples, 1, height, width]. A series of one value has a last dimension of
    // 1, one of a few values a small one.
    static bool is_picture(const std::vector<std::int64_t>& shape) {
        const std::size_t n = shape.size();
        return (n == 3 || (n == 4 && shape[1] == 1)) && shape[n - 2] >= kSmallestSide &&
               shape[n - 1] >= kSmallestSide;
    }

    void look(const LossCall& call) {
        const model::Statistics& labels = *call.labelled;
        model::merge(labels_, labels);
        if (call.label_bins != nullptr) model::merge(bins_, *call.label_bins);
        const auto count = static_cast<double>(labels.count);
        const double sum = labels.mean * count;
        const double squares = labels.l2 * labels.l2;
        if (count > 1e5 || !is_whole(sum) || !is_whole(squares) || !is_whole(labels.min) ||
            !is_whole(labels.max))
            is_integral_ = false;
        std::int64_t per_sample = 1;
        for (std::size_t i = 1; i < call.prediction->shape.size(); ++i)
            per_sample *= call.prediction->shape[i];
        // One output for each sample, or each of its pixels.
        const bool is_map = is_picture(call.prediction->shape);
        is_map_ = is_map_ || is_map;
        is_single_ = is_single_ && (per_sample == 1 || is_map) && labels.count == call.predicted->count;
        const std::vector<std::int64_t>& shape = call.label->shape;
        const std::int64_t width = shape.size() == 2 ? shape[1] : 0;
        const bool ones = labels.min == 0 && labels.max == 1 && width >= 2 &&
                          std::abs(labels.mean * static_cast<double>(width) - 1) < 1e-5 &&
                          labels.zero * static_cast<std::uint64_t>(width) ==
                              labels.count * static_cast<std::uint64_t>(width - 1);
        is_one_hot_ = is_one_hot_ && ones;
    }

    // The absolute error is lowered by the median of what may come, whatever the few others are.
    void look_at_middle(const model::StepView& step, const LossCall& call, FindingSink& sink) {
        if (function_ != "l1_loss") return;
        const model::Statistics& values = *call.predicted;
        const double size = std::sqrt(labels_.std * labels_.std + labels_.mean * labels_.mean);
        const double furthest = std::max(std::abs(values.min), std::abs(values.max));
        was_off_middle_ = was_off_middle_ || furthest > kOffMiddle * size;
        if (step.step() < kFirstJudged) return;
        // Predictions that are 0 altogether are those of units that are dead.
        const bool is_there = 2 * labels_.zero > labels_.count && labels_.zero < labels_.count &&
                              furthest > 0 && furthest <= kNearMiddle * size;
        if (!is_there) {
            if (at_middle_ >= kLooksAtMiddle) sink.clear(kMiddle);
            at_middle_ = 0;
            return;
        }
        if (at_middle_++ == 0) at_middle_since_ = step.step();
        // A last layer that begins at 0 has not gone there: it may wait for the end of a warm-up.
        if (at_middle_ < kLooksAtMiddle || !was_off_middle_) return;
        // Where the mean is 0, too, as of corrections to both sides, no other loss would answer otherwise.
        const double error = size / std::sqrt(static_cast<double>(std::max<std::uint64_t>(labels_.count, 1)));
        if (std::abs(labels_.mean) <= kOffMiddle * size + kErrors * error) {
            sink.clear(kMiddle);
            return;
        }
        const double zeros = 100 * static_cast<double>(labels_.zero) /
                             static_cast<double>(std::max<std::uint64_t>(labels_.count, 1));
        model::Finding finding;
        finding.key = kMiddle;
        finding.severity = model::Severity::kWarning;
        finding.first_step = at_middle_since_;
        finding.tensor = base::format("loss/{}", function_);
        finding.message = base::format(
            "{:.0f} % of the targets of {} are 0, and so have become all predictions: none is further from 0 "
            "than {} at {} looks up to step {}, where the targets' mean is {}. The best constant answer to "
            "an absolute error is the middle of the targets, not their mean.",
            zeros, function_, base::human_number(furthest), at_middle_, step.step(),
            base::human_number(labels_.mean));
        finding.fix =
            "Use a loss whose best answer is the mean: torch.nn.functional.poisson_nll_loss for counts, or "
            "mse_loss; or predict first whether it is 0, and the amount where it is not.";
        finding.evidence.push_back({"targets that are 0", zeros / 100, "limit", 0.5});
        finding.evidence.push_back({"largest prediction", furthest, "mean of the targets", labels_.mean});
        finding.plots = {{call.prediction->name, "max"}, {call.prediction->name, "mean"}};
        sink.fire(std::move(finding));
    }

    // Whole numbers from 0 to the largest, each about equally frequent; nothing between them. The bins of the
    // histogram hold one whole number each up to 8, then two, then four.
    [[nodiscard]] bool are_balanced_classes() const {
        const double classes = labels_.max + 1;
        if (labels_.min != 0 || classes < 3 || classes > most_) return false;
        const auto all = static_cast<double>(element_count(bins_));
        if (all < 8 * classes || all < 48) return false;
        std::vector<double> counts;  // of each whole number, those of a bin alike
        for (const model::HistogramBin& bin : bins_) {
            const model::BinEdges edge = model::edges(bin.bin);
            double whole = 0;
            if (bin.bin == model::kZeroBin) whole = 1;
            else if (edge.lower >= 1)
                for (double number = std::ceil(edge.lower); number < edge.upper && number < classes; ++number)
                    ++whole;
            if (whole == 0) return false;  // holds fractions only
            counts.insert(counts.end(), static_cast<std::size_t>(whole),
                          static_cast<double>(bin.count) / whole);
        }
        if (static_cast<double>(counts.size()) != classes) return false;
        if (are_even(counts)) return true;
        // Of pixels many are background. Without it, amounts are as uneven as before: bell-shaped, or ever
        // rarer. Two that are left may be the sides of a bell.
        if (!is_map_ || counts.size() < 4) return false;
        counts.erase(std::max_element(counts.begin(), counts.end()));
        return are_even(counts);
    }
    [[nodiscard]] static bool are_even(const std::vector<double>& counts) {
        const double all = std::accumulate(counts.begin(), counts.end(), 0.0);
        double divergence = 0;  // from equal shares, in nats
        for (const double count : counts)
            if (count > 0)
                divergence += count / all * std::log(count / all * static_cast<double>(counts.size()));
        return divergence < kMostUneven;
    }

    // Rounding its answer gives the right class nearly always.
    [[nodiscard]] bool tells_classes_apart() const {
        const double level = guessing_.level();
        return function_ == "l1_loss" ? level < 0.1 : function_ == "mse_loss" ? level < 0.02 : level < 0.01;
    }

    void judge(FindingSink& sink) {
        if (!guessing_.share()) return;  // too few losses
        const char* key = "";
        if (is_integral_ && is_single_ && are_balanced_classes())
            key = tells_classes_apart() ? "rounded" : "classes";
        else if (is_one_hot_ && labels_.count > 0 && last_ >= 200 && guessing_.share().value_or(0) > 0.8)
            key = "one_hot";
        if (firing_ != key && !firing_.empty()) sink.clear(firing_);
        firing_ = key;
        if (!firing_.empty()) fire(sink);
    }

    // The hook looked at the graph, and at what is compared in it.
    void judge_angles(const model::StepView& step, FindingSink& sink) {
        const std::optional<LoopFact> seam = loop_fact(step, "loss_ignores_seam");
        if (!seam || seam->value <= 0) return;
        ++judged_;
        if (graphs_of_angles_++ == 0) angles_since_ = step.step();
        if (graphs_of_angles_ < kGraphs) return;
        model::Finding finding;
        finding.key = "angles";
        finding.severity = model::Severity::kWarning;
        finding.first_step = angles_since_;
        finding.tensor = seam->place.empty() ? std::string("loss") : base::format("loss/{}", seam->place);
        finding.message = base::format(
            "The loss compares angles by their difference, in {} graphs up to step {}, and given ones lie on "
            "both sides of where a turn begins anew: there what is close counts as nearly a whole turn "
            "apart, and the model is driven the longer way round.",
            graphs_of_angles_, step.step());
        finding.fix =
            "loss = (1 - torch.cos(output - target)).mean(), or compare sine and cosine of the two. If "
            "angles never cross that place, give the turn another beginning.";
        finding.evidence.push_back(
            {"graphs looked at", static_cast<double>(graphs_of_angles_), "limit", kGraphs});
        finding.plots = {{finding.tensor, "value"}};
        sink.fire(std::move(finding));
    }

    void fire(FindingSink& sink) const {
        model::Finding finding;
        finding.key = firing_;
        finding.severity = firing_ == "rounded" ? model::Severity::kInfo : model::Severity::kWarning;
        finding.first_step = 0;
        finding.tensor = base::format("loss/{}", function_);
        if (firing_ == "one_hot") {
            finding.message = base::format(
                "{} compares with one-hot targets, and after {} steps its loss is {:.0f} % of that of a "
                "constant answer.",
                function_, last_, 100 * guessing_.share().value_or(0));
            finding.fix =
                "Use cross_entropy on the last layer's output, without a softmax, with the class index as "
                "target: its gradient does not vanish where the model is wrong and sure.";
        } else {
            finding.message = base::format(
                "All targets of {} are whole numbers from 0 to {:.0f}, about equally frequent{}: indexes of "
                "{:.0f} classes, taken for amounts. The loss is {}{}.",
                function_, labels_.max, is_map_ ? " (the background apart)" : "", labels_.max + 1,
                base::human_number(guessing_.level()),
                firing_ == "rounded" ? ": small enough to tell them apart by rounding" : "");
            finding.fix = base::format(
                "If these are classes: {:.0f} outputs and torch.nn.functional.cross_entropy(output, y) with "
                "y as int64. If they are amounts, leave it.",
                labels_.max + 1);
            finding.evidence.push_back({"different targets", labels_.max + 1, "", 0});
        }
        finding.evidence.push_back(
            {"loss", guessing_.level(), "of a constant answer", guessing_.constant_loss().value_or(0)});
        finding.plots = {{finding.tensor, "value"}};
        sink.fire(std::move(finding));
    }

    static constexpr const char* kMiddle = "middle";
    static constexpr model::StepIndex kFirstJudged = 30;
    static constexpr std::uint64_t kLooksAtMiddle = 6;  // in a row, 50 steps apart
    static constexpr double kNearMiddle = 0.02;         // of the targets' root mean square
    static constexpr double kOffMiddle = 0.1;           // likewise: clearly another answer than 0
    static constexpr double kErrors = 3;                // standard ones, of the targets' mean
    static constexpr double kMostUneven = 0.1;          // nats from equally frequent
    static constexpr std::int64_t kSmallestSide = 4;    // pixels
    static constexpr std::uint64_t kGraphs = 2;         // that must show that angles are compared

    double most_;
    std::uint64_t judged_ = 0, graphs_of_angles_ = 0;
    std::uint64_t at_middle_ = 0;  // looks in a row at which all predictions are 0, as most targets are
    bool was_off_middle_ = false;  // at an earlier look some prediction was not
    model::StepIndex last_ = 0, angles_since_ = 0, at_middle_since_ = 0;
    std::string function_, label_, firing_;
    model::Statistics labels_;
    model::Histogram bins_;
    bool is_integral_ = true, is_single_ = true, is_one_hot_ = true, is_map_ = false;
    Guessing guessing_;
};

std::vector<model::Requirement> wrong_loss_needs(const Parameters&) {
    std::vector<model::Requirement> all = loss_requirements(kWrongLoss.name);
    for (model::Requirement& more : argument_requirements(kWrongLoss.name)) all.push_back(std::move(more));
    all.push_back(label_histogram_requirement(kWrongLoss.name));
    return all;
}

}  // namespace

RuleEntry builtin::wrong_loss() {
    return {&kWrongLoss, &wrong_loss_needs,
            [](const Parameters& p) -> std::unique_ptr<Rule> { return std::make_unique<WrongLoss>(p); }};
}

}  // namespace traindbg::rules

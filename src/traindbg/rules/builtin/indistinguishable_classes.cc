// Pairs of classes that the training tells apart no better than by tossing a coin, while it tells both from
// all others.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <deque>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "traindbg/base/format.h"
#include "traindbg/rules/builtin/builtin.h"
#include "traindbg/rules/evaluation_loss.h"
#include "traindbg/rules/loop_facts.h"
#include "traindbg/rules/training_loss.h"

namespace traindbg::rules {
namespace {

const model::RuleInfo kIndistinguishableClasses = {
    .name = "indistinguishable_classes",
    .title = "Classes that cannot be told apart",
    .summary =
        "Two classes are told from all others, and from each other no better than by tossing a coin, on the "
        "data that the model is trained on.",
    .when =
        "At the end of a classification of three or more classes, the model confuses two of them with each "
        "other and tells them apart hardly better than by guessing.\n"
        "- Looked at: the later half of the training's batches whose classes were counted. There must be "
        "at least `looks` such batches, with at least `labels` labels of the pair.\n"
        "- Confused pair (warning): batch by batch, the missed labels of one class were given to the "
        "other. At most `open` of the pair's errors remain unexplained by this.\n"
        "- No other partner: if any other class takes the place of one of the two, the unexplained share "
        "is at least 0.2 higher.\n"
        "- Near guessing, in training: of what guessing between the two gets wrong, the model gets at most "
        "`gain` right. In either half of these batches it may be up to 0.05 more.\n"
        "- Near guessing, in evaluations: in those of the same time the model gets at most twice `gain` "
        "right.\n"
        "- Learned by heart: where these evaluations hold at least 200 labels and get at most 0.05 right, "
        "0.1 more is allowed in training.",
    .why =
        "What tells the two is not in the inputs as the model is given them. An augmentation that turns one "
        "class into the other does that: arrows, letters and organs that are mirrored, a 6 that is turned by "
        "half, a song that is transposed. So do a colour or a column that was dropped on the way, and labels "
        "that were dealt out by chance between two names of one class.",
    .fix =
        "Look at a dozen inputs of each of the two as the model is given them: a person must be able to tell "
        "them apart. Take out the flip, rotation or scaling that turns one into the other, or change the "
        "label together with the input.",
    .healthy =
        "Classes that are told apart later than others: while more and more are, it is not told, nor before "
        "the training is over. One that ends on the plateau before that looks the same: train on for some "
        "more passes, and see whether they stay together. Classes that look alike, of which most are told. A "
        "pair that nobody can tell apart should be one class.",
    .cost = "Classes of every 5th training step, and of some evaluated batches.",
    .original = "",
    .source = "Cubuk et al., \"AutoAugment: learning augmentation strategies from data\", CVPR 2019",
    .severity = model::Severity::kWarning,
    .parameters = {{"looks", "batches", 16, 4, 1000, "with counted classes, in the later half"},
                   {"labels", "labels", 200, 20, 1e9, "of the pair, in these"},
                   {"open", "share", 0.3, 0, 1, "of the pair's errors that the other class does not explain"},
                   {"gain", "share", 0.1, 0, 1, "of what guessing between the two gets wrong, told right"}},
};

constexpr std::size_t kFewestCounted = 3, kMostCounted = 64, kMostUnclear = 16;

double at(const std::vector<std::uint32_t>& counts, std::size_t i) {
    return i < counts.size() ? counts[i] : 0;
}

// What was said of two classes, over batches.
struct Pair {
    double labels = 0, hits = 0, by_chance = 0;
    double errors = 0, open = 0;  // `open`: errors that the other class does not explain

    void add(const model::ClassCounts& counts, std::size_t a, std::size_t b) {
        const double of_a = at(counts.labels, a), of_b = at(counts.labels, b), both = of_a + of_b;
        if (both == 0) return;
        const double said_a = at(counts.predictions, a), said_b = at(counts.predictions, b);
        const double right_a = at(counts.hits, a), right_b = at(counts.hits, b);
        labels += both;
        hits += right_a + right_b;
        // Were `a` said by chance as often as it is said, so often would it be right.
        by_chance += std::min((of_a * said_a + of_b * said_b) / both, both);
        errors += both - right_a - right_b;
        open +=
            std::abs((said_a - right_a) - (of_b - right_b)) + std::abs((said_b - right_b) - (of_a - right_a));
    }
    [[nodiscard]] double gain() const {
        return labels > by_chance ? (hits - by_chance) / (labels - by_chance) : 1;
    }
    [[nodiscard]] double share_open() const {
        return errors > 0 ? open / errors : std::numeric_limits<double>::infinity();
    }
};

class IndistinguishableClasses final : public Rule {
  public:
    explicit IndistinguishableClasses(const Parameters& parameters)
        : looks_(static_cast<std::size_t>(parameters.at("looks"))),
          labels_(parameters.at("labels")),
          open_(parameters.at("open")),
          gain_(parameters.at("gain")) {}

    void on_step(const model::StepView& step, FindingSink& sink) override {
        if (step.mode() == model::Mode::kTrain && loop_fact(step, "trainings")) {
            judge(sink);
            begin_anew();
        }
        if (const auto all = loop_fact(step, "rows_of_training")) rows_.all = all->value;
        if (const auto known = loop_fact(step, "rows_known")) rows_.known = known->value;
        if (const auto looked = loop_fact(step, "rows_looked_at")) rows_.looked_at = looked->value;
        if (step.mode() == model::Mode::kEval) return take_evaluated(step);
        if (step.mode() != model::Mode::kTrain) return;
        game_.observe(step);
        last_ = step.step();
        // One of several heads knows its classes by itself; which they are is not known here.
        if (step.record->classes.size() != 1) {
            has_several_ = has_several_ || !step.record->classes.empty();
            return;
        }
        const model::ClassCounts& counts = step.record->classes.front().counts;
        const std::size_t classes = counts.labels.size();
        if (classes > kMostCounted || has_several_) return;
        classes_ = std::max(classes_, classes);
        trained_.push_back({step.step(), counts});
        ++taken_;
        if (trained_.size() > kMostLooks) trained_.pop_front();
    }
    // Not before: on a plateau that it will leave, a training looks the same.
    void on_end(FindingSink& sink) override { judge(sink); }
    [[nodiscard]] std::uint64_t steps_judged() const override { return judged_; }
    [[nodiscard]] std::string why_not_judged() const override {
        if (classes_ == 0) return "no classification by one loss with up to 64 classes was seen";
        if (classes_ < kFewestCounted)
            return "two classes that are not told apart are a training that stalls";
        return base::format("batches with counted classes: {}; it judges from {} on", taken_, 2 * looks_);
    }

  private:
    // The later half of a training is looked at, and of a long one of these the last.
    static constexpr std::size_t kMostLooks = 128, kMostEvaluated = 64;
    static constexpr double kErrors = 0.3;  // of the pair's labels
    static constexpr double kOthersOpen = 0.2, kHalfMore = 0.05;
    static constexpr double kFewestEvaluated = 50, kManyEvaluated = 200;  // labels of the pair
    static constexpr double kNone = 0.05, kByHeart = 0.1;                 // gains
    static constexpr double kOthers = 1.2, kAgain = 1.5, kFewestRows = 500;
    struct Look {
        model::StepIndex step = 0;
        model::ClassCounts counts;
    };
    struct Tied {
        std::size_t a = 0, b = 0;
        Pair said;
        std::optional<double> evaluated;  // its gain
    };

    void begin_anew() {
        trained_.clear();
        evaluated_.clear();
        taken_ = 0;
        classes_ = 0;
        has_several_ = false;
        rows_ = {};
    }
    void take_evaluated(const model::StepView& step) {
        if (step.record->classes.size() != 1) return;
        const model::ClassCounts& counts = step.record->classes.front().counts;
        if (counts.labels.size() > kMostCounted) return;
        evaluated_.push_back({last_, counts});
        if (evaluated_.size() > kMostEvaluated) evaluated_.pop_front();
    }

    void judge(FindingSink& sink) {
        if (classes_ < kFewestCounted || has_several_ || game_.is_on()) return;
        const std::size_t half = std::min<std::size_t>(taken_ - taken_ / 2, trained_.size());
        if (half < looks_) return;
        ++judged_;
        const std::vector<Tied> tied = tied_classes(trained_.size() - half);
        if (!tied.empty()) fire(tied, trained_[trained_.size() - half].step, sink);
    }

    [[nodiscard]] Pair sum(std::size_t begin, std::size_t end, std::size_t a, std::size_t b) const {
        Pair all;
        for (std::size_t i = begin; i < end; ++i) all.add(trained_[i].counts, a, b);
        return all;
    }
    [[nodiscard]] std::vector<Tied> tied_classes(std::size_t begin) const {
        std::vector<Tied> found;
        const std::vector<std::size_t> unclear = unclear_classes(begin);
        if (unclear.size() > kMostUnclear) return found;  // little is told of any
        const std::size_t end = trained_.size(), middle = begin + (end - begin) / 2;
        for (std::size_t i = 0; i < unclear.size(); ++i) {
            for (std::size_t j = i + 1; j < unclear.size(); ++j) {
                const std::size_t a = unclear[i], b = unclear[j];
                const Pair all = sum(begin, end, a, b);
                if (all.labels < labels_ || all.errors < kErrors * all.labels || all.share_open() > open_)
                    continue;
                // Where nothing is told of other data, what is told of the training's is known by heart.
                const Pair others = evaluated_since(trained_[begin].step, a, b);
                std::optional<double> evaluated;
                if (others.labels >= kFewestEvaluated) evaluated = others.gain();
                if (evaluated && *evaluated > 2 * gain_) continue;
                const bool is_none = others.labels >= kManyEvaluated && others.gain() <= kNone;
                const double more = is_none ? kByHeart : 0;
                if (all.gain() > gain_ + more || sum(begin, middle, a, b).gain() > gain_ + kHalfMore + more ||
                    sum(middle, end, a, b).gain() > gain_ + kHalfMore + more)
                    continue;
                if (has_another_partner(unclear, begin, a, b) || has_another_partner(unclear, begin, b, a))
                    continue;
                found.push_back({a, b, all, evaluated});
            }
        }
        return found;
    }
    // Of which much is missed.
    [[nodiscard]] std::vector<std::size_t> unclear_classes(std::size_t begin) const {
        std::vector<std::size_t> unclear;
        for (std::size_t c = 0; c < classes_; ++c) {
            double labels = 0, hits = 0;
            for (std::size_t i = begin; i < trained_.size(); ++i) {
                labels += at(trained_[i].counts.labels, c);
                hits += at(trained_[i].counts.hits, c);
            }
            if (labels > 0 && hits < 0.9 * labels) unclear.push_back(c);
        }
        return unclear;
    }
    // In large batches of which all classes are missed alike any two seem to explain each other.
    [[nodiscard]] bool has_another_partner(const std::vector<std::size_t>& unclear, std::size_t begin,
                                           std::size_t a, std::size_t b) const {
        const double own = sum(begin, trained_.size(), a, b).share_open();
        return std::any_of(unclear.begin(), unclear.end(), [&](std::size_t c) {
            return c != a && c != b && sum(begin, trained_.size(), a, c).share_open() < own + kOthersOpen;
        });
    }
    [[nodiscard]] Pair evaluated_since(model::StepIndex since, std::size_t a, std::size_t b) const {
        Pair all;
        for (const Look& look : evaluated_)
            if (look.step >= since) all.add(look.counts, a, b);
        return all;
    }

    // Whether the training's rows are other ones each time that they come, as far as that is known: of rows
    // that are mirrored by chance there are twice as many.
    [[nodiscard]] std::optional<bool> are_augmented() const {
        if (rows_.all > 0 && rows_.known > kOthers * rows_.all) return true;
        if (rows_.looked_at < kFewestRows) return std::nullopt;
        if (rows_.looked_at > kAgain * rows_.known) return false;
        return std::nullopt;
    }

    void fire(const std::vector<Tied>& tied, model::StepIndex since, FindingSink& sink) const {
        const std::optional<bool> augmented = are_augmented();
        const bool are_labels = augmented && !*augmented;
        std::string pairs;
        double labels = 0, hits = 0;
        for (const Tied& pair : tied) {
            if (!pairs.empty()) pairs += ", ";
            pairs += base::format("{} and {}", pair.a, pair.b);
            labels += pair.said.labels;
            hits += pair.said.hits;
        }
        model::Finding finding;
        finding.key = kKey;
        finding.kind = are_labels ? "label_noise" : "destructive_augmentation";
        finding.severity = model::Severity::kWarning;
        finding.first_step = since;
        finding.tensor = "loss";
        finding.message = base::format(
            "Since step {} the classes {} are told from all others and not from each other: of {:.0f} of "
            "their labels in the training's batches {:.0f} % are told right.{}",
            since, pairs, labels, 100 * hits / labels,
            are_labels  ? " The rows come again as they are, so no augmentation makes one of the other."
            : augmented ? base::format(" There are more different rows ({:.0f}) than the training has "
                                       "({:.0f}): they are augmented.",
                                       rows_.known, rows_.all)
                        : std::string(" Whether they are augmented is not known."));
        finding.fix = are_labels
                          ? "Look at a dozen rows of each of the two. Where they are of one kind with two "
                            "names, make them one class; where a person can tell them apart, look for what "
                            "was lost on the way to the model (a colour, a column), or for what dealt out "
                            "their labels."
                          : kIndistinguishableClasses.fix;
        for (const Tied& pair : tied) {
            finding.evidence.push_back(
                {base::format("told right of {} and {}, beyond guessing", pair.a, pair.b), pair.said.gain(),
                 "limit", gain_});
            finding.evidence.push_back(
                {base::format("errors of {} and {} that the other does not explain", pair.a, pair.b),
                 pair.said.share_open(), "limit", open_});
            if (pair.evaluated)
                finding.evidence.push_back(
                    {base::format("the same of {} and {} in evaluations", pair.a, pair.b), *pair.evaluated,
                     "limit", 2 * gain_});
        }
        finding.plots = {{"loss", "value"}};
        sink.fire(std::move(finding));
    }

    static constexpr const char* kKey = "classes";

    std::size_t looks_;
    double labels_, open_, gain_;
    Game game_;
    std::deque<Look> trained_, evaluated_;  // evaluated batches stand at the training step before them
    std::uint64_t taken_ = 0, judged_ = 0;
    std::size_t classes_ = 0;
    bool has_several_ = false;
    model::StepIndex last_ = 0;
    struct Rows {
        double all = 0, known = 0, looked_at = 0;
    } rows_;
};

std::vector<model::Requirement> indistinguishable_classes_needs(const Parameters&) {
    constexpr std::string_view kName = "indistinguishable_classes";
    std::vector<model::Requirement> all = row_requirements(kName);
    for (model::Requirement& each : loss_requirements(kName)) all.push_back(std::move(each));
    all.push_back(evaluation_classes_requirement(kName));
    return all;
}

}  // namespace

RuleEntry builtin::indistinguishable_classes() {
    return {&kIndistinguishableClasses, &indistinguishable_classes_needs,
            [](const Parameters& p) -> std::unique_ptr<Rule> {
                return std::make_unique<IndistinguishableClasses>(p);
            }};
}

}  // namespace traindbg::rules

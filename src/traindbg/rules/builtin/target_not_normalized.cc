// Regression targets of a size that the training has to climb to.

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/rules/builtin/builtin.h"
#include "traindbg/rules/loop_facts.h"
#include "traindbg/rules/loss_arguments.h"
#include "traindbg/rules/robust.h"

namespace traindbg::rules {
namespace {

using base::human_number;

const model::RuleInfo kTargetNotNormalized = {
    .name = "target_not_normalized",
    .title = "Targets are not normalised",
    .summary =
        "Regression targets are far from zero mean and unit spread, and the model does worse than a "
        "constant.",
    .when =
        "The targets of a regression lie far from zero, or spread very widely or hardly at all, and the "
        "training hardly gets past a constant answer. Or parts of the loss differ too much in size.\n"
        "- Unusual targets: a loss of mse, l1, smooth_l1 or huber has targets with a mean of more than "
        "`offset` times their spread, or a standard deviation above `spread` or below one over twenty.\n"
        "- Worse than a constant (warning): with such targets, the loss (median over ten steps) is above "
        "1.5 times that of a model that always answers the targets' mean. Judged after `steps` steps, or "
        "at the end of a run of at least 30 steps.\n"
        "- Flat predictions (warning): the targets' standard deviation is above `spread`. After three "
        "times `steps` steps the loss is above 90 % of that of the constant answer, and the predictions "
        "spread less than a third as much as the targets.\n"
        "- Slow start (warning), at the end of a run: the targets are both far from zero and widely "
        "spread. The loss took at least half of `steps` steps and a sixth of all steps to come down to "
        "that of a constant, is above 40 % of that, and still falls.\n"
        "- At once (warning): with such targets, larger than 30, the loss is not finite or a thousand "
        "times its start.\n"
        "- Columns (warning), at once: the targets are a table of two to 16 columns, and one reaches 30 "
        "times as far as another that is no constant (of the first 100 rows). The loss adds them up as "
        "they are.\n"
        "- Two tasks (warning): a regression of targets larger than 10 (root mean square) and a "
        "cross_entropy are added as they are. The regression's loss is more than 100 times the other for "
        "`steps` steps, and the cross-entropy is above 90 % of what it was.",
    .why =
        "The last layer begins near zero and has to carry all of the targets' size: its bias creeps up by "
        "steps of the learning rate, gradients are as large as the targets, and the rest learns little "
        "meanwhile.",
    .fix =
        "Standardise the targets: (y - y.mean()) / y.std() of the training part, and undo it in predictions; "
        "or set the last layer's bias to the targets' mean.",
    .healthy =
        "Targets of any size with which the loss comes below that of a constant; targets of about zero mean "
        "and unit spread that are not learned for another reason. A regression loss beside another loss "
        "function, as long as that one gets lower: the targets of such a term are often made by a model. A "
        "model that is asked without gradients at nearly all steps, in training mode and for no loss, as an "
        "agent is: a note (info) until four times `steps` steps, and nothing once its targets are 1.4 times "
        "as large. Where the program adds up discounted rewards, or the loss is that of a policy: a note "
        "(info).",
    .cost =
        "The loss at every step; one pass over what the loss functions are given at the first 10 steps and "
        "then at every 50th, and over what the modules return at the first 5 and every 50th; the extremes of "
        "each column of the targets with the former.",
    .original = "",
    .source = "Ben Braiek, Khomh, \"Testing Feedforward Neural Networks Training Programs\", TOSEM 2022",
    .severity = model::Severity::kWarning,
    .parameters = {{"offset", "times", 2, 0.5, 1e6, "mean of the targets beside their standard deviation"},
                   {"spread", "standard deviation", 5, 1, 1e9, "spread of the targets that is large"},
                   {"steps", "steps", 100, 30, 1e9, "steps that a training has to get below a constant"}},
};

constexpr double kGrownSize = 1.4;        // root mean square of an agent's targets
constexpr std::uint64_t kUntilGrown = 4;  // times `steps`
constexpr double kPoor = 0.4;             // of a constant's loss, in the end
constexpr double kFalls = -2.5;           // in standard errors: the loss of the second half

class TargetNotNormalized final : public Rule {
  public:
    explicit TargetNotNormalized(const Parameters& parameters)
        : offset_(parameters.at("offset")),
          spread_(parameters.at("spread")),
          steps_(static_cast<std::uint64_t>(parameters.at("steps"))) {}

    void on_step(const model::StepView& step, FindingSink& sink) override {
        agent_.observe(step);
        if (step.mode() != model::Mode::kTrain) return;
        guessing_.observe(step);
        look_at_tasks(step, sink);
        for (const LossCall& call : loss_calls(step)) {
            if (!is_regression(call.function) || call.labelled == nullptr) continue;
            ++judged_;
            predicted_ = *call.predicted;
            prediction_ = call.prediction->name;
            loss_ = base::format("loss/{}", call.function);
            const Maker maker = maker_of(step, call);
            if (maker.tensor != nullptr) last_layer_ = maker.tensor->module;
            if (call.labelled != nullptr) targets_ = *call.labelled;
        }
        if (judged_ == 0 || !is_regression(guessing_.function()) || is_one_of_several(step)) return;
        look_at_columns(step, sink);
        ++count_;
        step_ = step.step();
        for (const model::ScalarSample& sample : step.record->scalars) {
            if (function_of_loss(step.info(sample.tensor).name) != guessing_.function()) continue;
            if (count_ == 1) start_ = std::abs(sample.value);
            const bool is_lost = !std::isfinite(sample.value) || std::abs(sample.value) > 1e3 * start_;
            if (is_lost && size() > 30 && is_unusual()) lost_ = true;
        }
        if (climb_ == 0)
            if (const std::optional<double> share = guessing_.share(); share && *share <= 1) climb_ = count_;
        judge(steps_, sink);
    }
    void on_end(FindingSink& sink) override {
        if (judged_ > 0 && count_ < steps_ && count_ >= 30) judge(0, sink);
        else judge_climb(sink);
    }
    [[nodiscard]] std::uint64_t steps_judged() const override { return judged_; }
    [[nodiscard]] std::string why_not_judged() const override {
        return "no regression loss of torch.nn.functional was seen";
    }

  private:
    [[nodiscard]] double mean() const { return guessing_.labels().mean; }
    [[nodiscard]] double std() const { return guessing_.labels().std; }
    [[nodiscard]] double size() const { return std::hypot(mean(), std()); }
    [[nodiscard]] bool is_unusual() const {
        return std() > 0 && (std::abs(mean()) > offset_ * std() || std() > spread_ || std() < 0.05);
    }

    // Values that an agent learns: larger by now than when they were asked for first.
    [[nodiscard]] bool makes_targets() const {
        return agent_.is_on() && std::hypot(targets_.mean, targets_.std) > kGrownSize * size();
    }

    // Beside another loss function it is a term, whose targets are often made by a model: they are not the
    // data's.
    [[nodiscard]] bool is_one_of_several(const model::StepView& step) const {
        return std::any_of(step.record->scalars.begin(), step.record->scalars.end(), [&](const auto& sample) {
            const model::TensorInfo& info = step.info(sample.tensor);
            const std::string_view function =
                info.role == model::Role::kLoss ? function_of_loss(info.name) : std::string_view();
            return !function.empty() && function != guessing_.function();
        });
    }

    // A classification and a regression, whose losses are added as they are: the one is lost beside the
    // other.
    void look_at_tasks(const model::StepView& step, FindingSink& sink) {
        double root = 0, classes = 0, numbers = 0;
        int terms = 0;
        for (const model::ScalarSample& sample : step.record->scalars) {
            const model::TensorInfo& info = step.info(sample.tensor);
            if (info.role != model::Role::kLoss) continue;
            const std::string_view function = function_of_loss(info.name);
            if (info.name == "loss") root = sample.value;
            if (function.empty()) continue;
            ++terms;
            if (is_regression(function)) {
                numbers = sample.value;
                function_of_numbers_ = function;
            } else if (function == "cross_entropy") {
                classes = sample.value;
            }
        }
        if (const std::optional<LoopFact> made = loop_fact(step, "target_has_gradient"))
            is_target_made_ = is_target_made_ || made->value > 0;
        const bool are_added = terms == 2 && classes > 0 && numbers > kDrowns * classes &&
                               std::abs(root - classes - numbers) <= 1e-3 * root;
        if (!are_added) {
            if (tells_tasks_) sink.clear(kTasks);
            tells_tasks_ = false;
            drowned_ = 0;
            first_classes_ = 0;
            classes_.clear();
            return;
        }
        if (drowned_++ < kFirstLosses) first_classes_ += classes;
        classes_.add(classes);
        if (drowned_ < std::max<std::uint64_t>(steps_, 2 * kFirstLosses) || is_target_made_) return;
        const auto recent = classes_.last(kFirstLosses);
        const double now = median({recent.begin(), recent.end()}), before = first_classes_ / kFirstLosses;
        const bool is_large = std::hypot(targets_.mean, targets_.std) > kLargeTargets;
        const bool shows = is_large && now > kHardlyLearned * before;
        if (!shows && tells_tasks_) sink.clear(kTasks);
        tells_tasks_ = shows;
        if (shows) fire_tasks(now, before, numbers, sink);
    }
    void fire_tasks(double now, double before, double numbers, FindingSink& sink) const {
        model::Finding finding;
        finding.key = kTasks;
        finding.severity = model::Severity::kWarning;
        finding.first_step = 0;
        finding.tensor = base::format("loss/{}", function_of_numbers_);
        finding.layer = last_layer_;
        finding.message = base::format(
            "The targets of {} have mean {} and standard deviation {}, and its loss, {}, is added to a "
            "cross-entropy of {} as it is: hardly anything of the gradient is the classification's, whose "
            "loss was {} at the start.",
            function_of_numbers_, human_number(targets_.mean), human_number(targets_.std),
            human_number(numbers), human_number(now), human_number(before));
        finding.fix =
            "Standardise the targets of the training part, y = (y - y.mean()) / y.std(), and undo it in "
            "predictions; or weigh the losses so that both are of the same size.";
        finding.evidence.push_back({"loss of the regression", numbers, "of the classification", now});
        finding.evidence.push_back({"classification's loss", now, "at the start", before});
        finding.plots = {{finding.tensor, "value"}, {"loss/cross_entropy", "value"}};
        sink.fire(std::move(finding));
    }

    // Targets of several columns, which one loss adds up as they are.
    void look_at_columns(const model::StepView& step, FindingSink& sink) {
        if (guessing_.loss().is_game() || !is_plain_mean(step)) return;
        for (const model::ChannelSample& sample : step.record->channels) {
            const model::TensorInfo& info = step.info(sample.tensor);
            const std::size_t columns = sample.channels.channels();
            if (info.role != model::Role::kLabel || info.shape.size() != 2 || columns < 2 ||
                columns > kMostColumns || info.name != base::format("label/{}", guessing_.function()))
                continue;
            if (column_low_.empty()) {
                column_low_.assign(columns, std::numeric_limits<float>::infinity());
                column_high_.assign(columns, -std::numeric_limits<float>::infinity());
            }
            if (column_low_.size() != columns) return;
            column_rows_ += static_cast<double>(info.shape[0]);
            for (std::size_t i = 0; i < columns; ++i) {
                column_low_[i] = std::min(column_low_[i], sample.channels.min[i]);
                column_high_[i] = std::max(column_high_[i], sample.channels.max[i]);
            }
        }
        if (column_rows_ < kColumnRows || are_columns_told_) return;
        std::size_t widest = 0, narrowest = column_low_.size();
        const auto range = [&](std::size_t i) {
            return static_cast<double>(column_high_[i]) - static_cast<double>(column_low_[i]);
        };
        for (std::size_t i = 0; i < column_low_.size(); ++i) {
            if (range(i) > range(widest)) widest = i;
            if (range(i) > 0 && (narrowest == column_low_.size() || range(i) < range(narrowest)))
                narrowest = i;
        }
        if (narrowest == column_low_.size() || !(range(widest) > kColumnRatio * range(narrowest))) return;
        are_columns_told_ = true;
        fire_columns(widest, range(widest), narrowest, range(narrowest), sink);
    }
    // What is trained is what the function gave, and not that of each value, with weights perhaps.
    [[nodiscard]] bool is_plain_mean(const model::StepView& step) const {
        std::optional<double> root, function;
        for (const model::ScalarSample& sample : step.record->scalars) {
            const std::string& name = step.info(sample.tensor).name;
            if (name == "loss") root = sample.value;
            if (name == base::format("loss/{}", guessing_.function())) function = sample.value;
        }
        if (root && function) return std::abs(*root - *function) <= 1e-5 * std::abs(*root);
        if (function) return true;
        for (const char* fact : {"loss_is_written_out", "loss_is_of_columns"})
            if (const std::optional<LoopFact> written = loop_fact(step, fact); written && written->value != 0)
                return true;
        return false;
    }
    void fire_columns(std::size_t widest, double wide, std::size_t narrowest, double narrow,
                      FindingSink& sink) const {
        model::Finding finding;
        finding.key = "columns";
        finding.severity = model::Severity::kWarning;
        finding.first_step = 0;
        finding.tensor = loss_;
        finding.layer = last_layer_;
        finding.message = base::format(
            "The targets of {} have {} columns of very different sizes, which it adds up as they are: column "
            "{} reaches from {} to {}, column {} from {} to {}, {:.0f} times as far. The loss hardly depends "
            "on column {}.",
            guessing_.function(), column_low_.size(), widest, human_number(column_low_[widest]),
            human_number(column_high_[widest]), narrowest, human_number(column_low_[narrowest]),
            human_number(column_high_[narrowest]), wide / narrow, narrowest);
        finding.fix =
            "Standardise each column of the targets: (y - y.mean(0)) / y.std(0) of the training part, and "
            "undo it in predictions; or weight the columns' losses.";
        finding.evidence.push_back({"range of the widest column", wide, "of the narrowest", narrow});
        finding.plots = {{loss_, "value"}};
        sink.fire(std::move(finding));
    }

    void judge(std::uint64_t steps, FindingSink& sink) {
        if (guessing_.loss().is_game() || makes_targets() || !is_unusual()) return;
        bool on = lost_;
        if (const std::optional<double> share = guessing_.share(); share && count_ >= steps) {
            on = on || *share > 1.5;
            const bool is_flat = std() > spread_ && predicted_.std < std() / 3;
            on = on || (steps > 0 && count_ >= 3 * steps && *share > 0.9 && is_flat);
        }
        if (on) fire(sink);
        else if (fired_) sink.clear("targets");
        fired_ = on;
    }

    // Below a constant's loss in the end, and most of what there was to learn is left.
    void judge_climb(FindingSink& sink) {
        const bool is_long = 2 * climb_ >= steps_ && 6 * climb_ >= count_;
        if (judged_ == 0 || fired_ || climb_ == 0 || !is_long || guessing_.loss().is_game() ||
            makes_targets())
            return;
        const auto means = guessing_.loss().blocks().means();
        if (!(trend_z(means.last(means.size() / 2)) < kFalls)) return;
        const std::optional<double> share = guessing_.share();
        const bool is_far = std() > spread_ && std::abs(mean()) > offset_ * std();
        if (is_far && share && *share > kPoor) fire(sink);
    }

    void fire(FindingSink& sink) const {
        const std::optional<double> share = guessing_.share();
        model::Finding finding;
        finding.key = "targets";
        // Whether its targets grow is not known yet.
        const bool may_grow = agent_.is_taught() || (agent_.is_on() && count_ < kUntilGrown * steps_);
        finding.severity = may_grow ? model::Severity::kInfo : model::Severity::kWarning;
        finding.first_step = 0;
        finding.tensor = loss_;
        finding.layer = last_layer_;
        finding.message =
            base::format("The targets of {} have mean {} and standard deviation {} and lie between {} and {}",
                         guessing_.function(), human_number(mean()), human_number(std()),
                         human_number(guessing_.labels().min), human_number(guessing_.labels().max));
        if (lost_) finding.message += base::format("; the loss ran away by step {}.", step_);
        else
            finding.message += base::format(
                "; after {} steps the loss is {}, {:.3g} times that of a model that always answers their "
                "mean{}.",
                count_, human_number(guessing_.level()), share.value_or(0),
                2 * climb_ >= steps_ ? base::format(", which it came down to after {}", climb_)
                                     : std::string());
        finding.fix = base::format(
            "Standardise the targets of the training part, y = (y - {}) / {}, and undo it in predictions; or "
            "set the last layer's bias to {}.",
            human_number(mean()), human_number(std()), human_number(mean()));
        finding.evidence.push_back({"mean of the targets", mean(), "their standard deviation", std()});
        finding.evidence.push_back(
            {"loss", guessing_.level(), "of a constant answer", guessing_.constant_loss().value_or(0)});
        finding.evidence.push_back({"mean of the predictions", predicted_.mean, "of the targets", mean()});
        finding.plots = {{prediction_, "mean"}, {loss_, "value"}};
        sink.fire(std::move(finding));
    }

    double offset_, spread_;
    std::uint64_t steps_;
    std::uint64_t judged_ = 0, count_ = 0;
    std::uint64_t climb_ = 0;  // losses until it was that of a constant; 0: it has not been
    model::StepIndex step_ = 0;
    double start_ = 0;
    bool lost_ = false, fired_ = false;
    std::string prediction_, loss_, last_layer_;
    model::Statistics predicted_;
    Guessing guessing_;
    Agent agent_;
    std::vector<float> column_low_, column_high_;  // of the targets
    double column_rows_ = 0;
    bool are_columns_told_ = false;

    static constexpr const char* kTasks = "tasks";
    static constexpr double kDrowns = 100;         // times the other loss
    static constexpr double kLargeTargets = 10;    // root of their mean square
    static constexpr double kHardlyLearned = 0.9;  // of the first losses
    static constexpr std::uint64_t kFirstLosses = 20;
    std::string function_of_numbers_;
    model::Statistics targets_;
    std::uint64_t drowned_ = 0;  // steps in a row
    double first_classes_ = 0;   // sum of the first losses of the classification
    Recent classes_{kFirstLosses};
    bool is_target_made_ = false, tells_tasks_ = false;

    static constexpr std::size_t kMostColumns = 16;  // numbers of different meanings, and no image
    static constexpr double kColumnRows = 100, kColumnRatio = 30;
};

std::vector<model::Requirement> target_not_normalized_needs(const Parameters&) {
    std::vector<model::Requirement> all = loss_requirements(kTargetNotNormalized.name);
    for (model::Requirement& more : argument_requirements(kTargetNotNormalized.name))
        all.push_back(std::move(more));
    for (model::Requirement& more : maker_requirements(kTargetNotNormalized.name))
        all.push_back(std::move(more));
    all.push_back(loop_requirement(kTargetNotNormalized.name));
    all.push_back({"labels",
                   model::Mode::kTrain,
                   model::What::kChannels,
                   {.every = 50, .dense_until = 10},
                   kTargetNotNormalized.name});
    return all;
}

}  // namespace

RuleEntry builtin::target_not_normalized() {
    return {&kTargetNotNormalized, &target_not_normalized_needs,
            [](const Parameters& p) -> std::unique_ptr<Rule> {
                return std::make_unique<TargetNotNormalized>(p);
            }};
}

}  // namespace traindbg::rules

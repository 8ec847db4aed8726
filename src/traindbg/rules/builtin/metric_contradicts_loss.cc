// Over the evaluations the loss gets better and the metric that is logged gets worse.

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/rules/builtin/builtin.h"
#include "traindbg/rules/robust.h"
#include "traindbg/rules/training_loss.h"

namespace traindbg::rules {
namespace {

using base::human_number;

const model::RuleInfo kMetricContradictsLoss = {
    .name = "metric_contradicts_loss",
    .title = "Metric and loss contradict each other",
    .summary = "Over the evaluations the loss gets better, and a metric of the same evaluations gets worse.",
    .when =
        "A note (info): over the evaluations the loss clearly falls, and a metric of the same evaluations "
        "clearly gets worse.\n"
        "- An evaluation: the evaluation steps between two training steps. Its results are the mean of its "
        "loss and of each metric that is logged with it (traindbg.log), or at the next training step under "
        "a name with val, valid, validation, eval, test or dev.\n"
        "- Looked at: all evaluations, or the second half of them, if these are `evaluations` or more.\n"
        "- Trend: the loss falls and the metric gets worse, both almost surely (Mann-Kendall, 3 standard "
        "deviations).\n"
        "- Size: between the first third and the last, each changes by more than `change` of what it was, "
        "and by more than five times the standard error that its noise gives.\n"
        "- Higher is better, by the metric's name: acc, accuracy, f1, auc, auroc, r2, precision, recall, "
        "iou, miou, dice, bleu, rouge, mcc, top1, top5, acc1, acc5.\n"
        "- Lower is better, by the metric's name: err, error, errors, rmse, nrmse, mae, mse, perplexity, "
        "ppl, wer, cer.\n"
        "- Not judged: metrics of other names.",
    .why =
        "Both look at the same answers of the same model. Where they part, one of them is computed from "
        "something else than what it should be, or the loss rewards what nobody wants.",
    .fix =
        "Compute the metric by hand for one batch. Look for predictions and labels in different orders or of "
        "different batches, a wrong axis of argmax, a threshold on logits, the wrong class as the positive "
        "one, a sum that is not reset between evaluations. If it is right: weigh the loss, or choose the "
        "checkpoint by the metric.",
    .healthy =
        "An accuracy that holds or sways while the loss falls; a loss that rises while the accuracy does, "
        "too, as the model becomes sure of itself (overfit tells of losses that rise).",
    .cost = "One number per evaluation step, and those that are logged.",
    .original = "",
    .source = "Guo et al., \"On calibration of modern neural networks\", ICML 2017 (section 3)",
    .severity = model::Severity::kInfo,
    .parameters = {{"evaluations", "evaluations", 8, 8, 1e6, "so many at least are judged"},
                   {"change", "share", 0.02, 0, 10, "change of loss and metric that counts"}},
};

constexpr std::array<std::string_view, 18> kHigherIsBetter = {
    "acc",  "accuracy", "f1",  "auc",  "auroc", "r2",   "precision", "recall", "iou",
    "miou", "dice",     "mcc", "bleu", "rouge", "top1", "top5",      "acc1",   "acc5"};
constexpr std::array<std::string_view, 11> kLowerIsBetter = {
    "err", "error", "errors", "rmse", "mae", "mse", "perplexity", "ppl", "wer", "cer", "nrmse"};
constexpr std::array<std::string_view, 6> kOfEvaluation = {"val",  "valid", "validation",
                                                           "eval", "test",  "dev"};

// "valAccuracy", "eval/F1-macro": val, accuracy; eval, f1, macro.
std::vector<std::string> words_of(std::string_view name) {
    std::vector<std::string> words(1);
    char before = ' ';
    for (const char letter : name) {
        const auto byte = static_cast<unsigned char>(letter);
        const bool begins = std::isupper(byte) != 0 && std::islower(static_cast<unsigned char>(before)) != 0;
        before = letter;
        if (begins || std::isalnum(byte) == 0) words.emplace_back();
        if (std::isalnum(byte) != 0) words.back().push_back(static_cast<char>(std::tolower(byte)));
    }
    return words;
}

template <std::size_t kCount>
bool has_one_of(const std::vector<std::string>& words, const std::array<std::string_view, kCount>& wanted) {
    return std::any_of(words.begin(), words.end(), [&](const std::string& word) {
        return std::find(wanted.begin(), wanted.end(), word) != wanted.end();
    });
}

// 1: higher is better, -1: lower is; 0: nobody knows.
int direction_of(const std::vector<std::string>& words) {
    const bool higher = has_one_of(words, kHigherIsBetter), lower = has_one_of(words, kLowerIsBetter);
    return higher == lower ? 0 : higher ? 1 : -1;
}

struct Change {
    double from = 0, to = 0;
    bool is_clear = false;
};

// How much lower a series is in its last third than in its first; of one that rises, with sign -1.
Change fall_of(std::span<const double> series, double sign, double least) {
    std::vector<double> values;
    for (const double value : series) values.push_back(sign * value);
    const std::size_t third = values.size() / 3;
    const auto begin = values.begin();
    const auto size = static_cast<std::ptrdiff_t>(third);
    const double from = median({begin, begin + size}), to = median({values.end() - size, values.end()});
    const double error = noise_of(values) * std::sqrt(2.0 / static_cast<double>(third));
    const bool is_clear = trend_z(values) < -3 && from - to > 5 * error && from - to > least * std::abs(from);
    return {sign * from, sign * to, is_clear};
}

class MetricContradictsLoss final : public Rule {
  public:
    explicit MetricContradictsLoss(const Parameters& parameters)
        : evaluations_(static_cast<std::size_t>(parameters.at("evaluations"))),
          change_(parameters.at("change")) {}

    void on_step(const model::StepView& step, FindingSink& sink) override {
        if (step.mode() == model::Mode::kEval) {
            take(step, false);
            return;
        }
        if (step.mode() != model::Mode::kTrain) return;
        for (const model::ScalarSample& sample : step.record->scalars)
            if (step.info(sample.tensor).name == kTrainings) begin_anew(sink);
        if (losses_ == 0) {
            sums_.clear();  // of an evaluation without a loss
            return;
        }
        take(step, true);  // what was logged after the evaluation, before the next step
        close(step.step(), sink);
    }
    void on_end(FindingSink& sink) override {
        if (losses_ > 0) close(model::kThisStep, sink);
    }
    [[nodiscard]] std::uint64_t steps_judged() const override { return judged_; }
    [[nodiscard]] std::string why_not_judged() const override {
        if (series_.empty())
            return "no evaluation was seen with a loss and a metric whose better direction its name tells "
                   "(traindbg.log)";
        return base::format("fewer than {} evaluations with a loss and a metric were seen", evaluations_);
    }

  private:
    static constexpr const char* kTrainings = "loop/trainings";
    static constexpr std::string_view kPrefix = "metric/";
    static constexpr std::size_t kMostMetrics = 32;

    struct Sum {
        double sum = 0, count = 0;
    };
    struct Series {
        Blocks losses, metric;  // of the same evaluations
        bool is_firing = false;
    };

    // Another training in the same process: what was evaluated last belongs to the one before.
    void begin_anew(FindingSink& sink) {
        if (losses_ > 0) close(model::kThisStep, sink);
        for (const auto& [name, series] : series_)
            if (series.is_firing) sink.clear(name);
        series_.clear();
        sums_.clear();
        function_.clear();
    }

    void take(const model::StepView& step, bool only_named) {
        for (const model::ScalarSample& sample : step.record->scalars) {
            const model::TensorInfo& info = step.info(sample.tensor);
            if (!std::isfinite(sample.value)) continue;
            if (is_first_loss(info) && !only_named) {
                if (function_.empty()) function_ = info.name;
                if (info.name != function_) continue;
                loss_ += sample.value;
                ++losses_;
            } else if (info.role == model::Role::kMetric && info.name.starts_with(kPrefix)) {
                if (only_named && !has_one_of(words_of(info.name), kOfEvaluation)) continue;
                if (sums_.size() == kMostMetrics && !sums_.contains(info.name)) continue;
                Sum& sum = sums_[info.name];
                sum.sum += sample.value;
                ++sum.count;
            }
        }
    }

    void close(model::StepIndex step, FindingSink& sink) {
        const double loss = loss_ / losses_;
        loss_ = losses_ = 0;
        for (const auto& [name, sum] : sums_) {
            const int direction = direction_of(words_of(name));
            if (direction == 0) continue;
            Series& series = series_[name];
            series.losses.add(loss);
            series.metric.add(sum.sum / sum.count);
            if (series.losses.means().size() < evaluations_) continue;
            ++judged_;
            judge(name, direction, series, step, sink);
        }
        sums_.clear();
    }

    void judge(const std::string& name, int direction, Series& series, model::StepIndex step,
               FindingSink& sink) const {
        const auto losses = series.losses.means(), metric = series.metric.means();
        for (const std::size_t count : {losses.size(), losses.size() / 2}) {
            if (count < evaluations_) break;
            const Change loss = fall_of(losses.last(count), 1, change_);
            const Change worse = fall_of(metric.last(count), direction, change_);
            if (!loss.is_clear || !worse.is_clear) continue;
            series.is_firing = true;
            model::Finding finding;
            finding.key = name;
            finding.severity = model::Severity::kInfo;
            finding.mode = model::Mode::kEval;
            if (step != model::kThisStep) finding.first_step = step;
            finding.tensor = name;
            const auto evaluations = count * series.losses.values_per_block();
            finding.message = base::format(
                "Over {} evaluations the loss got better, from {} to {}, and {} got worse, from {} to {} ({} "
                "is better).",
                evaluations, human_number(loss.from), human_number(loss.to),
                std::string_view(name).substr(kPrefix.size()), human_number(worse.from),
                human_number(worse.to), direction > 0 ? "higher" : "lower");
            finding.fix =
                "Compute the metric by hand for one batch: predictions and labels of the same samples in the "
                "same order, the axis of argmax, a threshold made for probabilities and not for logits, sums "
                "that begin anew with each evaluation. If it is right, choose the checkpoint by the metric.";
            finding.evidence.push_back({"evaluation loss", loss.to, "before", loss.from});
            finding.evidence.push_back(
                {std::string(std::string_view(name).substr(kPrefix.size())), worse.to, "before", worse.from});
            finding.plots = {{function_, "value"}, {name, "value"}};
            sink.fire(std::move(finding));
            return;
        }
        if (series.is_firing) sink.clear(name);
        series.is_firing = false;
    }

    std::size_t evaluations_;
    double change_;
    std::uint64_t judged_ = 0;
    std::string function_;
    double loss_ = 0, losses_ = 0;     // of the evaluation under way
    std::map<std::string, Sum> sums_;  // the same of metrics
    std::map<std::string, Series> series_;
};

std::vector<model::Requirement> metric_contradicts_loss_needs(const Parameters&) {
    using enum model::Mode;
    const std::string name = kMetricContradictsLoss.name;
    return {{"losses", kEval, model::What::kStatistics, {.every = 1}, name},
            {"metrics", kEval, model::What::kStatistics, {.every = 1}, name},
            {"metrics", kTrain, model::What::kStatistics, {.every = 1}, name}};
}

}  // namespace

RuleEntry builtin::metric_contradicts_loss() {
    return {&kMetricContradictsLoss, &metric_contradicts_loss_needs,
            [](const Parameters& p) -> std::unique_ptr<Rule> {
                return std::make_unique<MetricContradictsLoss>(p);
            }};
}

}  // namespace traindbg::rules

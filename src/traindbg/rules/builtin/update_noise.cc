// Steps that are made of noise: gradients have nothing in common from batch to batch.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/rules/builtin/builtin.h"
#include "traindbg/rules/robust.h"
#include "traindbg/rules/settings.h"
#include "traindbg/rules/training_loss.h"
#include "traindbg/rules/updates.h"

namespace traindbg::rules {
namespace {

using base::human_number;

const model::RuleInfo kUpdateNoise = {
    .name = "update_noise",
    .title = "Updates are noise",
    .summary =
        "The loss stands still above zero, and the gradients of successive batches point nowhere in common: "
        "steps undo each other.",
    .when =
        "The loss stands still above zero at nearly the full learning rate, and the gradients of "
        "successive steps have almost nothing in common. A note (info).\n"
        "- Measured: the optimizer's mean of gradients (SGD's momentum_buffer, exp_avg of Adam and its "
        "like) beside single gradients. Its size tells how much the gradients have in common.\n"
        "- Scale: where all gradients agree, the squared norm of Adam's mean equals that of one gradient. "
        "Where they are independent it is (1 - beta) / (1 + beta) of it. The measured share is where "
        "between the two it lies.\n"
        "- The share is taken over `looks` looks, 50 steps apart, with the gradients captured in between, "
        "and must be below `signal`.\n"
        "- The loss stands still: its means between these looks have no trend (Mann-Kendall z between -1.5 "
        "and 2.5) and gained less than 2 % of what had been learned.\n"
        "- The training has learned, and its loss is still above a twentieth of its start.\n"
        "- The learning rate is still at nine tenths of its peak or more.\n"
        "- The note goes when one of these conditions is over.",
    .why =
        "With a constant learning rate the weights wander about the minimum at a distance that grows with "
        "the rate and with the noise of a batch's gradient. More steps of this kind bring nothing.",
    .fix =
        "Let the learning rate decay to zero by the end (cosine, linear), take larger batches (or accumulate "
        "gradients), or average the weights (torch.optim.swa_utils.AveragedModel).",
    .healthy =
        "A training at the noise of its data, which looks the same until the rate falls: this is a note. "
        "Optimizers without momentum keep no mean, and are not judged; nor is a game, as in a GAN, or a "
        "training with gradients that are clipped by value or normalised in the optimizer (LAMB).",
    .cost =
        "Statistics of the optimizer's state at every 50th step, of gradients at the first 20 and every "
        "10th; the loss; the learning rate where it changes.",
    .original = "",
    .source =
        "McCandlish, Kaplan, Amodei, \"An Empirical Model of Large-Batch Training\", 2018 (the noise of "
        "gradients, not the method); Mann, \"Nonparametric tests against trend\", Econometrica 13 (1945)",
    .severity = model::Severity::kInfo,
    .parameters = {{"signal", "share", 0.005, 0, 0.5, "of a gradient that successive ones have in common"},
                   {"looks", "looks", 8, 4, 64, "in a row, 50 steps apart, that are taken together"}},
};

// Of one kind of mean: how large its square is beside that of a gradient.
struct Range {
    double noise = 0, signal = 1;  // of independent gradients, of equal ones
};

class UpdateNoise final : public Rule {
  public:
    explicit UpdateNoise(const Parameters& parameters)
        : signal_(parameters.at("signal")),
          looks_needed_(static_cast<std::size_t>(parameters.at("looks"))),
          looks_(looks_needed_) {}

    void on_step(const model::StepView& step, FindingSink& sink) override {
        if (step.mode() != model::Mode::kTrain) return;
        rates_.observe(step);
        const std::uint64_t before = loss_.count();
        if (loss_.observe(step)) {
            if (loss_.count() <= before) begin_anew(sink);  // another training in the same process
            since_.loss += loss_.recent().values().back();
            ++since_.losses;
        }
        double means = 0, gradients = 0;
        std::uint64_t with_mean = 0, with_gradient = 0;
        std::string_view kind;
        for (const model::TensorSample& sample : step.record->tensors) {
            const model::TensorInfo& info = step.info(sample.tensor);
            const double square = sample.statistics.l2 * sample.statistics.l2;
            if (info.role == model::Role::kGradient) {
                gradients += square;
                with_gradient += sample.statistics.count;
            } else if (info.role == model::Role::kOptimizerState && is_mean(info.name, kind)) {
                means += square;
                with_mean += sample.statistics.count;
            }
        }
        if (with_gradient > 0 && std::isfinite(gradients)) {
            since_.gradient += gradients;
            since_.elements = with_gradient;
            ++since_.gradients;
        }
        if (with_mean == 0) return;
        look(step, kind, means, with_mean);
        judge(step, sink);
    }
    [[nodiscard]] std::uint64_t steps_judged() const override { return judged_; }
    [[nodiscard]] std::string why_not_judged() const override {
        if (loss_.count() == 0) return "no training loss was seen";
        if (loss_.is_game()) return "several optimizers work against each other";
        if (!loss_.is_known_function()) return "the loss is made by hand";
        if (!has_means_) return "the optimizer keeps no mean of gradients";
        return base::format("looks at the optimizer's means: {}; it judges from {} on",
                            looks_.values().size(), looks_needed_);
    }

  private:
    // Sums since the look before.
    struct Sums {
        double loss = 0, gradient = 0;
        std::uint64_t losses = 0, gradients = 0, elements = 0;
    };

    // Whether it is a mean of gradients, all of one kind: "momentum_buffer" or "exp_avg".
    static bool is_mean(std::string_view name, std::string_view& kind) {
        for (const std::string_view one : {kMomentum, kAverage}) {
            if (!name.ends_with(one)) continue;
            if (kind.empty()) kind = one;
            return kind == one;
        }
        return false;
    }
    static std::optional<Range> range(const model::WorkerMeta& meta, std::string_view kind) {
        if (kind == kAverage) {
            const double beta = optimizer_setting(meta, "beta1").value_or(0);
            if (!(beta > 0.5 && beta < 1)) return std::nullopt;
            return Range{(1 - beta) / (1 + beta), 1};
        }
        const double momentum = optimizer_setting(meta, "momentum").value_or(0);
        const double kept = 1 - optimizer_setting(meta, "dampening").value_or(0);
        if (!(momentum > 0.5 && momentum < 1 && kept > 0)) return std::nullopt;
        return Range{kept * kept / (1 - momentum * momentum),
                     kept * kept / ((1 - momentum) * (1 - momentum))};
    }

    void begin_anew(FindingSink& sink) {
        if (is_on_) sink.clear(kKey);
        is_on_ = false;
        looks_.clear();
        levels_.clear();
        steps_.clear();
        since_ = {};
    }

    // How large the mean is beside the gradients since the last look.
    void look(const model::StepView& step, std::string_view kind, double means, std::uint64_t with_mean) {
        const Sums sums = std::exchange(since_, {});
        const std::optional<Range> known = range(*step.meta, kind);
        // Of all parameters that have a mean, and of them alone.
        const bool is_whole = sums.gradients > 0 && sums.losses > 0 && sums.elements == with_mean;
        if (!known || !is_whole || !std::isfinite(means) || !(sums.gradient > 0)) {
            looks_.clear();
            levels_.clear();
            steps_.clear();
            return;
        }
        has_means_ = true;
        const double beside = means / (sums.gradient / static_cast<double>(sums.gradients));
        looks_.add((beside - known->noise) / (known->signal - known->noise));
        levels_.add(sums.loss / static_cast<double>(sums.losses));
        steps_.add(static_cast<double>(step.step()));
    }

    void judge(const model::StepView& step, FindingSink& sink) {
        if (!looks_.full() || loss_.is_game() || !loss_.is_known_function()) return;
        ++judged_;
        double share = 0;
        for (const double one : looks_.values()) share += one / static_cast<double>(looks_needed_);
        const std::span<const double> levels = levels_.values();
        const std::size_t third = std::max<std::size_t>(levels.size() / 3, 1);
        const double first = mean(levels.first(third)), last = mean(levels.last(third));
        const double trend = trend_z(levels);
        // Once told, it takes more to be over.
        const double slack = is_on_ ? 2 : 1;
        const bool stands = trend > -1.5 * slack && trend < 2.5 * slack &&
                            first - last < slack * kGain * (loss_.start() - last);
        const bool is_above = loss_.has_learned() && last > kLeft * loss_.start();
        const bool is_full_rate = !rates_.is_known() || rates_.now() >= 0.9 * rates_.peak();
        if (share < slack * signal_ && stands && is_above && is_full_rate) {
            if (is_on_) return;
            is_on_ = true;
            sink.fire(finding(step, share, first, last));
        } else if (is_on_) {
            is_on_ = false;
            sink.clear(kKey);
        }
    }

    [[nodiscard]] model::Finding finding(const model::StepView& step, double share, double first,
                                         double last) const {
        model::Finding found;
        found.key = kKey;
        found.severity = model::Severity::kInfo;
        found.first_step = static_cast<model::StepIndex>(steps_.values().front());
        found.tensor = loss_.tensor();
        const auto since = static_cast<model::StepIndex>(steps_.values().front());
        found.message = base::format(
            "From step {} to {} the loss stood still, {} and {}, and the gradients of successive steps had "
            "{} in common: the steps wander about.",
            since, step.step(), human_number(first), human_number(last),
            share > 0.0005 ? base::format("{:.1f} %", 100 * share) : std::string("nothing"));
        found.fix =
            "Let the learning rate decay to zero by the end (a cosine, say), take larger batches, or average "
            "the weights (torch.optim.swa_utils.AveragedModel).";
        if (rates_.is_known()) {
            found.message += base::format(" The learning rate is {}.", human_number(rates_.now()));
            found.evidence.push_back({"learning rate", rates_.now(), "peak", rates_.peak()});
        }
        found.evidence.push_back({"share of a gradient that is common", share, "limit", signal_});
        found.evidence.push_back({"loss", last, "at first", first});
        found.plots = {{loss_.tensor(), "value"}};
        return found;
    }

    static double mean(std::span<const double> values) {
        double sum = 0;
        for (const double value : values) sum += value;
        return values.empty() ? 0 : sum / static_cast<double>(values.size());
    }

    static constexpr const char* kKey = "loss";
    static constexpr std::string_view kMomentum = ".momentum_buffer", kAverage = ".exp_avg";
    static constexpr double kGain = 0.02;  // of what had been learned, that counts as nothing
    static constexpr double kLeft = 0.05;  // of the loss at the start: less is as good as none

    double signal_;
    std::size_t looks_needed_;
    std::uint64_t judged_ = 0;
    bool is_on_ = false, has_means_ = false;
    Sums since_;
    // Side by side: of the same looks.
    Recent looks_, levels_{looks_needed_}, steps_{looks_needed_};
    LearningRates rates_;
    TrainingLoss loss_;
};

std::vector<model::Requirement> update_noise_needs(const Parameters&) {
    std::vector<model::Requirement> all = loss_requirements(kUpdateNoise.name);
    all.push_back(rate_requirement(kUpdateNoise.name));
    all.push_back({"gradients",
                   model::Mode::kTrain,
                   model::What::kStatistics,
                   {.every = 10, .dense_until = 20},
                   kUpdateNoise.name});
    all.push_back(
        {"optimizer_state", model::Mode::kTrain, model::What::kStatistics, {.every = 50}, kUpdateNoise.name});
    return all;
}

}  // namespace

RuleEntry builtin::update_noise() {
    return {&kUpdateNoise, &update_noise_needs,
            [](const Parameters& p) -> std::unique_ptr<Rule> { return std::make_unique<UpdateNoise>(p); }};
}

}  // namespace traindbg::rules

// Weight decay that takes the weights away faster than the loss can hold them.

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

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

const model::RuleInfo kInfo = {
    .name = "over_regularized",
    .title = "Weights decay away",
    .summary = "A penalty on the weights outweighs the loss: they shrink, and the model does not learn.",
    .when =
        "The norm of all weight matrices fell, at each of the last looks, to less than `shrink` of what it "
        "was at the start, and the loss has not come far: it is no lower than at the start, or more than "
        "half of it (or of guessing, the entropy of the labels) and without a downward trend over the "
        "second half (Mann-Kendall z > -2.5). Where the optimizer has a `weight_decay`, it must pull harder "
        "than half as much as the loss: decay · ‖w‖ against the norm of the gradient (of AdamW and its "
        "like, decay against a usual update of 1e-3 / learning rate); where it has none, the norm must have "
        "fallen at four looks running, to half of `shrink`. After `patience` steps.",
    .why =
        "The penalty is there to choose among models that fit. Where it is stronger than the loss, the best "
        "model is the one whose weights are 0, and that is where the training goes.",
    .fix = "Lower weight_decay to about 1e-4 (AdamW: 1e-2), or the factor of a penalty added to the loss.",
    .healthy =
        "Weights that shrink while the loss falls, as those before norm layers do; decay that a gradient "
        "holds in balance; pruning; weights that shrink where nothing pulls at them: no decay is set, and "
        "the "
        "loss is what one function returned.",
    .cost =
        "Norms of weights and gradients at the first two steps and every 20th below 200, then every 50th.",
    .original = "",
    .source = "Ben Braiek, Khomh, \"Testing feedforward neural networks training programs\", TOSEM 32 (2023)",
    .severity = model::Severity::kWarning,
    .parameters = {{"shrink", "share", 0.6, 0.01, 0.99, "norm of the weights now over that at the start"},
                   {"patience", "steps", 50, 10, 1e9, "steps after which it judges"}},
};

class OverRegularized final : public Rule {
  public:
    explicit OverRegularized(const Parameters& parameters)
        : shrink_(parameters.at("shrink")),
          patience_(static_cast<std::uint64_t>(parameters.at("patience"))) {}

    void on_step(const model::StepView& step, FindingSink& sink) override {
        if (step.mode() != model::Mode::kTrain) return;
        loss_.observe(step);
        look_for_a_penalty(step);
        double weights2 = 0, gradients2 = 0;
        for (const model::TensorSample& sample : step.record->tensors) {
            const model::TensorInfo& info = step.info(sample.tensor);
            if (!is_matrix(info) || sample.statistics.not_finite() > 0) continue;
            const double square = sample.statistics.l2 * sample.statistics.l2;
            if (info.role == model::Role::kWeight) weights2 += square;
            if (info.role == model::Role::kGradient) gradients2 += square;
        }
        if (gradients2 > 0) gradient_norm_ = std::sqrt(gradients2);
        if (weights2 > 0) {
            const double norm = std::sqrt(weights2);
            if (norms_ == 0) first_norm_ = norm;
            falls_ = norms_ > 0 && norm < norm_ ? falls_ + 1 : 0;
            norm_ = norm;
            ++norms_;
        }
        if (loss_.count() < patience_ || norms_ < 3) return;
        ++judged_;
        if (weights2 == 0 && firing_) return fire(step, sink);
        if (weights2 == 0) return;
        const bool is_seen = shrinks(*step.meta) && !learns();
        if (firing_ && !is_seen && loss_.has_learned_much()) {
            sink.clear(kKey);
            firing_ = false;
        }
        if (is_seen) {
            firing_ = true;
            fire(step, sink);
        }
    }
    [[nodiscard]] std::uint64_t steps_judged() const override { return judged_; }
    [[nodiscard]] std::string why_not_judged() const override {
        return base::format("fewer than {} steps with a loss, or weights of fewer than three, were seen",
                            patience_);
    }

  private:
    static constexpr const char* kKey = "weights";

    // The loss that backward() is called on is what one function of the framework returned, at every step so
    // far: nothing was added to it.
    void look_for_a_penalty(const model::StepView& step) {
        double total = 0, function = 0;
        int totals = 0, functions = 0;
        for (const model::ScalarSample& sample : step.record->scalars) {
            const model::TensorInfo& info = step.info(sample.tensor);
            if (info.role != model::Role::kLoss) continue;
            const bool is_function = info.name.starts_with("loss/");
            (is_function ? function : total) = sample.value;
            ++(is_function ? functions : totals);
        }
        if (totals == 0) return;
        const bool is_bare =
            totals == 1 && functions == 1 && std::abs(total - function) <= 1e-5 * std::abs(total) + 1e-9;
        (is_bare ? bare_ : with_more_) += 1;
    }
    [[nodiscard]] static bool is_decoupled(const model::WorkerMeta& meta) {
        if (meta.optimizers.empty()) return false;
        const std::string& type = meta.optimizers.front().type;
        return type == "AdamW" || type == "Lion" || type == "Adafactor" || type == "Muon";
    }
    // How hard the optimizer's decay pulls beside the loss; nothing where it has none.
    [[nodiscard]] std::optional<double> pull(const model::WorkerMeta& meta) const {
        const std::optional<double> decay = optimizer_setting(meta, "weight_decay");
        if (!decay || !(*decay > 0)) return std::nullopt;
        if (is_decoupled(meta)) return *decay * optimizer_setting(meta, "lr").value_or(0) / 1e-3;
        return gradient_norm_ > 0 ? *decay * norm_ / gradient_norm_ : 1e9;
    }
    [[nodiscard]] bool shrinks(const model::WorkerMeta& meta) const {
        if (falls_ < 2 || norm_ > shrink_ * first_norm_) return false;
        const std::optional<double> by = pull(meta);
        // Nothing pulls: weights that start larger than they need to be shrink by themselves.
        if (!by && bare_ > 0 && with_more_ == 0) return false;
        // A penalty that is part of the loss is seen by what it does alone.
        return by ? *by > 0.5 : falls_ >= 4 && norm_ < shrink_ / 2 * first_norm_;
    }
    [[nodiscard]] bool learns() const {
        if (loss_.is_game() || !loss_.is_known_function()) return true;
        const double start = std::max(loss_.start(), loss_.base_rate().value_or(0));
        if (!(start > 0)) return true;
        if (!loss_.has_learned()) return false;
        if (loss_.level() < 0.5 * start) return true;
        const auto means = loss_.blocks().means();
        return trend_z(means.last(means.size() / 2)) < -2.5;
    }

    void fire(const model::StepView& step, FindingSink& sink) const {
        const std::optional<double> decay = optimizer_setting(*step.meta, "weight_decay");
        const bool is_decay = decay && *decay > 0;
        model::Finding finding;
        finding.key = kKey;
        finding.first_step = 0;
        finding.message = base::format(
            "The norm of all weights fell from {} to {} by step {}, and still falls; the loss is {}, {} at "
            "the start.",
            human_number(first_norm_), human_number(norm_), step.step(), human_number(loss_.level()),
            human_number(loss_.start()));
        if (const std::optional<double> by = pull(*step.meta); by && *by < 1e9)
            finding.message += base::format(" weight_decay {} pulls at them {} times as hard as the loss.",
                                            human_number(*decay), human_number(*by));
        finding.fix =
            is_decay
                ? base::format("Lower weight_decay from {} to about {}.", human_number(*decay),
                               is_decoupled(*step.meta) ? "0.01" : "1e-4")
                : "Lower the factor of the penalty that is added to the loss, a thousand-fold to begin with.";
        finding.evidence.push_back({"norm of all weights", norm_, "at the start", first_norm_});
        if (is_decay)
            finding.evidence.push_back(
                {"weight_decay", *decay, "usual", is_decoupled(*step.meta) ? 0.01 : 1e-4});
        finding.evidence.push_back({"loss", loss_.level(), "at the start", loss_.start()});
        if (!loss_.tensor().empty()) finding.plots = {{loss_.tensor(), "value"}};
        sink.fire(std::move(finding));
    }

    double shrink_;
    std::uint64_t patience_;
    std::uint64_t judged_ = 0, norms_ = 0, falls_ = 0;
    std::uint64_t bare_ = 0, with_more_ = 0;  // steps whose loss is a function's alone, and others
    double first_norm_ = 0, norm_ = 0, gradient_norm_ = 0;
    bool firing_ = false;
    TrainingLoss loss_;
};

std::vector<model::Requirement> needs(const Parameters&) {
    constexpr auto kStatistics = model::What::kStatistics;
    std::vector<model::Requirement> all = loss_requirements(kInfo.name);
    for (const char* name : {"weights", "gradients"}) {
        all.push_back({name, model::Mode::kTrain, kStatistics, {.every = 50, .dense_until = 2}, kInfo.name});
        all.push_back({name, model::Mode::kTrain, kStatistics, {.every = 20, .end = 200}, kInfo.name});
    }
    return all;
}

}  // namespace

RuleEntry builtin::over_regularized() {
    return {&kInfo, &needs, [](const Parameters& p) -> std::unique_ptr<Rule> {
                return std::make_unique<OverRegularized>(p);
            }};
}

}  // namespace traindbg::rules

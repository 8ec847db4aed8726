// Gradients that shrink from layer to layer on their way back, so that the first layers stand still.

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/rules/builtin/builtin.h"
#include "traindbg/rules/loop_facts.h"
#include "traindbg/rules/robust.h"
#include "traindbg/rules/settings.h"
#include "traindbg/rules/training_loss.h"

namespace traindbg::rules {
namespace {

using base::human_number;

const model::RuleInfo kVanishingGradient = {
    .name = "vanishing_gradient",
    .title = "Vanishing gradient",
    .summary = "Gradients shrink from layer to layer on their way back, so the first layers do not learn.",
    .when =
        "Gradients shrink on their way back: the first layers, or the first uses of a recurrent layer, get "
        "far smaller ones than the last.\n"
        "- In depth (warning or note): at `patience` captured steps in a row, the typical gradient entry "
        "of a layer in the first half is less than `ratio` of that of the last layer, and the sizes fall "
        "towards the first layer (rank correlation of at least `decay`).\n"
        "- Layers in question: the weight matrices that get a gradient, in the order of the layers, where "
        "there are at least four.\n"
        "- Layers of a policy: where the loss holds log-probabilities of choices that are multiplied by "
        "data, it is a sum of terms of unlike size, for an actor and a critic. Then only the layers of one "
        "container are compared, the one that has the most.\n"
        "- In depth, severity: a warning while the training does not learn, or while that share is less "
        "than a hundredth of `ratio`. Otherwise a note (info).\n"
        "- In time, layers: a layer is used eight times or more, one use after the other, as in a "
        "recurrent network. For nn.LSTM on the CPU, which does it all at once, the positions of its input "
        "are looked at, where that has a gradient.\n"
        "- In time (warning): at every look, the gradient that comes back to the first uses is less than "
        "`ratio` of that of the last ones. The loss is no better than at the start or than guessing, and "
        "has no downward trend (Mann-Kendall z > -2.5).\n"
        "- In time, losses: one of a known loss function, a squared or absolute error, or minus the mean "
        "log-probability of labels that is written out.\n"
        "- In time, when: at the end of the run after `stall` steps, or after twice as many while the "
        "training goes on.\n"
        "- In time, at the end of the run: the downward trend does not count where the loss of guessing is "
        "known and the loss is above 90 % of its start.",
    .why =
        "A weight moves by its gradient. Where that is a ten-thousandth of the last layer's, the first "
        "layers stay at their random values and the model is as good as its last layers alone.",
    .fix =
        "Replace sigmoid or tanh between layers by ReLU with He initialisation; add BatchNorm or LayerNorm; "
        "add residual connections. For recurrent nets use LSTM or GRU.",
    .healthy =
        "A training that has converged: all its gradients are small together. Frozen layers: no gradient, or "
        "one that is exactly zero, is left out. Residual branches that start at zero. Embeddings, whose "
        "gradient is zero for all rows not in the batch, are left out.",
    .cost =
        "One pass over all gradients at the first 20 steps and then every 10th; of layers that are used many "
        "times, the norms of four gradients in three backward passes.",
    .original = "VanishingGradient",
    .source =
        "Glorot, Bengio, \"Understanding the difficulty of training deep feedforward neural networks\", "
        "AISTATS 2010",
    .severity = model::Severity::kWarning,
    .parameters =
        {{"ratio", "ratio", 1e-3, 1e-12, 1, "typical gradient of an early layer against the last one's"},
         {"decay", "correlation", 0.8, 0, 1, "rank correlation of layer and size"},
         {"patience", "captures", 10, 2, 1000, "captured steps in a row that must show it"},
         {"stall", "steps", 200, 20, 1e9,
          "of a training, after which a gradient lost in time counts; twice as many while it goes on"}},
};

struct Layer {
    std::int32_t order = 0;
    model::TensorId tensor = 0;
    double rms = 0;
    std::string_view container;  // of its module, such as `actor` of `actor.2`
};

std::string_view container_of(std::string_view module) {
    const std::size_t end = module.rfind('.');
    return end == std::string_view::npos ? std::string_view() : module.substr(0, end);
}

// Spearman's rank correlation of position and size. Layers come in order.
double rank_correlation(const std::vector<Layer>& layers) {
    const std::size_t n = layers.size();
    double sum = 0;
    for (std::size_t i = 0; i < n; ++i) {
        std::size_t rank = 0;
        for (std::size_t j = 0; j < n; ++j)
            if (layers[j].rms < layers[i].rms || (layers[j].rms == layers[i].rms && j < i)) ++rank;
        const double d = static_cast<double>(i) - static_cast<double>(rank);
        sum += d * d;
    }
    const auto size = static_cast<double>(n);
    return 1 - 6 * sum / (size * (size * size - 1));
}

class VanishingGradient final : public Rule {
  public:
    explicit VanishingGradient(const Parameters& parameters)
        : ratio_(parameters.at("ratio")),
          decay_(parameters.at("decay")),
          patience_(static_cast<std::uint64_t>(parameters.at("patience"))),
          stall_(static_cast<std::uint64_t>(parameters.at("stall"))) {}

    void on_step(const model::StepView& step, FindingSink& sink) override {
        if (step.mode() != model::Mode::kTrain) return;
        loss_.observe(step);
        if (loop_fact(step, "trainings")) {  // of another model
            time_.reset();
            is_lost_in_time_ = false;
            is_of_labels_ = false;
        }
        look_at_time(step);
        // Its value falls when the model learns; the objective of a policy is multiplied by data.
        if (const auto sign = loop_fact(step, "loss_sign"); sign && !is_of_labels_)
            is_of_labels_ =
                sign->value > 0 && (sign->place == "log_softmax" || sign->place == "log_probability" ||
                                    sign->place == "log_of_probability");
        // What is remembered from afar may be learned late: while a training goes on, it has twice as long.
        if (loss_.count() >= 2 * stall_ && loss_.count() % 10 == 0) judge_time(sink);
        has_policy_ = has_policy_ || loop_fact(step, "loss_has_policy").has_value();
        layers_.clear();
        for (const model::TensorSample& sample : step.record->tensors) {
            const model::TensorInfo& info = step.info(sample.tensor);
            if (info.role != model::Role::kGradient || info.shape.size() < 2) continue;
            if (info.module_type.find("Embedding") != std::string::npos) continue;
            const model::Statistics& s = sample.statistics;
            if (s.l2 <= 0 || s.not_finite() > 0) continue;
            layers_.push_back({info.layer, sample.tensor, s.l2 / std::sqrt(static_cast<double>(s.count)),
                               container_of(info.module)});
        }
        if (has_policy_) keep_largest_container();
        if (layers_.empty()) return;
        std::stable_sort(layers_.begin(), layers_.end(), [](const Layer& a, const Layer& b) {
            return a.order != b.order ? a.order < b.order : a.tensor < b.tensor;
        });
        most_layers_ = std::max(most_layers_, layers_.size());
        if (layers_.size() < 4) return;
        ++judged_;
        const auto half = layers_.begin() + static_cast<std::ptrdiff_t>(layers_.size() / 2);
        const Layer& weakest = *std::min_element(
            layers_.begin(), half, [](const Layer& a, const Layer& b) { return a.rms < b.rms; });
        const Layer& last = layers_.back();
        const double ratio = weakest.rms / last.rms;
        lost_in_a_row_ = ratio < kNothing * ratio_ ? lost_in_a_row_ + 1 : 0;
        const bool vanishing = ratio < ratio_ && rank_correlation(layers_) >= decay_;
        if (!vanishing) {
            if (in_a_row_ >= patience_) {
                sink.clear("depth");
                sink.clear("depth_learning");
            }
            in_a_row_ = 0;
            return;
        }
        if (in_a_row_++ == 0) first_ = step.step();
        if (in_a_row_ < patience_) return;
        // Where next to nothing reaches the first layers, the loss falls by what the last ones learn.
        const bool learns = loss_.has_learned() && lost_in_a_row_ < patience_;
        if (learns) sink.clear("depth");
        fire(step, weakest, last, ratio, learns, sink);
    }
    // A trend down is no hope any more: nothing follows.
    void on_end(FindingSink& sink) override {
        if (loss_.count() >= stall_) judge_time(sink, true);
    }
    [[nodiscard]] std::uint64_t steps_judged() const override { return judged_; }
    [[nodiscard]] std::string why_not_judged() const override {
        return most_layers_ == 0
                   ? std::string("no gradients of weight matrices were captured")
                   : base::format(
                         "layers that have a weight matrix with a gradient: {}; depth shows from 4 on",
                         most_layers_);
    }

  private:
    static constexpr double kNothing = 0.01;  // of `ratio`

    struct Time {
        std::string place, tensor;
        double ratio = 0, uses = 0;  // the largest ratio of all looks
        model::StepIndex first = 0;
    };

    // A policy's loss sums terms for an actor and a critic, whose gradients are of unlike size whatever their
    // depth: they are no early and late layers of one chain, though they are called one after the other.
    void keep_largest_container() {
        const auto size_of = [this](std::string_view container) {
            return std::count_if(layers_.begin(), layers_.end(),
                                 [&](const Layer& layer) { return layer.container == container; });
        };
        std::string_view largest;
        std::ptrdiff_t most = 0;
        for (const Layer& layer : layers_) {
            const std::ptrdiff_t size = size_of(layer.container);
            if (size <= most) continue;
            most = size;
            largest = layer.container;
        }
        std::erase_if(layers_, [&](const Layer& layer) { return layer.container != largest; });
    }

    void look_at_time(const model::StepView& step) {
        for (const LoopFact& fact : loop_facts(step, "gradient_through_time")) {
            ++judged_;
            if (time_ && time_->place != fact.place) continue;
            if (!time_)
                time_ = Time{std::string(fact.place), std::string(fact.tensor), fact.value, 0, step.step()};
            time_->ratio = std::max(time_->ratio, fact.value);
            for (const LoopFact& uses : loop_facts(step, "uses_in_time"))
                if (uses.place == fact.place) time_->uses = uses.value;
        }
    }
    [[nodiscard]] bool stands_still(bool is_over) const {
        if (loss_.is_game() || loss_.has_learned()) return false;
        if (!loss_.is_known_function() && !is_of_labels_) return false;
        const auto means = loss_.blocks().means();
        if (means.size() < 20) return false;
        const std::optional<double> base = loss_.base_rate();
        const bool is_at_guessing = is_over && base && loss_.level() > 0.9 * loss_.start();
        if (!is_at_guessing && trend_z(means.last(means.size() / 2)) < -2.5) return false;
        return loss_.level() > 0.95 * base.value_or(loss_.start());
    }
    void judge_time(FindingSink& sink, bool is_over = false) {
        if (!time_ || time_->ratio >= ratio_) return;
        if (!stands_still(is_over)) {
            if (is_lost_in_time_ && loss_.has_learned()) {
                sink.clear("time");
                is_lost_in_time_ = false;
            }
            return;
        }
        is_lost_in_time_ = true;
        model::Finding finding;
        finding.key = "time";
        finding.first_step = time_->first;
        finding.tensor = time_->tensor;
        finding.layer = time_->place;
        finding.message = base::format(
            "The gradient that comes back to the first uses of {} is {:.0e} of that of the last ones ({:.0f} "
            "uses, one after the other), and the loss is {} after {} steps, no better than at the start or "
            "than guessing: what comes early in a series is not learned.",
            time_->place, time_->ratio, time_->uses, human_number(loss_.level()), loss_.count());
        finding.fix =
            "Use torch.nn.LSTM or GRU with a forget (update) gate that begins open, or attention, instead of "
            "a plain recurrence; initialise recurrent weights orthogonally; or shorten the series.";
        finding.evidence.push_back({"first / last uses", time_->ratio, "limit", ratio_});
        finding.evidence.push_back({"loss", loss_.level(), "at the start", loss_.start()});
        if (!loss_.tensor().empty()) finding.plots = {{loss_.tensor(), "value"}};
        sink.fire(std::move(finding));
    }

    void fire(const model::StepView& step, const Layer& weakest, const Layer& last, double ratio, bool learns,
              FindingSink& sink) const {
        const model::TensorInfo& info = step.info(weakest.tensor);
        const model::TensorInfo& last_info = step.info(last.tensor);
        model::Finding finding;
        finding.key = learns ? "depth_learning" : "depth";
        finding.severity = learns ? model::Severity::kInfo : model::Severity::kWarning;
        finding.first_step = first_;
        finding.tensor = info.name;
        finding.layer = info.module;
        finding.places =
            static_cast<std::uint64_t>(std::count_if(layers_.begin(), layers_.end(), [&](const Layer& layer) {
                return layer.rms < ratio_ * last.rms;
            }));
        const double per_layer = std::pow(ratio, -1.0 / static_cast<double>(layers_.size() - 1));
        finding.message = base::format(
            "Gradients shrink about {}-fold per layer on their way back: a typical entry is {} in {} and {} "
            "in {}, {} times less, since step {}{}.",
            human_number(round_ratio(per_layer)), human_number(weakest.rms), place_in_words(info.name),
            human_number(last.rms), place_in_words(last_info.name), human_number(round_ratio(1 / ratio)),
            first_,
            learns                ? "; the training learns all the same"
            : loss_.has_learned() ? "; what the loss fell by, the last layers learned"
                                  : "");
        finding.fix =
            learns
                ? "Nothing urgent; ReLU with He initialisation, normalisation layers or residual connections "
                  "would let the first layers learn faster."
                : "Use ReLU with He initialisation instead of sigmoid or tanh between the layers, or put "
                  "BatchNorm/LayerNorm between them, or add residual connections.";
        finding.evidence.push_back(
            {"typical gradient of the early layer", weakest.rms, "last layer", last.rms});
        finding.evidence.push_back({"early / last", ratio, "limit", ratio_});
        finding.evidence.push_back({"shrinks per layer", per_layer, "usual", 1});
        finding.plots = {{info.name, "l2"}, {last_info.name, "l2"}};
        sink.fire(std::move(finding));
    }
    // Two significant digits.
    [[nodiscard]] static double round_ratio(double value) {
        if (!(value > 0) || !std::isfinite(value)) return value;
        const double unit = std::pow(10.0, std::floor(std::log10(value)) - 1);
        return std::round(value / unit) * unit;
    }

    double ratio_, decay_;
    std::uint64_t patience_, stall_;
    std::uint64_t judged_ = 0, in_a_row_ = 0, lost_in_a_row_ = 0;
    std::optional<Time> time_;
    bool is_lost_in_time_ = false;
    bool has_policy_ = false;    // the loss holds log-probabilities of choices, times data
    bool is_of_labels_ = false;  // the loss is minus the mean log-probability of labels, by hand
    model::StepIndex first_ = 0;
    std::size_t most_layers_ = 0;
    std::vector<Layer> layers_;
    TrainingLoss loss_;
};

std::vector<model::Requirement> vanishing_gradient_needs(const Parameters&) {
    std::vector<model::Requirement> all = loss_requirements(kVanishingGradient.name);
    all.push_back({"gradients",
                   model::Mode::kTrain,
                   model::What::kStatistics,
                   {.every = 10, .dense_until = 20},
                   kVanishingGradient.name});
    all.push_back(loop_requirement(kVanishingGradient.name));
    return all;
}

}  // namespace

RuleEntry builtin::vanishing_gradient() {
    return {&kVanishingGradient, &vanishing_gradient_needs, [](const Parameters& p) -> std::unique_ptr<Rule> {
                return std::make_unique<VanishingGradient>(p);
            }};
}

}  // namespace traindbg::rules

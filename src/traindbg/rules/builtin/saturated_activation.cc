// tanh or sigmoid units at their flat ends, where the derivative is almost zero.

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/rules/builtin/builtin.h"
#include "traindbg/rules/neighbours.h"
#include "traindbg/rules/robust.h"
#include "traindbg/rules/settings.h"
#include "traindbg/rules/training_loss.h"
#include "traindbg/rules/updates.h"

namespace traindbg::rules {
namespace {

const model::RuleInfo kSaturatedActivation = {
    .name = "saturated_activation",
    .title = "Saturated activation",
    .summary = "A tanh or sigmoid layer is at its flat ends, where hardly any gradient passes.",
    .when =
        "At least `share` of a hidden tanh or sigmoid layer's values lie at the flat ends (tanh beyond 0.97 "
        "in "
        "size, sigmoid below 0.03 or above 0.97) in each of the last `window` captured batches, after 50 "
        "steps: a "
        "warning while the training does not learn, a note (info) if it does. A layer that was like this at "
        "the "
        "first step has to learn more for that: the loss below 60 % of what guessing gives (of its start, "
        "where "
        "labels are not counted; below 15 % of that, where several layers were like this), and, after 200 "
        "steps, below a fifth of it or three times the share by "
        "which "
        "labels of nearest inputs differ, whichever is more. The model's own output is not looked at.",
    .why =
        "At the flat ends the derivative is below 6 % of its largest value (3 % of the input's change for "
        "sigmoid), so each such layer cuts the gradient of all layers before it; the units can hardly come "
        "back.",
    .fix =
        "From the start: initialise with torch.nn.init.xavier_uniform_, standardise the inputs. Later: lower "
        "the "
        "learning rate. Between layers ReLU does not saturate; LayerNorm or BatchNorm in front keeps values "
        "in the middle.",
    .healthy =
        "The sigmoid at the output of a confident classifier; the tanh at the output of an image generator; "
        "gates "
        "of a model that learns.",
    .cost =
        "One pass over the activations' outputs at the first 5 steps, then every 10th up to step 100 and "
        "every 25th after; the weights at the first; a comparison of some hundred rows of the first inputs "
        "with "
        "each other, once.",
    .original = "SaturatedActivation",
    .source =
        "Glorot, Bengio, \"Understanding the difficulty of training deep feedforward neural networks\", "
        "AISTATS "
        "2010",
    .severity = model::Severity::kWarning,
    .parameters = {{"share", "share", 0.6, 0.05, 1, "values at the flat ends"},
                   {"window", "captures", 5, 2, 1000, "captured batches in a row that must show it"}},
};

class SaturatedActivation final : public Rule {
  public:
    explicit SaturatedActivation(const Parameters& parameters)
        : share_(parameters.at("share")), window_(static_cast<std::size_t>(parameters.at("window"))) {}

    void on_step(const model::StepView& step, FindingSink& sink) override {
        if (step.mode() != model::Mode::kTrain) return;
        loss_.observe(step);
        neighbours_.observe(step);
        if (step.step() == 0) note_gains(step);
        bool any = false;
        for (const model::TensorSample& sample : step.record->tensors) {
            const model::TensorInfo& info = step.info(sample.tensor);
            if (info.activation != model::ActivationKind::kTanh &&
                info.activation != model::ActivationKind::kSigmoid)
                continue;
            if (sample.units.units == 0 || sample.statistics.count == 0 || sample.statistics.not_finite() > 0)
                continue;
            any = true;
            auto [place, is_new] = layers_.try_emplace(sample.tensor, window_);
            const double share = static_cast<double>(sample.units.low + sample.units.high) /
                                 static_cast<double>(sample.statistics.count);
            if (is_new) place->second.first_share = share;
            place->second.shares.add(share);
        }
        if (!any) return;
        ++judged_;
        judge(step, sink);
    }
    [[nodiscard]] std::uint64_t steps_judged() const override { return judged_; }
    [[nodiscard]] std::string why_not_judged() const override {
        return "no tanh or sigmoid in the model was seen";
    }

  private:
    // Of weights that saturate what follows them when they are given standardised values.
    static constexpr double kLargeGain = 3;
    static constexpr double kFar = 0.15;  // of guessing, or of the start

    struct Layer {
        explicit Layer(std::size_t window) : shares(window) {}
        Recent shares;
        double first_share = 0;
        [[nodiscard]] double lowest() const {
            const auto all = shares.values();
            return *std::min_element(all.begin(), all.end());
        }
    };
    using Place = std::map<model::TensorId, Layer>::value_type;

    void note_gains(const model::StepView& step) {
        for (const model::TensorSample& sample : step.record->tensors) {
            const model::TensorInfo& info = step.info(sample.tensor);
            if (info.role == model::Role::kWeight && is_matrix(info))
                gains_[info.layer] = std::max(gains_[info.layer], gain_of(info, sample.statistics));
        }
    }
    // What the weights before a layer did to a signal at the first step.
    [[nodiscard]] std::optional<double> gain_before(std::int32_t layer) const {
        const auto after = gains_.lower_bound(layer);
        if (after == gains_.begin()) return std::nullopt;
        return std::prev(after)->second;
    }

    // Where several layers pass next to no gradient from the first step on, the last one learns alone, and
    // that goes some way, too.
    [[nodiscard]] bool has_come_far(std::uint64_t layers) const {
        if (!loss_.has_learned_much()) return false;
        return layers < 2 || loss_.level() < kFar * loss_.base_rate().value_or(std::abs(loss_.start()));
    }
    // After 200 steps the loss is a fifth of guessing and more, and three times what a look at the
    // nearest row already known would leave.
    [[nodiscard]] bool is_behind_inputs() const {
        const std::optional<double> base = loss_.base_rate(), unlike = neighbours_.unlike();
        return loss_.count() >= 200 && base && unlike && loss_.level() > std::max(0.2, 3 * *unlike) * *base;
    }
    // No weights come after it: what it gives is what the model gives.
    [[nodiscard]] static bool is_output(const model::StepView& step, const model::TensorInfo& info) {
        return std::none_of(step.tensors->begin(), step.tensors->end(), [&](const model::TensorInfo& other) {
            return (other.role == model::Role::kWeight || other.role == model::Role::kGradient) &&
                   other.layer > info.layer;
        });
    }

    void judge(const model::StepView& step, FindingSink& sink) {
        const Place* worst = nullptr;
        std::uint64_t places = 0, from_first = 0;
        for (const Place& place : layers_) {
            const Layer& layer = place.second;
            if (!layer.shares.full() || layer.lowest() < share_ || is_output(step, step.info(place.first)))
                continue;
            ++places;
            if (layer.first_share >= share_) ++from_first;
            if (worst == nullptr || layer.lowest() > worst->second.lowest()) worst = &place;
        }
        // Saturated before it learned anything, it has to show more than that the loss fell a little.
        const bool from_start = worst != nullptr && worst->second.first_share >= share_;
        const bool learns =
            from_start ? has_come_far(from_first) && !is_behind_inputs() : loss_.has_learned();
        const char* key = worst == nullptr ? "" : learns ? "flat_learning" : "flat";
        if (firing_ != key && !firing_.empty()) sink.clear(firing_);
        firing_ = key;
        if (worst == nullptr) return;
        // A training that begins saturated may still find its way: wait before it is a fault.
        if (loss_.count() > 0 && loss_.count() < 50) {
            firing_.clear();
            return;
        }
        fire(step, *worst, places, learns, sink);
    }

    void fire(const model::StepView& step, const Place& place, std::uint64_t places, bool learns,
              FindingSink& sink) const {
        const model::TensorInfo& info = step.info(place.first);
        const Layer& layer = place.second;
        const bool from_start = layer.first_share >= share_;
        model::Finding finding;
        finding.key = firing_;
        finding.severity = learns ? model::Severity::kInfo : model::Severity::kWarning;
        if (from_start) finding.first_step = 0;
        finding.tensor = info.name;
        finding.layer = info.module;
        finding.places = places;
        finding.message = base::format(
            "{:.0f} % of the values of {} ({}) lie at the flat ends in each of {} captured batches, {}{}{}.",
            100 * layer.lowest(), place_in_words(info.name), model::to_string(info.activation), window_,
            from_start ? "from the first step on"
                       : base::format("{:.0f} % at the first step", 100 * layer.first_share),
            places > 1 ? base::format("; {} layers are like this", places) : "",
            learns ? "; the training learns all the same" : "");
        finding.fix =
            learns ? "Nothing, if the units are gates; otherwise LayerNorm in front keeps them apart."
            : from_start
                ? "Initialise the layers with torch.nn.init.xavier_uniform_ and standardise the inputs, "
                  "or use ReLU between the layers."
                : base::format("{}, or put LayerNorm in front of the activation.",
                               capitalised(lower_learning_rate(*step.meta, 0.1)));
        finding.evidence.push_back({"values at the flat ends", layer.lowest(), "limit", share_});
        finding.evidence.push_back({"values at the flat ends at the first step", layer.first_share, "", 0});
        if (const std::optional<double> gain = gain_before(info.layer); from_start && gain)
            finding.evidence.push_back(
                {"std · √fan_in of the weights before it", *gain, "limit", kLargeGain});
        finding.plots = {{info.name, "low"}, {info.name, "high"}};
        sink.fire(std::move(finding));
    }

    double share_;
    std::size_t window_;
    std::uint64_t judged_ = 0;
    std::map<model::TensorId, Layer> layers_;
    std::map<std::int32_t, double> gains_;  // by layer
    std::string firing_;
    Neighbours neighbours_;
    TrainingLoss loss_;
};

std::vector<model::Requirement> saturated_activation_needs(const Parameters&) {
    std::vector<model::Requirement> all = loss_requirements(kSaturatedActivation.name);
    for (model::Requirement& more : neighbour_requirements(kSaturatedActivation.name))
        all.push_back(std::move(more));
    // Denser at first: units die early.
    constexpr auto kWhat = model::What::kStatistics | model::What::kUnits;
    all.push_back({"activations",
                   model::Mode::kTrain,
                   kWhat,
                   {.every = 10, .dense_until = 5, .end = 100},
                   kSaturatedActivation.name});
    all.push_back({"weights",
                   model::Mode::kTrain,
                   model::What::kStatistics,
                   {.every = 0, .dense_until = 1},
                   kSaturatedActivation.name});
    all.push_back(
        {"activations", model::Mode::kTrain, kWhat, {.every = 25, .start = 100}, kSaturatedActivation.name});
    return all;
}

}  // namespace

RuleEntry builtin::saturated_activation() {
    return {&kSaturatedActivation, &saturated_activation_needs,
            [](const Parameters& p) -> std::unique_ptr<Rule> {
                return std::make_unique<SaturatedActivation>(p);
            }};
}

}  // namespace traindbg::rules

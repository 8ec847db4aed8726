// tanh or sigmoid units at their flat ends, where the derivative is almost zero.

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <map>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/rules/builtin/builtin.h"
#include "traindbg/rules/loop_facts.h"
#include "traindbg/rules/loss_arguments.h"
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
    .summary =
        "A tanh or sigmoid layer, or all gates of an LSTM or GRU, are at their flat ends, where hardly any "
        "gradient passes.",
    .when =
        "Most values of a tanh or sigmoid layer lie at its flat ends in each of the last `window` captured "
        "batches, or the biases of an LSTM or GRU hold all gates at one end from the start.\n"
        "- Flat (warning): at least `share` of a hidden tanh or sigmoid layer's values lie at the flat ends "
        "(tanh beyond 0.97 in size, sigmoid below 0.03 or above 0.97), in each of the last `window` captured "
        "batches, after 50 steps, while the training does not learn.\n"
        "- Flat, note only (info): the same, while the training learns; or later than from the first step, "
        "in the training of an agent.\n"
        "- A layer is hidden where weights were made after it, or, of one model alone, where the layer that "
        "is called next has a weight with as many inputs as this one has channels, or values of a row.\n"
        "- Flat from the first step: for a note the loss must be below 60 % of what guessing gives (of its "
        "start, where labels are not counted). Where several layers were like this, it must be below 15 % of "
        "that.\n"
        "- Flat from the first step, after 200 steps: for a note the loss must also be below a fifth of what "
        "guessing gives, or below three times the share by which labels of nearest inputs differ, whichever "
        "of these is more.\n"
        "- Dead end (warning, however the training goes): three quarters of the layer's values were at the "
        "flat ends at the first step, nine in ten are now, and weights come before it that would have to "
        "learn. What comes after it learns from what these were drawn as.\n"
        "- Dead end, for what may be the model's own output: only where the loss compares another number of "
        "values, and a module that the layer is in has a weight of its own, such as the leaves of a soft "
        "tree. After 200 steps the loss is above a fifth of what one answer to all inputs gives, and falls "
        "no more.\n"
        "- Dead end, and what the inputs tell: a regression's loss must also be known to be above what "
        "targets of nearest inputs differ by. That of a classification must be above three times the share "
        "by which labels of these differ.\n"
        "- Binary output (warning): only where the loss compares what was made of the output, of another "
        "number of values. Of the output's values 98 % have been at the flat ends since the first fifth of "
        "the training, for at least 150 steps.\n"
        "- Binary output, the loss: it is above 40 % of its start. Before that it was still falling, over "
        "the second half of the steps until then, by 1.5 times what chance does. Since then it is higher by "
        "a twentieth and by three times what chance does.\n"
        "- Between the ends (warning): mse_loss or binary_cross_entropy compares the layer's values with "
        "targets that differ, within its range and between the ends. The mean product of a value's distances "
        "from both ends cannot be smaller than that of the targets, once these are learned.\n"
        "- Between the ends, how much: that mean is at most a quarter of that of the targets at all looks, "
        "eight or more, the first step among them. It is a tenth or less at the last three, after 100 "
        "steps.\n"
        "- Gates (warning): at the first step all biases of an LSTM or GRU, those of input and state added "
        "up, are above `bias`, or all below its negative. They are beyond the reach of what the weights add. "
        "The training has not come far.\n"
        "- Gates, note only (info): the same, where the training has come far.",
    .why =
        "At the flat ends the derivative is below 6 % of its largest value (3 % of the input's change for "
        "sigmoid), so each such layer cuts the gradient of all layers before it; the units can hardly come "
        "back.",
    .fix =
        "From the start: initialise with torch.nn.init.xavier_uniform_, standardise the inputs. Later: lower "
        "the learning rate. Between layers ReLU does not saturate; LayerNorm or BatchNorm in front keeps "
        "values in the middle. Of an LSTM only the biases of the forget gate, the second quarter, are to be "
        "1.",
    .healthy =
        "The sigmoid at the output of a confident classifier; the tanh at the output of an image generator; "
        "a mask that has found its answer, while what it is compared with is noisy; gates of a model that "
        "learns; large biases of the forget gate alone.",
    .cost =
        "One pass over the activations' outputs at the first 5 steps, then every 10th up to step 100 and "
        "every 25th after; weights and biases at the first; a comparison of some hundred rows of the first "
        "inputs with each other, once; and what loss functions are given.",
    .original = "SaturatedActivation",
    .source =
        "Glorot, Bengio, \"Understanding the difficulty of training deep feedforward neural networks\", "
        "AISTATS 2010",
    .severity = model::Severity::kWarning,
    .parameters = {{"share", "share", 0.6, 0.05, 1, "values at the flat ends"},
                   {"bias", "size", 3.5, 1, 1e3, "of all biases of gates, that is too large"},
                   {"window", "captures", 5, 2, 1000, "captured batches in a row that must show it"}},
};

class SaturatedActivation final : public Rule {
  public:
    explicit SaturatedActivation(const Parameters& parameters)
        : share_(parameters.at("share")),
          bias_(parameters.at("bias")),
          window_(static_cast<std::size_t>(parameters.at("window"))) {}

    void on_step(const model::StepView& step, FindingSink& sink) override {
        agent_.observe(step);
        if (step.mode() != model::Mode::kTrain) return;
        loss_.observe(step);
        guessing_.observe(step);
        neighbours_.observe(step);
        if (step.step() == 0) {
            note_gains(step);
            note_gates(step);
        }
        if (!gates_.empty() && loss_.count() >= kPatience) fire_gates(sink);
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
            if (is_new) {
                place->second.first_share = share;
                place->second.first_lesser =
                    static_cast<double>(std::min(sample.units.low, sample.units.high)) /
                    static_cast<double>(sample.statistics.count);
            }
            place->second.shares.add(share);
            note_binary(place->second, share);
        }
        look_between(step, sink);
        if (!any) return;
        ++judged_;
        judge(step, sink);
        judge_output(step, sink);
    }
    void on_end(FindingSink& sink) override {
        if (!gates_.empty() && loss_.count() >= kShort && loss_.count() < kPatience) fire_gates(sink);
    }
    [[nodiscard]] std::uint64_t steps_judged() const override { return judged_; }
    [[nodiscard]] std::string why_not_judged() const override {
        return "no tanh or sigmoid in the model was seen, nor biases of gates at the first step";
    }

  private:
    // Of weights that saturate what follows them when they are given standardised values.
    static constexpr double kLargeGain = 3;
    static constexpr double kFar = 0.15;  // of guessing, or of the start
    // A training that begins saturated may still find its way: wait before it is a fault.
    static constexpr std::uint64_t kPatience = 50, kShort = 20;
    // Of a layer that keeps what comes after it from what it could learn.
    static constexpr double kBothEnds = 0.1;  // of all values, at each of them
    static constexpr double kMostAtFirst = 0.75, kNearlyAll = 0.9, kLeft = 0.2, kFalls = -3;
    // Of what is left: where targets of nearest inputs differ by more, it may well be noise.
    static constexpr double kTold = 0.6;
    // Of an output that the loss compares by way of something else.
    static constexpr double kBinary = 0.98, kFarFromStart = 0.4, kHigher = 0.05;
    // Of values beside the targets that they are compared with, of which the range is 1 wide.
    static constexpr const char* kBetweenKey = "between";
    static constexpr double kBetween = 0.08, kSmallRoom = 0.25, kNoRoom = 0.1, kSameSum = 1e-5;
    static constexpr std::uint64_t kFewestCompared = 8, kUntilCompared = 100;
    static constexpr std::uint64_t kMiddle = 10, kLong = 150, kFirstFifth = 5;

    struct Layer {
        explicit Layer(std::size_t window) : shares(window) {}
        Recent shares;
        double first_share = 0;
        double first_lesser = 0;        // of the end that has fewer of them
        std::uint64_t binary_from = 0;  // losses until then; it has had two values since, or nearly
        std::vector<double> before;     // the last ones of them; empty: it has more values
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
    // A recurrent layer, or a layer of a stack of them, whose gates are all at the same flat end.
    struct Gates {
        std::string module, tensor;
        double low = 0, high = 0;  // of the biases, added up
    };
    // The kernels of these compute their gates inside: their biases tell where these are.
    void note_gates(const model::StepView& step) {
        std::map<std::string, Gates> all;
        for (const model::TensorSample& sample : step.record->tensors) {
            const model::TensorInfo& info = step.info(sample.tensor);
            const model::Statistics& values = sample.statistics;
            const bool is_gated = info.module_type.starts_with("LSTM") || info.module_type.starts_with("GRU");
            if (!is_gated || info.role != model::Role::kBias || values.finite() == 0) continue;
            // "bias_ih_l0" and "bias_hh_l0" are added up.
            std::string name(place_of(info.name));
            std::size_t which = name.rfind("bias_ih");
            if (which == std::string::npos) which = name.rfind("bias_hh");
            if (which == std::string::npos) continue;
            name.erase(which, 7);
            Gates& gates = all[name];
            gates.module = info.module;
            gates.tensor = info.name;
            gates.low += values.min;
            gates.high += values.max;
        }
        if (!all.empty()) ++judged_;
        for (auto& [name, gates] : all)
            if (gates.low > bias_ || gates.high < -bias_) gates_.push_back(std::move(gates));
    }
    void fire_gates(FindingSink& sink) {
        const bool learns = has_come_far(1) && !is_behind_inputs();
        const Gates& first = gates_.front();
        sink.clear(learns ? "gates" : "gates_learning");
        model::Finding finding;
        finding.key = learns ? "gates_learning" : "gates";
        finding.severity = learns ? model::Severity::kInfo : model::Severity::kWarning;
        finding.first_step = 0;
        finding.tensor = first.tensor;
        finding.layer = first.module;
        finding.places = gates_.size();
        const bool is_open = first.low > 0;
        finding.message = base::format(
            "All biases of {} begin {} (those of input and state added up): every gate is {} whatever the "
            "input is{}.",
            first.module,
            first.low < first.high ? base::format("between {} and {}", base::human_number(first.low),
                                                  base::human_number(first.high))
                                   : base::format("at {}", base::human_number(first.low)),
            is_open ? "open" : "closed", learns ? "; the training learns all the same" : "");
        finding.fix = base::format(
            "Leave the biases of {} as PyTorch makes them; to remember from the start, set those of the "
            "forget gate alone: in an LSTM bias_ih_l0[hidden_size : 2 * hidden_size] to 1.",
            first.module);
        finding.evidence.push_back(
            {"least size of a bias", is_open ? first.low : -first.high, "limit", bias_});
        finding.evidence.push_back({"values at the flat ends at the first step", 1, "", 0});
        if (loss_.count() > 0)
            finding.evidence.push_back({"loss", loss_.level(), "at the start", loss_.start()});
        finding.plots = {{first.tensor, "min"}, {first.tensor, "max"}};
        if (!loss_.tensor().empty()) finding.plots.emplace_back(loss_.tensor(), "value");
        sink.fire(std::move(finding));
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
    // A layer with weights returns as many values, of the same shape: the activation is given these.
    [[nodiscard]] bool is_after_weights(const model::StepView& step, const model::TensorInfo& info) const {
        return std::any_of(step.tensors->begin(), step.tensors->end(), [&](const model::TensorInfo& other) {
            return other.role == model::Role::kOutput && other.shape == info.shape &&
                   gains_.contains(other.layer);
        });
    }
    // Nearly all values from the first step on, with weights before it that would have to learn: what comes
    // after it learns from what these were drawn as.
    // Gates begin at one end, as they are meant to: closed or open.
    [[nodiscard]] bool is_dead_end(const model::StepView& step, const Place& place) const {
        return place.second.first_lesser >= kBothEnds && place.second.first_share >= kMostAtFirst &&
               place.second.lowest() >= kNearlyAll && is_after_weights(step, step.info(place.first));
    }
    // More than a fifth of what a constant leaves is left, although the targets of nearest inputs differ by
    // far less than that: it is no noise.
    [[nodiscard]] bool is_regression_behind_inputs() const {
        const std::optional<double> share = guessing_.share(), unlike = neighbours_.unlike();
        return is_regression(guessing_.function()) && share && *share > kLeft && unlike &&
               *unlike <= kTold * *share;
    }
    // A dead end; and after 200 steps the loss is well above what the inputs tell, and gets no less.
    [[nodiscard]] bool is_held_back(const model::StepView& step, const Place& place) const {
        if (!is_dead_end(step, place) || loss_.count() < 200 ||
            !(is_regression_behind_inputs() || is_behind_inputs()))
            return false;
        const auto means = loss_.blocks().means();
        return trend_z(means.last(means.size() / 2)) > kFalls;
    }
    // The layer is part of a module that has a weight of its own, and the loss compares another number of
    // values: it goes into that weight, or the like.
    [[nodiscard]] static bool is_used_by_parent(const model::StepView& step, const model::TensorInfo& info) {
        return is_compared_otherwise(step, info) &&
               std::any_of(step.tensors->begin(), step.tensors->end(), [&](const model::TensorInfo& other) {
                   const std::string_view name = place_of(other.name);
                   const std::size_t dot = name.rfind('.');
                   const std::string owner(name.substr(0, dot == std::string_view::npos ? 0 : dot));
                   return other.role == model::Role::kWeight && !name.ends_with("bias") &&
                          (owner.empty() || owner == info.module || info.module.starts_with(owner + "."));
               });
    }
    // Layers have numbers in the order in which they are made, and activations may be made last. What is
    // called next, in the order of the forward pass, is known by its weight: it has as many inputs as this
    // has channels or values of a row.
    [[nodiscard]] bool is_given_to_weights(const model::StepView& step, const model::TensorInfo& info) const {
        const model::TensorInfo* next = nullptr;
        for (const model::TensorInfo& other : *step.tensors)
            if (other.role == model::Role::kOutput && other.id > info.id && gains_.contains(other.layer) &&
                (next == nullptr || other.id < next->id))
                next = &other;
        if (next == nullptr || info.shape.size() < 2 || has_several_models(step)) return false;
        return std::any_of(step.tensors->begin(), step.tensors->end(), [&](const model::TensorInfo& other) {
            return other.role == model::Role::kWeight && is_matrix(other) && other.layer == next->layer &&
                   (other.shape[1] == info.shape[1] || other.shape[1] == info.shape.back());
        });
    }
    // What is called next may be another model then, which judges the output of the first.
    [[nodiscard]] static bool has_several_models(const model::StepView& step) {
        return std::ranges::any_of(*step.tensors, [](const model::TensorInfo& info) {
            return info.role == model::Role::kInput && info.name.find('.') != std::string::npos;
        });
    }
    // No weights come after it: what it gives is what the model gives.
    [[nodiscard]] bool is_output(const model::StepView& step, const model::TensorInfo& info) const {
        if (is_given_to_weights(step, info)) return false;
        return std::none_of(step.tensors->begin(), step.tensors->end(), [&](const model::TensorInfo& other) {
            return (other.role == model::Role::kWeight || other.role == model::Role::kGradient) &&
                   other.layer > info.layer;
        });
    }

    // A layer's values, as a loss function compares them with targets.
    struct Compared {
        model::TensorId layer = 0;
        bool is_known = false;   // that the prediction is what this layer gave
        bool may_be_all = true;  // targets lie within its range, and the room of the values was small
        std::uint64_t looks = 0;
        Recent shares{3};  // of the targets' room, that the values leave
    };
    // The mean product of the distances from both ends: 0 where all values are at one of them.
    static double room_of(const model::Statistics& values, const Range& range) {
        const double square = values.l2 * values.l2 / static_cast<double>(values.finite());
        return (range.low + range.high) * values.mean - square - range.low * range.high;
    }
    // The layer that gave what a loss function compares, by all that is known of the values of this step.
    [[nodiscard]] std::optional<model::TensorId> layer_of(const model::StepView& step,
                                                          const LossCall& call) const {
        for (const model::TensorSample& sample : step.record->tensors) {
            const model::Statistics &given = sample.statistics, &compared = *call.predicted;
            if (layers_.contains(sample.tensor) && given.count == compared.count &&
                given.min == compared.min && given.max == compared.max &&
                std::abs(given.l2 - compared.l2) <= kSameSum * given.l2)
                return sample.tensor;
        }
        return std::nullopt;
    }
    // By the mean error, or by their entropy, the best answer is what targets are on average: it is at the
    // ends only where they are. So values far nearer to the ends than targets say nothing of them.
    void look_between(const model::StepView& step, FindingSink& sink) {
        for (const LossCall& call : loss_calls(step)) {
            if (call.labelled == nullptr || call.labelled->count != call.predicted->count ||
                (call.function != "mse_loss" && call.function != "binary_cross_entropy"))
                continue;
            auto [place, is_new] = compared_.try_emplace(call.prediction->id);
            Compared& compared = place->second;
            if (is_new && step.step() == 0)
                if (const std::optional<model::TensorId> layer = layer_of(step, call)) {
                    compared.layer = *layer;
                    compared.is_known = true;
                }
            if (!compared.is_known || loss_.is_game()) continue;
            const model::TensorInfo& info = step.info(compared.layer);
            const Range range =
                range_of(info.activation == model::ActivationKind::kTanh ? Squash::kTanh : Squash::kSigmoid);
            const double size = range.high - range.low;
            const double own = room_of(*call.predicted, range), wanted = room_of(*call.labelled, range);
            // One value for all is a prior that is kept to, as of a mask, no answer.
            const bool are_between = call.labelled->max > call.labelled->min &&
                                     call.labelled->min >= range.low && call.labelled->max <= range.high &&
                                     wanted >= kBetween * size * size;
            if (!are_between || own > kSmallRoom * wanted) compared.may_be_all = false;
            ++compared.looks;
            compared.shares.add(wanted > 0 ? own / wanted : 1);
            const auto shares = compared.shares.values();
            const bool is_flat = compared.may_be_all && compared.looks >= kFewestCompared &&
                                 loss_.count() >= kUntilCompared &&
                                 std::ranges::all_of(shares, [](double share) { return share <= kNoRoom; });
            if (is_flat) fire_between(info, own, wanted, compared.looks, sink);
            else if (!compared.may_be_all) sink.clear(kBetweenKey);
        }
    }
    void fire_between(const model::TensorInfo& info, double own, double wanted, std::uint64_t looks,
                      FindingSink& sink) const {
        model::Finding finding;
        finding.key = kBetweenKey;
        finding.severity = model::Severity::kWarning;
        finding.first_step = 0;
        finding.tensor = info.name;
        finding.layer = info.module;
        finding.message = base::format(
            "The values of {} ({}) are at the ends of its range from the first step on, where hardly any "
            "gradient passes, at all of {} looks. The targets that they are compared with lie in between: "
            "the mean product of the distances from both ends is {} of these, and {} of the values.",
            place_in_words(info.name), model::to_string(info.activation), looks, base::human_number(wanted),
            base::human_number(own));
        finding.fix = base::format(
            "Make smaller what {} is given: divide a product of two vectors by the root of their length, or "
            "initialise the last layer with smaller weights.",
            place_in_words(info.name));
        finding.evidence.push_back({"distance from both ends, multiplied", own, "of the targets", wanted});
        if (loss_.count() > 0)
            finding.evidence.push_back({"loss", loss_.level(), "at the start", loss_.start()});
        finding.plots = {{info.name, "low"}, {info.name, "high"}};
        if (!loss_.tensor().empty()) finding.plots.emplace_back(loss_.tensor(), "value");
        sink.fire(std::move(finding));
    }

    void note_binary(Layer& layer, double share) const {
        if (share < kBinary) layer.before.clear();
        else if (layer.before.empty() && loss_.count() >= kMiddle) {
            layer.binary_from = loss_.count();
            const auto half = loss_.recent().last(static_cast<std::size_t>(loss_.count() / 2));
            layer.before.assign(half.begin(), half.end());
        }
    }
    // Level of the loss when it became binary.
    [[nodiscard]] static double level_before(const Layer& layer) {
        const std::size_t count = std::min<std::size_t>(layer.before.size(), kMiddle);
        return median({layer.before.end() - static_cast<std::ptrdiff_t>(count), layer.before.end()});
    }
    // The loss was falling until then, and is higher since. Where an answer was found, it stays at what noise
    // leaves of it.
    [[nodiscard]] bool was_cut_short(const Layer& layer, double now) const {
        const std::span<const double> before = layer.before;
        const auto earlier = before.first(before.size() / 2), later = before.last(before.size() / 2);
        const double fell = median({earlier.begin(), earlier.end()}) - median({later.begin(), later.end()});
        const double noise = noise_of(before);
        const auto recent = loss_.recent().values();
        const double rose = now - level_before(layer);
        const auto chance = [](double noise_a, std::size_t a, double noise_b, std::size_t b) {  // of medians
            return 1.25 * std::hypot(noise_a / std::sqrt(a), noise_b / std::sqrt(b));
        };
        return fell > 1.5 * chance(noise, earlier.size(), noise, later.size()) &&
               rose > kHigher * level_before(layer) &&
               rose > 3 * chance(noise_of(recent), recent.size(), noise,
                                 std::min<std::size_t>(before.size(), kMiddle));
    }
    // What loss functions compare is of another number of values than this.
    [[nodiscard]] static bool is_compared_otherwise(const model::StepView& step,
                                                    const model::TensorInfo& info) {
        const auto values = [](const model::TensorInfo& tensor) {
            return std::accumulate(tensor.shape.begin(), tensor.shape.end(), std::int64_t{1},
                                   std::multiplies<>());
        };
        bool any = false;
        for (const model::TensorInfo& other : *step.tensors) {
            if (other.role != model::Role::kPrediction) continue;
            if (values(other) == values(info)) return false;
            any = true;
        }
        return any;
    }
    // Codes that become binary by and by are meant, and a mask may find its answer at once; where they became
    // it while the loss was falling, and it rose, nothing is learned any more.
    void judge_output(const model::StepView& step, FindingSink& sink) {
        bool is_told = false;
        for (const auto& [tensor, layer] : layers_) {
            const model::TensorInfo& info = step.info(tensor);
            if (!layer.shares.full() || layer.lowest() < kBinary || layer.first_share >= share_ ||
                layer.before.empty() || !loss_.is_known_function() || loss_.is_game())
                continue;
            const std::uint64_t since = loss_.count() - layer.binary_from;
            const auto recent = loss_.recent().values();
            const double now = median({recent.begin(), recent.end()});
            if (since < kLong || since < (kFirstFifth - 1) * layer.binary_from ||
                now < kFarFromStart * std::abs(loss_.start()) || !was_cut_short(layer, now) ||
                !is_output(step, info) || !is_compared_otherwise(step, info))
                continue;
            is_told = true;
            fire_output(info, layer, now, sink);
            break;
        }
        if (!is_told) sink.clear("flat_output");
    }
    void fire_output(const model::TensorInfo& info, const Layer& layer, double now, FindingSink& sink) const {
        model::Finding finding;
        finding.key = "flat_output";
        finding.severity = model::Severity::kWarning;
        finding.tensor = info.name;
        finding.layer = info.module;
        finding.message = base::format(
            "{:.0f} % of the values of {} ({}) lie at the flat ends in each of {} captured batches, {:.0f} % "
            "at the first step: they are binary, and no gradient gets past them. The loss is at {}; when "
            "they became it, it was at {} and falling.",
            100 * layer.lowest(), place_in_words(info.name), model::to_string(info.activation), window_,
            100 * layer.first_share, base::human_number(now), base::human_number(level_before(layer)));
        finding.fix = base::format(
            "Keep what is given to {} small, by LayerNorm or a smaller factor; a factor that is to grow "
            "until the values are binary has to grow over the whole training, by the epoch and not by the "
            "batch.",
            place_in_words(info.name));
        finding.evidence.push_back({"values at the flat ends", layer.lowest(), "limit", kBinary});
        finding.evidence.push_back({"values at the flat ends at the first step", layer.first_share, "", 0});
        finding.evidence.push_back({"loss", now, "when they became binary", level_before(layer)});
        finding.plots = {{info.name, "low"}, {info.name, "high"}};
        if (!loss_.tensor().empty()) finding.plots.emplace_back(loss_.tensor(), "value");
        sink.fire(std::move(finding));
    }

    void judge(const model::StepView& step, FindingSink& sink) {
        const Place* worst = nullptr;
        std::uint64_t places = 0, from_first = 0;
        for (const Place& place : layers_) {
            const Layer& layer = place.second;
            const model::TensorInfo& info = step.info(place.first);
            if (!layer.shares.full() || layer.lowest() < share_) continue;
            if (is_output(step, info) && !(is_held_back(step, place) && is_used_by_parent(step, info)))
                continue;
            ++places;
            if (layer.first_share >= share_) ++from_first;
            if (worst == nullptr || layer.lowest() > worst->second.lowest()) worst = &place;
        }
        // Saturated before it learned anything, it has to show more than that the loss fell a little.
        const bool from_start = worst != nullptr && worst->second.first_share >= share_;
        const bool learns =
            from_start ? has_come_far(from_first) && !is_behind_inputs() && !is_dead_end(step, *worst)
                       : loss_.has_learned() || agent_.is_on();
        const char* key = worst == nullptr ? "" : learns ? "flat_learning" : "flat";
        if (firing_ != key && !firing_.empty()) sink.clear(firing_);
        firing_ = key;
        if (worst == nullptr) return;
        if (loss_.count() > 0 && loss_.count() < kPatience) {
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
            !learns ? ""
            : loss_.has_learned()
                ? "; the training learns all the same"
                : "; what an agent is taught grows with what it earns, and its layers with it");
        finding.fix =
            learns && !loss_.has_learned()
                ? "Where it learns no more: scale the rewards down, or standardise the returns."
            : learns ? "Nothing, if the units are gates; otherwise LayerNorm in front keeps them apart."
            : from_start
                ? is_held_back(step, place) && gain_before(info.layer).value_or(kLargeGain) < kLargeGain
                      ? "Lower the factor that its input is multiplied by: the weights before it are not "
                        "large. One that is to make values binary in the end grows over the training, from "
                        "about 1. Where there is none, standardise the inputs."
                      : "Initialise the layers with torch.nn.init.xavier_uniform_ and standardise the "
                        "inputs, or use ReLU between the layers."
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

    double share_, bias_;
    std::size_t window_;
    std::vector<Gates> gates_;
    std::uint64_t judged_ = 0;
    std::map<model::TensorId, Layer> layers_;
    std::map<model::TensorId, Compared> compared_;  // by predictions
    std::map<std::int32_t, double> gains_;          // by layer
    std::string firing_;
    Neighbours neighbours_;
    Guessing guessing_;
    TrainingLoss loss_;
    Agent agent_;
};

std::vector<model::Requirement> saturated_activation_needs(const Parameters&) {
    std::vector<model::Requirement> all = loss_requirements(kSaturatedActivation.name);
    for (model::Requirement& more : neighbour_requirements(kSaturatedActivation.name))
        all.push_back(std::move(more));
    for (model::Requirement& more : argument_requirements(kSaturatedActivation.name))
        all.push_back(std::move(more));
    // Denser at first: units die early.
    constexpr auto kWhat = model::What::kStatistics | model::What::kUnits;
    all.push_back({"activations",
                   model::Mode::kTrain,
                   kWhat,
                   {.every = 10, .dense_until = 5, .end = 100},
                   kSaturatedActivation.name});
    for (const char* parameters : {"weights", "biases"})
        all.push_back({parameters,
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

#include "traindbg/rules/loss_arguments.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "traindbg/rules/loop_facts.h"

namespace traindbg::rules {
namespace {

using model::Role;

constexpr std::array<std::string_view, 4> kRegressions = {"mse_loss", "l1_loss", "smooth_l1_loss",
                                                          "huber_loss"};
constexpr std::string_view kLoss = "loss/", kPrediction = "prediction/", kLabel = "label/";

template <typename Samples>
auto sample_of(const Samples& samples, model::TensorId tensor) -> decltype(samples.data()) {
    for (const auto& sample : samples)
        if (sample.tensor == tensor) return &sample;
    return nullptr;
}

bool is_usable(const model::Statistics& statistics) {
    return statistics.count > 0 && statistics.not_finite() == 0;
}

bool is_near(double a, double b) {
    return std::abs(a - b) <= 2e-5 * std::max(1e-3, std::max(std::abs(a), std::abs(b)));
}

double through(Squash squash, double value) {
    switch (squash) {
        case Squash::kNone: return value;
        case Squash::kSigmoid: return 1 / (1 + std::exp(-value));
        case Squash::kTanh: return std::tanh(value);
        case Squash::kRelu: return std::max(value, 0.0);
        case Squash::kSoftplus: return std::max(value, 0.0) + std::log1p(std::exp(-std::abs(value)));
        case Squash::kExp: return std::exp(value);
    }
    return value;
}

// Of a module by its type, of a function by the end of its name: "activation/model.softplus#2".
bool is_softplus(const model::TensorInfo& info) {
    const std::string_view name = std::string_view(info.name).substr(0, info.name.find('#'));
    return info.module_type == "Softplus" || name.ends_with(".softplus");
}

// Of a rectifier whose threshold may be above 0: it then gives less than max(x, 0).
bool is_threshold(const model::TensorInfo& info) {
    const std::string_view name = std::string_view(info.name).substr(0, info.name.find('#'));
    return info.module_type == "Threshold" || name.ends_with(".threshold");
}

Squash squash_of(const model::TensorInfo& info) {
    switch (info.activation) {
        case model::ActivationKind::kRelu:
            return info.module_type == "ReLU6" || is_threshold(info) ? Squash::kNone : Squash::kRelu;
        case model::ActivationKind::kTanh: return Squash::kTanh;
        case model::ActivationKind::kSigmoid: return Squash::kSigmoid;
        case model::ActivationKind::kSmooth: return is_softplus(info) ? Squash::kSoftplus : Squash::kNone;
        case model::ActivationKind::kNone: return Squash::kNone;
    }
    return Squash::kNone;
}

// Entropy of a coin: the binary cross-entropy of a constant answer.
double entropy_of(double share) {
    if (!(share > 0 && share < 1)) return 0;
    return -share * std::log(share) - (1 - share) * std::log(1 - share);
}

}  // namespace

std::vector<model::Requirement> argument_requirements(std::string_view rule) {
    const std::string name(rule);
    constexpr model::Schedule kWhen = {.every = 50, .dense_until = 10};
    return {{"predictions", model::Mode::kTrain, model::What::kStatistics, kWhen, name},
            {"labels", model::Mode::kTrain, model::What::kStatistics, kWhen, name},
            loop_requirement(name)};  // of a loss that is written out
}

std::vector<model::Requirement> maker_requirements(std::string_view rule) {
    const std::string name(rule);
    constexpr model::Schedule kWhen = {.every = 50, .dense_until = 5};
    return {{"outputs", model::Mode::kTrain, model::What::kStatistics, kWhen, name},
            {"activations", model::Mode::kTrain, model::What::kStatistics, kWhen, name}};
}

model::Requirement label_histogram_requirement(std::string_view rule) {
    return {"labels",
            model::Mode::kTrain,
            model::What::kHistogram,
            {.every = 0, .dense_until = 5},
            std::string(rule)};
}

bool is_regression(std::string_view function) noexcept {
    return std::find(kRegressions.begin(), kRegressions.end(), function) != kRegressions.end();
}

std::string_view function_of_loss(std::string_view tensor_name) noexcept {
    return tensor_name.starts_with(kLoss) ? tensor_name.substr(kLoss.size()) : std::string_view();
}

std::vector<LossCall> loss_calls(const model::StepView& step) {
    std::vector<LossCall> calls;
    for (const model::TensorSample& sample : step.record->tensors) {
        const model::TensorInfo& info = step.info(sample.tensor);
        if (info.role != Role::kPrediction || !is_usable(sample.statistics)) continue;
        LossCall call;
        call.function = std::string_view(info.name).substr(std::min(kPrediction.size(), info.name.size()));
        if (call.function.empty() || call.function.find_first_of(".@#") != std::string_view::npos) continue;
        call.prediction = &info;
        call.predicted = &sample.statistics;
        if (const auto* channels = sample_of(step.record->channels, info.id))
            call.channels = &channels->channels;
        for (const model::TensorSample& other : step.record->tensors) {
            const model::TensorInfo& label = step.info(other.tensor);
            if (label.role != Role::kLabel || !std::string_view(label.name).starts_with(kLabel) ||
                std::string_view(label.name).substr(kLabel.size()) != call.function ||
                !is_usable(other.statistics))
                continue;
            call.label = &label;
            call.labelled = &other.statistics;
            if (const auto* bins = sample_of(step.record->histograms, label.id))
                call.label_bins = &bins->bins;
        }
        calls.push_back(call);
    }
    return calls;
}

std::string_view to_string(Squash squash) noexcept {
    switch (squash) {
        case Squash::kNone: return "none";
        case Squash::kSigmoid: return "sigmoid";
        case Squash::kTanh: return "tanh";
        case Squash::kRelu: return "ReLU";
        case Squash::kSoftplus: return "softplus";
        case Squash::kExp: return "exp";
    }
    return "none";
}

Range range_of(Squash squash) noexcept {
    switch (squash) {
        case Squash::kSigmoid: return {0, 1};
        case Squash::kTanh: return {-1, 1};
        case Squash::kRelu:
        case Squash::kSoftplus:
        case Squash::kExp: return {0, INFINITY};
        case Squash::kNone: break;
    }
    return {-INFINITY, INFINITY};
}

Maker maker_of(const model::StepView& step, const LossCall& call) {
    const model::Statistics& wanted = *call.predicted;
    Maker best;
    if (wanted.min == wanted.max) return best;  // many tensors may hold one value
    const auto is_better = [&](const model::TensorInfo& info) {
        return best.tensor == nullptr || info.layer > best.tensor->layer;
    };
    for (const model::TensorSample& sample : step.record->tensors) {
        const model::TensorInfo& info = step.info(sample.tensor);
        if ((info.role != Role::kOutput && info.role != Role::kActivation) ||
            sample.statistics.count != wanted.count || !is_usable(sample.statistics))
            continue;
        const model::Statistics& seen = sample.statistics;
        if (is_near(seen.min, wanted.min) && is_near(seen.max, wanted.max) &&
            is_near(seen.mean, wanted.mean) && is_near(seen.std, wanted.std)) {
            const Squash squash = squash_of(info);
            // What an activation function made is told from what it was made of by the function.
            if (is_better(info) || (best.squash == Squash::kNone && squash != Squash::kNone))
                best = {&info, squash};
        }
    }
    if (best.tensor != nullptr) return best;
    for (const model::TensorSample& sample : step.record->tensors) {
        const model::TensorInfo& info = step.info(sample.tensor);
        if ((info.role != Role::kOutput && info.role != Role::kActivation) ||
            sample.statistics.count != wanted.count || !is_usable(sample.statistics))
            continue;
        const model::Statistics& seen = sample.statistics;
        for (const Squash squash :
             {Squash::kSigmoid, Squash::kTanh, Squash::kRelu, Squash::kSoftplus, Squash::kExp}) {
            if (!is_near(through(squash, seen.min), wanted.min) ||
                !is_near(through(squash, seen.max), wanted.max))
                continue;
            if (is_near(seen.min, wanted.min) && is_near(seen.max, wanted.max)) continue;  // changes nothing
            if (is_better(info)) best = {&info, squash};
        }
    }
    return best;
}

void Guessing::observe(const model::StepView& step) {
    if (step.mode() != model::Mode::kTrain) return;
    loss_.observe(step);
    for (const LossCall& call : loss_calls(step)) {
        if (call.function == "cross_entropy" && call.prediction->shape.size() >= 2)
            classes_ = call.prediction->shape[1];
        const bool is_binary =
            call.function == "binary_cross_entropy" || call.function == "binary_cross_entropy_with_logits";
        if (call.labelled == nullptr || (!is_regression(call.function) && !is_binary)) continue;
        if (function_.empty()) function_ = call.function;
        if (function_ == call.function) model::merge(labels_, *call.labelled);
    }
    for (const LoopFact& bend : loop_facts(step, "loss_bend"))
        if (bend.place == function_ && bend.value >= 0) bend_ = bend.value;
    if (loop_fact(step, "trainings")) is_root_ = false;
    if (const auto written = loop_fact(step, "loss_is_written_out")) is_root_ = written->value != 0;
    for (const model::ScalarSample& sample : step.record->scalars) {
        const std::string_view name = step.info(sample.tensor).name;
        // Of a loss that is written out only what backward() was called on is there.
        const std::string_view function = is_root_ && name == "loss" ? function_ : function_of_loss(name);
        if (function.empty() || function != function_ || !std::isfinite(sample.value)) continue;
        values_.add(sample.value);
        ++count_;
    }
}

std::optional<double> Guessing::constant_loss() const {
    if (function_.empty()) return loss_.base_rate();
    if (labels_.count < 8) return std::nullopt;
    const double std = labels_.std;
    if (function_ == "mse_loss") return std * std;
    if (function_ == "l1_loss") {
        // Half of the values and more are 0, and so is their middle; else the mean distance from it of normal
        // ones.
        if (2 * labels_.zero >= labels_.count && labels_.min >= 0) return labels_.mean;
        return 0.798 * std;
    }
    if (function_ == "smooth_l1_loss" || function_ == "huber_loss") {
        const auto of_one = [](double s) { return s < 1 ? 0.5 * s * s * (1 - 0.2 * s) : 0.798 * s - 0.4; };
        if (function_ == "huber_loss") return bend_ * bend_ * of_one(std / std::max(bend_, 1e-9));
        return bend_ > 0 ? bend_ * of_one(std / bend_) : 0.798 * std;
    }
    return entropy_of(labels_.mean);
}

double Guessing::level() const {
    if (function_.empty()) return loss_.level();
    const auto last = values_.last(10);
    return median({last.begin(), last.end()});
}

std::optional<double> Guessing::share() const {
    const std::optional<double> constant = constant_loss();
    if (!constant || !(*constant > 0)) return std::nullopt;
    if (function_.empty() ? loss_.count() < 10 : count_ < 10) return std::nullopt;
    return level() / *constant;
}

std::optional<double> Guessing::least_share() const {
    if (!function_.empty() || classes_ < 2 || loss_.count() < 10) return std::nullopt;
    return level() / std::log(static_cast<double>(classes_));
}

bool Guessing::learns_well() const {
    if (const std::optional<double> now = share()) return *now < 0.6;
    if (!loss_.has_learned_much()) return false;
    // A loss that begins far above guessing falls far without learning anything.
    return classes_ < 2 || loss_.level() < 0.8 * std::log(static_cast<double>(classes_));
}

}  // namespace traindbg::rules

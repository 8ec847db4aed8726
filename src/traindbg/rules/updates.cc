#include "traindbg/rules/updates.h"

#include <algorithm>
#include <cmath>

#include "traindbg/rules/settings.h"

namespace traindbg::rules {
namespace {

constexpr std::size_t kLooks = 16;
constexpr std::string_view kLearningRate = "loop/learning_rate";
constexpr std::string_view kBaseRate = "loop/learning_rate_base";
constexpr std::string_view kRatio = "update_ratio/";
// What is optimized where there are models that it may be given to: an image, codes.
constexpr std::string_view kInputs = "OptimizedInputs";
constexpr std::string_view kScale = "gradient_before/loss_scale";
// Of a learning rate that is tried out.
constexpr double kSameRise = 1e-3, kFarRise = 100;
constexpr std::uint64_t kFewestRises = 20;

}  // namespace

bool is_matrix(const model::TensorInfo& info) {
    return info.shape.size() >= 2 && info.module_type.find("Embedding") == std::string::npos &&
           info.module_type.find("Norm") == std::string::npos && info.module_type != kInputs;
}

bool is_small_table(const model::TensorInfo& info) {
    constexpr std::int64_t kMostRows = 1024;
    return info.shape.size() == 2 && info.shape[1] > 1 && info.shape[0] <= kMostRows &&
           info.module_type.find("Embedding") != std::string::npos;
}

double gain_of(const model::TensorInfo& info, const model::Statistics& statistics) {
    if (info.shape.size() < 2 || statistics.count == 0 || statistics.finite() == 0) return 0;
    const double rows = static_cast<double>(std::max<std::int64_t>(info.shape[0], 1));
    const double columns = static_cast<double>(std::max<std::int64_t>(info.shape[1], 1));
    const bool is_transposed = info.module_type.find("Transpose") != std::string::npos;
    const double fan_in = static_cast<double>(statistics.count) / (is_transposed ? columns : rows);
    return statistics.l2 / std::sqrt(static_cast<double>(statistics.finite())) * std::sqrt(fan_in);
}

model::Requirement update_requirement(std::string_view rule) {
    return {"weight_updates",         model::Mode::kTrain,
            model::What::kStatistics, {.every = 100, .dense_until = 3},
            std::string(rule),        {10, 30, 70}};
}

model::Requirement rate_requirement(std::string_view rule) {
    return {"loop",
            model::Mode::kTrain,
            model::What::kStatistics,
            {.every = 50, .dense_until = 10},
            std::string(rule)};
}

model::Requirement unclipped_requirement(std::string_view rule) {
    return {"gradients_before",       model::Mode::kTrain,
            model::What::kStatistics, {.every = 100, .dense_until = 3},
            std::string(rule),        {10, 20, 50}};
}

bool WeightUpdates::observe(const model::StepView& step) {
    if (step.mode() != model::Mode::kTrain) return false;
    std::map<std::string_view, double, std::less<>> ratios;
    for (const model::ScalarSample& sample : step.record->scalars) {
        const std::string_view name = step.info(sample.tensor).name;
        if (name.starts_with(kRatio) && std::isfinite(sample.value)) ratios[place_of(name)] = sample.value;
    }
    if (ratios.empty()) return false;
    Look look;
    look.step = step.step();
    std::vector<double> all;
    const auto is_update = [&](const model::TensorSample& sample) {
        const model::TensorInfo& info = step.info(sample.tensor);
        return info.role == model::Role::kWeightUpdate && is_matrix(info);
    };
    const auto& tensors = step.record->tensors;
    const bool has_matrices = std::any_of(tensors.begin(), tensors.end(), is_update);
    for (const model::TensorSample& sample : tensors) {
        const model::TensorInfo& info = step.info(sample.tensor);
        if (info.role != model::Role::kWeightUpdate) continue;
        if (has_matrices ? !is_matrix(info) : !is_small_table(info)) continue;
        const auto found = ratios.find(place_of(info.name));
        if (found == ratios.end()) continue;
        if (info.dtype == tensor::DType::kBFloat16 || info.dtype == tensor::DType::kFloat16)
            are_rounded_ = true;
        const double step_gain = gain_of(info, sample.statistics);
        const double ratio = step_gain > 0 ? std::min(found->second, step_gain / kSmallGain) : found->second;
        all.push_back(ratio);
        if (ratio >= look.largest) {
            look.largest = ratio;
            look.place = found->first;
        }
    }
    if (all.empty()) return false;
    are_of_tables_ = !has_matrices;
    look.typical = median(std::move(all));
    highest_ = std::max(highest_, look.largest);
    if (look.step > 0 && look.typical >= worst_.typical) worst_ = look;
    if (looks_.size() == kLooks) looks_.erase(looks_.begin());
    looks_.push_back(std::move(look));
    ++count_;
    return true;
}

void LearningRates::observe(const model::StepView& step) {
    if (step.mode() != model::Mode::kTrain) return;
    const auto take = [&](double rate) {
        if (!known_) first_ = rate;
        now_ = rate;
        if (!known_ || rate > peak_) {
            peak_ = rate;
            peak_step_ = step.step();
        }
        known_ = true;
    };
    if (!known_)
        if (const std::optional<double> rate = optimizer_setting(*step.meta, "lr")) take(*rate);
    for (const model::ScalarSample& sample : step.record->scalars) {
        if (!std::isfinite(sample.value)) continue;
        const std::string_view name = step.info(sample.tensor).name;
        if (name == kLearningRate) take(sample.value);
        else if (name == kBaseRate) base_ = sample.value;
    }
    if (known_) look_at_rise(step.step());
}

void LearningRates::begin_anew(model::StepIndex step) {
    first_ = peak_ = now_;
    peak_step_ = step;
    rises_ = 0;
}

void LearningRates::look_at_rise(model::StepIndex step) {
    const double factor = last_ > 0 && step == last_step_ + 1 ? now_ / last_ : 0;
    if (factor <= 1) {
        rises_ = 0;
    } else if (rises_ > 0 && std::abs(factor / factor_ - 1) < kSameRise) {
        ++rises_;
    } else {
        rises_ = 1;
        risen_from_ = last_;
    }
    factor_ = factor;
    last_ = now_;
    last_step_ = step;
}

bool LearningRates::is_tried_out() const noexcept {
    return rises_ >= kFewestRises && now_ >= kFarRise * risen_from_;
}

bool LearningRates::is_warming_up(model::StepIndex step) const noexcept {
    return known_ && peak_ > first_ && step < peak_step_ + std::max<model::StepIndex>(10, step / 5);
}

bool Clipping::observe(const model::StepView& step) {
    if (step.mode() != model::Mode::kTrain) return false;
    double before2 = 0, after2 = 0, scale = 1;
    std::uint64_t not_finite = 0;
    for (const model::TensorSample& sample : step.record->tensors) {
        const model::Role role = step.info(sample.tensor).role;
        const double square = sample.statistics.l2 * sample.statistics.l2;
        if (role == model::Role::kGradientBefore) before2 += square;
        else if (role == model::Role::kGradient) after2 += square;
        else continue;
        not_finite += sample.statistics.not_finite();
    }
    for (const model::ScalarSample& sample : step.record->scalars)
        if (step.info(sample.tensor).name == kScale && sample.value > 0) scale = sample.value;
    if (!(before2 > 0) || not_finite > 0) return false;
    before_ = std::sqrt(before2) / scale;
    after_ = std::sqrt(after2);
    share_ = after_ / before_;
    highest_ = std::max(highest_, share_);
    ++count_;
    return true;
}

}  // namespace traindbg::rules

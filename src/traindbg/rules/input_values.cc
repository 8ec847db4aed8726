#include "traindbg/rules/input_values.h"

#include <algorithm>
#include <cmath>

#include "traindbg/tensor/dtype.h"

namespace traindbg::rules {
namespace {

constexpr double kLeastNoise = 1e-6;  // of the spread of the values

bool is_compared_type(tensor::DType dtype) {
    using tensor::DType;
    return dtype == DType::kFloat16 || dtype == DType::kBFloat16 || dtype == DType::kFloat32 ||
           dtype == DType::kFloat64;
}

}  // namespace

bool is_compared_input(const model::TensorInfo& info, const model::Statistics& values) {
    return info.role == model::Role::kInput && is_compared_type(info.dtype) && values.count >= 2 &&
           values.not_finite() == 0;
}

std::uint64_t values_in_row(const model::TensorInfo& info) {
    std::uint64_t values = 1;
    for (std::size_t i = 1; i < info.shape.size(); ++i) values *= static_cast<std::uint64_t>(info.shape[i]);
    return values;
}

double share_of_zeros(const model::Statistics& values) {
    return static_cast<double>(values.zero) / static_cast<double>(values.count);
}

double deviation_of(std::span<const double> values) {
    double mean = 0, squares = 0;
    for (const double value : values) mean += value / static_cast<double>(values.size());
    for (const double value : values) squares += (value - mean) * (value - mean);
    return std::sqrt(squares / static_cast<double>(values.size() - 1));
}

double deviation_of_changes(std::span<const double> values) {
    double squares = 0, changes = 0;
    for (std::size_t at = 1; at < values.size(); ++at) {
        const double change = values[at] - values[at - 1];
        squares += change * change;
        changes += change != 0 ? 1 : 0;
    }
    return changes > 0 ? std::sqrt(squares / changes / 2) : 0;
}

void InputValues::add_training(const model::TensorInfo& info, const model::Statistics& values) {
    training.add(values);
    if (first.batches < kFirst) {
        first.add(values);
        first_means.add(values.mean);
        first_stds.add(values.std);
    }
    most_values = std::max(most_values, values.count);
    values_of_row = values_in_row(info);
    means.add(values.mean);
    stds.add(values.std);
    zeros.add(share_of_zeros(values));
    // Zeros of every batch are just those of so many samples.
    if (values_of_row < 2 || values.zero % values_of_row != 0) is_blank_or_whole = false;
}

void InputValues::add_evaluation(const model::Statistics& values) {
    evaluation.add(values);
    if (first_evaluated.count == 0) first_evaluated = values;
}

double InputValues::noise_of_means() const {
    return std::max(deviation_of(means.values()), kLeastNoise * training.all.std);
}

double InputValues::noise_of_stds() const {
    return std::max(deviation_of(stds.values()), kLeastNoise * training.all.std);
}

}  // namespace traindbg::rules

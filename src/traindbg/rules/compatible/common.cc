#include "traindbg/rules/compatible/common.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <utility>

#include "traindbg/model/tensor_info.h"
#include "traindbg/rules/compatible/original_names.h"
#include "traindbg/tensor/dtype.h"

namespace traindbg::rules::compatible {
namespace {

using model::Role;
using model::TensorInfo;
using tensor::DType;

// "validation-rmse" of "metric/validation-rmse".
std::string_view last_part(std::string_view name) { return name.substr(name.rfind('/') + 1); }

// XGBoost calls a metric by the data and what is measured: "validation-error@0.7". What it measures is an
// error or is to grow, as auc, map and ndcg.
bool is_error_of_trees(std::string_view name) {
    constexpr std::array<std::string_view, 10> kErrors = {"loss", "error", "rmse", "rmsle",   "mse",
                                                          "mae",  "mape",  "mphe", "nloglik", "deviance"};
    for (const std::string_view data : {"train-", "validation-", "valid-", "val-", "eval-", "test-"}) {
        if (!name.starts_with(data)) continue;
        const std::string_view metric = name.substr(data.size(), name.find('@') - data.size());
        return std::any_of(kErrors.begin(), kErrors.end(),
                           [&](std::string_view error) { return metric.ends_with(error); });
    }
    return false;
}

template <typename T, typename Convert>
void append(const model::RawTensor& raw, std::vector<double>& out, Convert&& convert) {
    const std::size_t count = raw.bytes.size() / sizeof(T);
    out.reserve(count);
    for (std::size_t i = 0; i < count; ++i) {
        T value;
        std::memcpy(&value, raw.bytes.data() + i * sizeof(T), sizeof(T));
        out.push_back(static_cast<double>(convert(value)));
    }
}

}  // namespace

Selection::Selection(std::vector<std::string> collections, const std::vector<std::string>& patterns,
                     Also also)
    : collections_(std::move(collections)), also_(also) {
    for (const std::string& text : patterns)
        if (base::Result<base::Pattern> pattern = base::Pattern::make(text); pattern.is_ok())
            patterns_.push_back(std::move(pattern).value());
}

Selection::Selection(const Parameters& parameters)
    : Selection(parameters.texts("collection_names"), parameters.texts("tensor_regex")) {}

bool Selection::includes(const model::StepView& step, model::TensorId tensor) {
    if (known_.size() <= tensor) known_.resize(tensor + 1, -1);
    if (known_[tensor] < 0) known_[tensor] = look_up(step.info(tensor), step.meta->model_type) ? 1 : 0;
    return known_[tensor] == 1;
}

bool Selection::look_up(const TensorInfo& info, const std::string& root) const {
    if (collections_.empty() && patterns_.empty())
        return also_ != nullptr ? also_(info) : is_in_collection(info, "all");
    if (also_ != nullptr && also_(info)) return true;
    const std::string original = original_name(info, root);
    return std::any_of(collections_.begin(), collections_.end(),
                       [&](const std::string& name) { return is_in_collection(info, name); }) ||
           std::any_of(patterns_.begin(), patterns_.end(), [&](const base::Pattern& pattern) {
               return pattern.matches(info.name) || (original != info.name && pattern.matches(original));
           });
}

std::vector<model::ParameterInfo> selection_parameters() {
    return {{"collection_names",
             "",
             {},
             0,
             0,
             "collections whose tensors are inspected; with `tensor_regex` the union of both, with neither "
             "all tensors that were recorded",
             model::ParameterType::kTexts},
            {"tensor_regex",
             "",
             {},
             0,
             0,
             "regular expressions of names of tensors that are inspected",
             model::ParameterType::kPatterns}};
}

std::vector<model::Requirement> selection_requirements(const Parameters& parameters, const std::string& rule,
                                                       model::What what) {
    std::vector<model::Requirement> out = {
        {"losses", model::Mode::kGlobal, model::What::kStatistics, {.every = kSaveInterval}, rule}};
    for (const std::string& name : parameters.texts("collection_names"))
        if (name != "losses" && model::role_of_collection(name))
            out.push_back({name, model::Mode::kTrain, what, {.every = kSaveInterval}, rule});
    return out;
}

std::optional<std::vector<double>> values_of(const model::RawTensor& raw) {
    std::vector<double> out;
    const auto same = [](auto value) { return value; };
    switch (raw.dtype) {
        case DType::kFloat64: append<double>(raw, out, same); break;
        case DType::kFloat32: append<float>(raw, out, same); break;
        case DType::kFloat16: append<std::uint16_t>(raw, out, &tensor::half_to_float); break;
        case DType::kBFloat16: append<std::uint16_t>(raw, out, &tensor::bfloat16_to_float); break;
        case DType::kInt64: append<std::int64_t>(raw, out, same); break;
        case DType::kInt32: append<std::int32_t>(raw, out, same); break;
        case DType::kInt16: append<std::int16_t>(raw, out, same); break;
        case DType::kInt8: append<std::int8_t>(raw, out, same); break;
        case DType::kUInt64: append<std::uint64_t>(raw, out, same); break;
        case DType::kUInt32: append<std::uint32_t>(raw, out, same); break;
        case DType::kUInt16: append<std::uint16_t>(raw, out, same); break;
        case DType::kUInt8:
        case DType::kBool: append<std::uint8_t>(raw, out, same); break;
        case DType::kFloat8E4M3:
        case DType::kFloat8E5M2:
        case DType::kFloat8E4M3Fnuz:
        case DType::kFloat8E5M2Fnuz:
        case DType::kFloat8E8M0:
            append<std::uint8_t>(raw, out,
                                 [&](std::uint8_t bits) { return tensor::float8_to_float(raw.dtype, bits); });
            break;
        default: return std::nullopt;
    }
    return out;
}

std::optional<std::vector<std::int64_t>> classes_of(const model::RawTensor& raw, std::size_t rows) {
    const std::optional<std::vector<double>> values = values_of(raw);
    if (!values) return std::nullopt;
    std::vector<std::int64_t> out;
    if (rows == 0 || values->size() == rows) {
        for (const double value : *values) {
            if (!(std::abs(value) < 1e15)) return std::nullopt;
            out.push_back(std::llround(value));
        }
        return out;
    }
    const Channels channels(std::size_t{1}, raw.shape);
    const std::size_t classes = channels.count();
    if (raw.shape.size() < 2 || classes < 2 || values->size() != rows * classes) return std::nullopt;
    const std::size_t places = rows / static_cast<std::size_t>(raw.shape[0]);
    for (std::size_t row = 0; row < rows; ++row) {
        const std::size_t first = row / places * places * classes + row % places;
        std::size_t best = 0;
        for (std::size_t c = 1; c < classes; ++c)
            if ((*values)[first + c * places] > (*values)[first + best * places]) best = c;
        out.push_back(static_cast<std::int64_t>(best));
    }
    return out;
}

Channels::Channels(model::Role role, const std::vector<std::int64_t>& shape)
    : Channels(shape.empty() ? 0 : model::channel_dimension(role, shape.size()), shape) {}

Channels::Channels(std::size_t dimension, const std::vector<std::int64_t>& shape) {
    if (dimension >= shape.size()) return;
    const auto size_of = [&](std::size_t i) {
        return static_cast<std::size_t>(std::max<std::int64_t>(shape[i], 1));
    };
    count_ = size_of(dimension);
    for (std::size_t i = dimension + 1; i < shape.size(); ++i) stride_ *= size_of(i);
}

bool is_default(const model::RuleInfo& info, const Parameters& parameters, std::string_view name) {
    return std::any_of(info.parameters.begin(), info.parameters.end(), [&](const model::ParameterInfo& each) {
        return each.name == name && each.fallback == parameters.value(name);
    });
}

const model::RawTensor* raw_of(const model::StepRecord& record, model::TensorId tensor) {
    for (const model::RawTensor& raw : record.raw)
        if (raw.tensor == tensor) return &raw;
    return nullptr;
}

std::vector<Number> numbers_of(const model::StepView& step) {
    std::vector<Number> out;
    for (const model::ScalarSample& scalar : step.record->scalars)
        out.push_back({scalar.tensor, scalar.value});
    for (const model::TensorSample& sample : step.record->tensors)
        if (sample.statistics.count == 1 && sample.statistics.finite() == 1)
            out.push_back({sample.tensor, sample.statistics.mean});
    return out;
}

bool is_loss(const TensorInfo& info) {
    if (info.role == Role::kLoss) return true;
    const std::string_view name = last_part(info.name);
    return info.role == Role::kMetric && (name.starts_with("val_loss") || is_error_of_trees(name));
}

bool is_of_validation(const model::StepView& step, const TensorInfo& info) {
    if (step.mode() == model::Mode::kEval) return true;
    const std::string_view name = last_part(info.name);
    for (const std::string_view data : {"val", "valid", "validation", "eval", "evaluation", "test"})
        if (name.starts_with(data) &&
            (name.size() == data.size() || name[data.size()] == '_' || name[data.size()] == '-'))
            return true;
    return false;
}

bool CompatibleRule::looked(model::TensorId tensor) {
    looked_.push_back(tensor);
    return true;
}

void CompatibleRule::forget_looked() {
    if (looked_.empty()) firing_.clear();  // it is not about single tensors
    for (const model::TensorId tensor : looked_) firing_.erase(tensor);
    looked_.clear();
}

void CompatibleRule::pass(FindingSink& sink) {
    ++judged_;
    forget_looked();
    if (firing_.empty()) sink.clear("condition");
}

model::Finding CompatibleRule::finding_at(const model::StepView& step, const std::vector<Place>& places) {
    model::Finding finding;
    forget_looked();
    if (places.empty()) return finding;
    for (const Place& place : places) firing_.insert(place.tensor);
    const TensorInfo& info = step.info(places.front().tensor);
    finding.tensor = info.name;
    finding.layer = info.module;
    finding.places = places.size();
    return finding;
}

void CompatibleRule::fire(FindingSink& sink, model::Finding finding) {
    ++judged_;
    finding.key = "condition";
    finding.severity = model::Severity::kWarning;
    sink.fire(std::move(finding));
}

}  // namespace traindbg::rules::compatible

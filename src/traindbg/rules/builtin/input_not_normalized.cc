// Inputs of very large, very small or very different sizes, and a training that does not learn well.

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/rules/builtin/builtin.h"
#include "traindbg/rules/loop_facts.h"
#include "traindbg/rules/loss_arguments.h"
#include "traindbg/rules/settings.h"

namespace traindbg::rules {
namespace {

using base::human_number;

const model::RuleInfo kInputNotNormalized = {
    .name = "input_not_normalized",
    .title = "Inputs are not normalised",
    .summary =
        "The model's inputs are far from unit size, or their features differ in size by far, and it learns "
        "badly.",
    .when =
        "A floating-point input of the model is far too large, too small, uneven between features or far "
        "from 0, and the training does not learn well or activations saturate.\n"
        "- Large (warning): the input's root mean square is above `size`.\n"
        "- Small (warning): the root mean square is below one over fifty. Where most values are zero, only "
        "the others count.\n"
        "- Uneven (warning): in the first batches a feature's range is more than `ratio` times that of the "
        "median one, and above 10. Where the median one's is below 0.02, it may be any size. A feature is "
        "an index of dimension 1, or of the last dimension where there are three.\n"
        "- Far from 0 (warning): the values lie ten standard deviations or more away from 0, all on one "
        "side.\n"
        "- When: after `steps` steps, or at the end of a run of at least 50 steps. At once, where the loss "
        "is not finite.\n"
        "- Poor training: the loss is not below 60 % of what guessing gives (of its start, where that is "
        "not known).\n"
        "- Saturation is enough instead, for large inputs: at least 60 % of the values of the first tanh "
        "or sigmoid between layers with weights have been at its flat ends, at each of five or more looks "
        "since the first step.\n"
        "- Not judged: the first module with weights is a normalisation or an embedding. An embedding of "
        "integer inputs that come beside this one is passed over, where the first layer with a matrix is "
        "given values above `size`.\n"
        "- Not judged: the model itself makes values of usual size of its one input before that first "
        "module.",
    .why =
        "The gradient of the first layer's weights is as large as the inputs: one learning rate is too large "
        "for the large features and too small for the others. ReLUs die and sigmoids saturate at the first "
        "step.",
    .fix =
        "Standardise each feature by mean and standard deviation of the training part (images: divide by "
        "255, then transforms.Normalize); or put BatchNorm in front.",
    .healthy =
        "Inputs of any size with which the training learns well, and which keep no tanh or sigmoid at its "
        "flat ends; inputs that meet BatchNorm or LayerNorm first; sparse matrices, as that of a graph, and "
        "one-hot vectors; token and category numbers; trainings with several optimizers.",
    .cost =
        "One pass over the model's inputs at the first 10 steps and then at every 50th, with the extremes of "
        "each feature at the first 2; over activations at the first 5 and every 50th; the loss at every "
        "step.",
    .original = "CheckInputImages",
    .source = "LeCun, Bottou, Orr, Müller, \"Efficient BackProp\", 1998",
    .severity = model::Severity::kWarning,
    .parameters = {{"size", "root mean square", 10, 2, 1e9, "size of inputs that is large"},
                   {"ratio", "times", 100, 5, 1e9, "range of a feature beside that of the median one"},
                   {"steps", "steps", 200, 30, 1e9, "steps that a training has to learn"}},
};

class InputNotNormalized final : public Rule {
  public:
    explicit InputNotNormalized(const Parameters& parameters)
        : size_(parameters.at("size")),
          ratio_(parameters.at("ratio")),
          steps_(static_cast<std::uint64_t>(parameters.at("steps"))) {}

    void on_step(const model::StepView& step, FindingSink& sink) override {
        if (step.mode() != model::Mode::kTrain) return;
        guessing_.observe(step);
        if (const auto given = loop_fact(step, "input_given_size")) given_ = given->value;
        if (loop_fact(step, "trainings")) {
            first_.reset();
            flat_looks_ = 0;
        }
        bool is_new = false;
        for (const model::TensorSample& sample : step.record->tensors) {
            const model::TensorInfo& info = step.info(sample.tensor);
            if (info.role != model::Role::kInput || !is_float(info.dtype) || sample.statistics.finite() < 2)
                continue;
            ++judged_;
            is_new = true;
            model::Statistics& all = inputs_[sample.tensor].values;
            // What is not finite is another rule's.
            model::merge(all, sample.statistics);
        }
        for (const model::ChannelSample& sample : step.record->channels)
            if (const auto known = inputs_.find(sample.tensor); known != inputs_.end())
                widen(known->second, sample.channels);
        for (const model::ScalarSample& sample : step.record->scalars)
            if (step.info(sample.tensor).role == model::Role::kLoss) {
                ++losses_;
                is_lost_ = is_lost_ || !std::isfinite(sample.value);
                break;
            }
        if (is_new) is_unusual_ = find_worst(step);
        look_at_activations(step);
        if (losses_ < steps_ && !is_lost_) return;
        const bool on = is_unusual_ && !guessing_.loss().is_game() && (is_lost_ || is_in_the_way());
        if (on) fire(sink);
        else if (fired_) sink.clear("inputs");
        fired_ = on;
    }
    void on_end(FindingSink& sink) override {
        if (is_unusual_ && losses_ >= 50 && losses_ < steps_ && !is_lost_ && !guessing_.loss().is_game() &&
            is_in_the_way())
            fire(sink);
    }
    [[nodiscard]] std::uint64_t steps_judged() const override { return judged_; }
    [[nodiscard]] std::string why_not_judged() const override {
        return "no input of floating point of the model was seen";
    }

  private:
    static constexpr double kTiny = 0.02;  // a range of values that says little beside others
    static constexpr double kFarOff = 10;  // standard deviations from 0
    static constexpr double kUsual = 5;    // root mean square that no layer minds, or one over it
    static constexpr double kFlat = 0.6;   // of the first activation's values, at its flat ends
    static constexpr int kFewestFlat = 5;  // looks

    struct Input {
        model::Statistics values;
        std::vector<float> low, high;  // by feature
    };

    static bool is_float(tensor::DType dtype) {
        using tensor::DType;
        return dtype == DType::kFloat16 || dtype == DType::kBFloat16 || dtype == DType::kFloat32 ||
               dtype == DType::kFloat64;
    }

    // Of several inputs nobody knows which of them comes to that activation.
    [[nodiscard]] bool is_flat() const {
        return inputs_.size() == 1 && how_ == "large" && flat_looks_ >= kFewestFlat && least_flat_ >= kFlat;
    }
    [[nodiscard]] bool is_in_the_way() const { return !guessing_.learns_well() || is_flat(); }

    // The first tanh or sigmoid after weights, which other weights follow: what large inputs saturate.
    void look_at_activations(const model::StepView& step) {
        for (const model::TensorSample& sample : step.record->tensors) {
            const model::TensorInfo& info = step.info(sample.tensor);
            const bool is_bounded = info.activation == model::ActivationKind::kTanh ||
                                    info.activation == model::ActivationKind::kSigmoid;
            if (!is_bounded || sample.units.units == 0 || sample.statistics.count == 0) continue;
            if (!first_ && is_between_weights(step, info)) first_ = info.id;
            if (first_ != info.id) continue;
            const double share = static_cast<double>(sample.units.low + sample.units.high) /
                                 static_cast<double>(sample.statistics.count);
            least_flat_ = flat_looks_ == 0 ? share : std::min(least_flat_, share);
            flat_name_ = info.name;
            ++flat_looks_;
        }
    }
    // Tensors are numbered as the first step comes to them.
    static bool is_between_weights(const model::StepView& step, const model::TensorInfo& activation) {
        bool is_after = false, is_before = false;
        for (const model::TensorInfo& info : *step.tensors) {
            const bool is_weighted = info.module_type.find("Linear") != std::string::npos ||
                                     info.module_type.find("Conv") != std::string::npos;
            if (info.role != model::Role::kOutput || !is_weighted) continue;
            is_after = is_after || (info.id < activation.id && info.shape == activation.shape);
            is_before = is_before || info.id > activation.id;
        }
        return is_after && is_before;
    }

    static void widen(Input& input, const model::ChannelStatistics& channels) {
        if (input.low.empty()) {
            input.low = channels.min;
            input.high = channels.max;
        }
        if (input.low.size() != channels.channels()) return;  // sequences of another length
        for (std::size_t i = 0; i < input.low.size(); ++i) {
            input.low[i] = std::min(input.low[i], channels.min[i]);
            input.high[i] = std::max(input.high[i], channels.max[i]);
        }
    }

    // The module with weights that comes first makes any size into one. An embedding is given numbers of
    // categories: where there are such inputs beside, those of floating point come to another module, if that
    // is given such sizes.
    [[nodiscard]] bool is_normalised_by_the_model(const model::StepView& step) const {
        const model::TensorInfo* first = nullptr;
        bool has_categories = false;
        for (const model::TensorInfo& info : *step.tensors)
            has_categories = has_categories || (info.role == model::Role::kInput && !is_float(info.dtype));
        has_categories = has_categories && given_ > size_;
        const auto is_embedding = [](const model::TensorInfo& info) {
            return info.module_type.find("Embedding") != std::string::npos;
        };
        for (const model::TensorInfo& info : *step.tensors)
            if ((info.role == model::Role::kWeight || info.role == model::Role::kBias) && info.layer >= 0 &&
                (first == nullptr || info.layer < first->layer) && !(has_categories && is_embedding(info)))
                first = &info;
        if (first == nullptr) return false;
        return first->module_type.find("Norm") != std::string::npos || is_embedding(*first);
    }

    // The model makes another size of it itself, before its first layer: by a mean that it takes, say. Of
    // several inputs nobody knows which of them that layer is given.
    [[nodiscard]] bool is_scaled_by_the_model(double rms) const {
        if (inputs_.size() != 1) return false;
        const bool is_usual = given_ >= 1 / kUsual && given_ <= kUsual;
        return is_usual && (rms > 2 * given_ || 2 * rms < given_);
    }

    // A matrix of mostly zeros is not small because of them: what it is multiplied with adds up what is left.
    static double size_of_values(const model::Statistics& values) {
        const auto count = static_cast<double>(values.finite());
        const auto zero = static_cast<double>(values.zero);
        return values.l2 / std::sqrt(2 * zero > count ? std::max(count - zero, 1.0) : count);
    }

    // Which input is worst, and how.
    bool find_worst(const model::StepView& step) {
        if (is_normalised_by_the_model(step)) return false;
        double worst = 1;
        bool any = false;
        for (const auto& [id, input] : inputs_) {
            const double rms = std::hypot(input.values.mean, input.values.std);
            if (is_scaled_by_the_model(rms)) continue;
            const double size = size_of_values(input.values);
            std::vector<double> ranges;
            for (std::size_t i = 0; i < input.low.size(); ++i)
                if (input.high[i] > input.low[i])
                    ranges.push_back(static_cast<double>(input.high[i]) - static_cast<double>(input.low[i]));
            const double widest = ranges.empty() ? 0 : *std::max_element(ranges.begin(), ranges.end());
            const double usual = median(ranges);
            double badness = 0;
            const char* how = "";
            // That one feature is large says more than that the input is.
            const bool is_any_large = widest > 10, are_most_tiny = usual < kTiny;
            if (ranges.size() >= 2 && widest > ratio_ * usual && (is_any_large || are_most_tiny)) {
                badness = widest / usual / ratio_;
                how = "uneven";
            } else if (rms > size_) {
                badness = rms / size_;
                how = "large";
            } else if (size > 0 && size < 0.02) {
                badness = 0.02 / size;
                how = "small";
            } else if (input.values.std > 0 && std::abs(input.values.mean) > kFarOff * input.values.std) {
                badness = std::abs(input.values.mean) / input.values.std / kFarOff;
                how = "offset";
            }
            if (badness <= worst) continue;
            worst = badness;
            any = true;
            how_ = how;
            rms_ = std::string_view(how) == "small" ? size : rms;
            widest_ = widest;
            usual_ = usual;
            tensor_ = step.info(id).name;
            spread_ = input.values.std;
            low_ = input.values.min;
            high_ = input.values.max;
            feature_ = 0;
            for (std::size_t i = 0; i < input.low.size(); ++i)
                if (static_cast<double>(input.high[i]) - static_cast<double>(input.low[i]) == widest)
                    feature_ = i;
        }
        return any;
    }

    void fire(FindingSink& sink) const {
        model::Finding finding;
        finding.key = "inputs";
        finding.severity = model::Severity::kWarning;
        finding.first_step = 0;
        finding.tensor = tensor_;
        if (how_ == "uneven") {
            finding.message = base::format(
                "The features of {} differ in size: that of index {} ranges over {}, the median one over {}",
                tensor_, feature_, human_number(widest_), human_number(usual_));
            finding.evidence.push_back({"widest range of a feature", widest_, "of the median one", usual_});
        } else if (how_ == "offset") {
            finding.message = base::format(
                "The values of {} lie between {} and {}: with a standard deviation of {} they differ little "
                "beside what they have in common",
                tensor_, human_number(low_), human_number(high_), human_number(spread_));
            finding.evidence.push_back({"standard deviation of the input", spread_, "usual", 1});
        } else {
            finding.message = base::format(
                "The values of {} reach from {} to {}, with a root mean square of {} where about 1 is usual",
                tensor_, human_number(low_), human_number(high_), human_number(rms_));
        }
        finding.evidence.push_back({"root mean square of the input", rms_, "usual", 1});
        const std::optional<double> share = guessing_.share();
        if (is_flat() && guessing_.learns_well() && !is_lost_) {
            finding.message += base::format(
                "; {:.0f} % of {}'s values and more lie at its flat ends, at each of {} looks since the "
                "first step.",
                100 * least_flat_, flat_name_, flat_looks_);
            finding.evidence.push_back({"least share at the flat ends", least_flat_, "limit", kFlat});
        } else if (is_lost_) {
            finding.message += "; the loss is not finite any more.";
        } else if (share) {
            finding.message += base::format(
                "; after {} steps the loss is {:.3g} times that of a constant answer.", losses_, *share);
            finding.evidence.push_back(
                {"loss", guessing_.level(), "of a constant answer", guessing_.constant_loss().value_or(0)});
        } else {
            finding.message +=
                base::format("; after {} steps the loss is {}, at the start it was {}.", losses_,
                             human_number(guessing_.loss().level()), human_number(guessing_.loss().start()));
        }
        finding.fix =
            how_ == "large" && low_ >= 0 && high_ <= 255.5 && high_ > 100
                ? "Divide the images by 255 and standardise them (transforms.Normalize), or put BatchNorm "
                  "in front."
                : "Standardise each feature by mean and standard deviation of the training part, e.g. x = "
                  "(x - mean) / std, or put torch.nn.BatchNorm1d in front of the first layer.";
        finding.plots = {{tensor_, "max"}, {tensor_, "std"}};
        sink.fire(std::move(finding));
    }

    double size_, ratio_;
    std::uint64_t steps_;
    double given_ = 0;  // size of what the first layer with a matrix is given; 0: not known
    std::uint64_t judged_ = 0, losses_ = 0;
    bool is_lost_ = false, is_unusual_ = false, fired_ = false;
    std::map<model::TensorId, Input> inputs_;
    std::string tensor_, how_;
    double rms_ = 0, spread_ = 0, widest_ = 0, usual_ = 0, low_ = 0, high_ = 0;
    std::size_t feature_ = 0;
    std::optional<model::TensorId> first_;  // activation
    std::string flat_name_;
    double least_flat_ = 0;
    int flat_looks_ = 0;
    Guessing guessing_;
};

std::vector<model::Requirement> input_not_normalized_needs(const Parameters&) {
    std::vector<model::Requirement> all = loss_requirements(kInputNotNormalized.name);
    for (model::Requirement& more : argument_requirements(kInputNotNormalized.name))
        all.push_back(std::move(more));
    using enum model::Mode;
    all.push_back({"inputs",
                   kTrain,
                   model::What::kStatistics,
                   {.every = 50, .dense_until = 10},
                   kInputNotNormalized.name});
    all.push_back(
        {"inputs", kTrain, model::What::kChannels, {.every = 0, .dense_until = 2}, kInputNotNormalized.name});
    all.push_back({"activations",
                   kTrain,
                   model::What::kStatistics | model::What::kUnits,
                   {.every = 50, .dense_until = 5},
                   kInputNotNormalized.name});
    all.push_back({"outputs",
                   kTrain,
                   model::What::kStatistics,
                   {.every = 0, .dense_until = 1},
                   kInputNotNormalized.name});
    return all;
}

}  // namespace

RuleEntry builtin::input_not_normalized() {
    return {
        &kInputNotNormalized, &input_not_normalized_needs,
        [](const Parameters& p) -> std::unique_ptr<Rule> { return std::make_unique<InputNotNormalized>(p); }};
}

}  // namespace traindbg::rules

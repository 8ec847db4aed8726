// Updates too small for the weights' element type: rounded away, the weights stay as they are.

#include <algorithm>
#include <cmath>
#include <map>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/rules/builtin/builtin.h"
#include "traindbg/rules/loop_facts.h"
#include "traindbg/rules/settings.h"
#include "traindbg/rules/training_loss.h"
#include "traindbg/rules/updates.h"

namespace traindbg::rules {
namespace {

using base::human_number;

const model::RuleInfo kLowPrecisionUpdatesLost = {
    .name = "low_precision_updates_lost",
    .title = "Updates lost in low precision",
    .summary =
        "Weights kept in 16 bits, or very large ones in 32, do not change, because each update is less than "
        "half of their last bit.",
    .when =
        "Updates of weights, or of their averages, are rounded away: most entries that have a gradient do "
        "not change, as the numbers are too coarse for the steps.\n"
        "- Looked at: the weight matrices in bfloat16 or float16. In a model without matrices, the tables "
        "of embeddings.\n"
        "- Lost (warning): most of these have an update of exactly 0 in more than `share` of the entries "
        "that had a gradient, with a learning rate above 0. This is so at three or more of the steps that "
        "were looked at, and at more than half of them. Judged after `patience` steps, while the training "
        "does not learn.\n"
        "- Lost, note only (info): the same, while the training learns.\n"
        "- Not lost: an optimizer of the process has all of these weights in float32, beside those of the "
        "model, which it does not have. They are copied into the model after its steps.\n"
        "- Lost in a training that learns, by weights that nobody knows a learning rate of, note only "
        "(info): something else than an optimizer of PyTorch changes them, and may keep them in float32, "
        "too.\n"
        "- Mostly lost (warning, also if the training learns), after 100 steps: in most matrices more than "
        "70 % of these entries stay as they are at two looks in a row, with a learning rate of no less "
        "than 45 % of the highest.\n"
        "- A single matrix or embedding of these types (warning, also if the training learns): half of its "
        "entries or more have a gradient. At five looks or more, and at all of them, more than `frozen` of "
        "the entries that have one stay as they are.\n"
        "- A large parameter in float32 (warning): as many of its entries stay as they are as for a single "
        "matrix. Its root mean square is above 100, and the typical step is less than half of the last bit "
        "of a number of that size, but would change a number of size 1.\n"
        "- The typical step is the learning rate. With plain SGD it is the learning rate times the "
        "gradient, over 1 - momentum.\n"
        "- Averages (warning), of weights of any type, kept in 16 bits: of the entries that were more than "
        "3 % from their weights at the look before, and still are, more than `behind` have not changed, "
        "while others have. This holds at two looks in a row, 25 steps or more apart.",
    .why =
        "bfloat16 has 8 significant bits: a weight of 1 cannot change by less than 0.004. float32 has 24: a "
        "coordinate of five million metres cannot change by less than half a metre. What is rounded away at "
        "every step never adds up.",
    .fix =
        "Keep the weights in float32 and compute in 16 bits under torch.autocast, or use an optimizer with "
        "float32 master weights or stochastic rounding. Of a large parameter learn the difference from a "
        "fixed offset.",
    .healthy =
        "Entries without a gradient, such as embedding rows that are not in the batch; autocast, whose "
        "weights are float32; 16-bit trainings that learn; weights of usual size that stay as they are "
        "because their gradients vanish or the rate is tiny; copies of weights that are made anew now and "
        "then.",
    .cost =
        "A copy of the weights at the first three steps, a few more below 100, and then every 100th; the "
        "weights' size at the first; the loss. Once, at step 25, a search among all objects for averages in "
        "16 bits, among no more than 512 tensors and 512 weights of the same shapes; three looks at the "
        "first 65,536 values of 16 of them.",
    .original = "UnchangedTensor",
    .source = "Micikevicius et al., \"Mixed precision training\", ICLR 2018",
    .severity = model::Severity::kWarning,
    .parameters = {{"share", "share", 0.5, 0.01, 1, "entries with a gradient that do not change"},
                   {"frozen", "share", 0.85, 0.01, 1, "the same, of a single matrix"},
                   {"behind", "share", 0.15, 0.01, 1, "entries of an average that are far and do not change"},
                   {"patience", "steps", 30, 5, 1e9, "steps after which it judges"}},
};

constexpr const char* kKeepInFloat32 =
    "Keep the model in float32 (no model.half() or model.to(torch.bfloat16)) and run the forward pass under "
    "torch.autocast; or use an optimizer with float32 master weights.";

bool is_small(tensor::DType dtype) {
    return dtype == tensor::DType::kBFloat16 || dtype == tensor::DType::kFloat16;
}

class LowPrecisionUpdatesLost final : public Rule {
  public:
    explicit LowPrecisionUpdatesLost(const Parameters& parameters)
        : share_(parameters.at("share")),
          frozen_(parameters.at("frozen")),
          behind_(parameters.at("behind")),
          patience_(static_cast<std::uint64_t>(parameters.at("patience"))) {}

    void on_step(const model::StepView& step, FindingSink& sink) override {
        if (step.mode() != model::Mode::kTrain) return;
        rates_.observe(step);
        loss_.observe(step);
        last_ = step.step();
        judge_averages(step, sink);
        if (loop_fact(step, "masters_of_weights")) have_masters(sink);
        if (has_masters_) return;
        look(step);
        if (looks_ >= 3 && loss_.count() >= patience_) judge(sink);
        if (loss_.count() >= patience_ && !is_firing_warning()) judge_layers(sink);
    }
    void on_end(FindingSink& sink) override {
        const bool is_due = looks_ >= 3 && loss_.count() < patience_ && loss_.count() >= 10;
        if (is_due && !has_masters_) judge(sink);
    }
    [[nodiscard]] std::uint64_t steps_judged() const override {
        return looks_ + large_looks_ + averages_.judged();
    }
    [[nodiscard]] std::string why_not_judged() const override {
        return "no weights in 16 bits were seen, nor averages of them, nor very large weights";
    }

  private:
    // The weights are copies of others, in which the updates add up.
    void have_masters(FindingSink& sink) {
        has_masters_ = true;
        for (const char** firing : {&firing_, &firing_layer_}) {
            if (*firing != nullptr) sink.clear(*firing);
            *firing = nullptr;
        }
    }
    // What changes the weights is not known. It may keep them in float32, where the training learns.
    [[nodiscard]] bool may_have_masters() const { return !rates_.is_known() && loss_.has_learned(); }

    void look(const model::StepView& step) {
        std::map<std::string_view, double, std::less<>> alive;   // entries with a gradient
        std::map<std::string_view, double, std::less<>> slopes;  // their root mean square
        for (const model::TensorSample& sample : step.record->tensors) {
            const model::TensorInfo& info = step.info(sample.tensor);
            if (step.step() == 0 && (info.role == model::Role::kWeight || info.role == model::Role::kBias))
                note_size(info, sample.statistics);
            if (info.role != model::Role::kGradient || sample.statistics.not_finite() > 0) continue;
            alive[place_of(info.name)] =
                static_cast<double>(sample.statistics.count - sample.statistics.zero);
            slopes[place_of(info.name)] = rms_of(sample.statistics);
        }
        std::size_t all = 0, lost = 0, mostly = 0;
        double worst = -1;
        // Of a model whose small numbers are in tables, such as one of factors, those are looked at.
        const bool has_matrices = std::any_of(
            step.record->tensors.begin(), step.record->tensors.end(), [&](const model::TensorSample& each) {
                const model::TensorInfo& info = step.info(each.tensor);
                return info.role == model::Role::kWeightUpdate && is_small(info.dtype) && is_matrix(info);
            });
        // Where the rate itself is near its end, small updates are meant.
        const bool is_at_rate = !rates_.is_known() || rates_.now() > 0.45 * rates_.peak();
        for (const model::TensorSample& sample : step.record->tensors) {
            const model::TensorInfo& info = step.info(sample.tensor);
            if (info.role != model::Role::kWeightUpdate) continue;
            if (!is_small(info.dtype)) {
                const auto slope = slopes.find(place_of(info.name));
                if (slope == slopes.end() || !sizes_.contains(place_of(info.name)) || !is_at_rate) continue;
                ++large_looks_;
                look_at_layer(step, sample, alive, is_too_large(step, info, slope->second));
                continue;
            }
            look_at_layer(step, sample, alive, true);
            if (has_matrices ? !is_matrix(info) : !is_table(info)) continue;
            const auto found = alive.find(place_of(info.name));
            if (found == alive.end() || !(found->second > 0)) continue;
            if (!has_matrices && found->second < kFewestOfTable) continue;
            const auto changed = static_cast<double>(sample.statistics.count - sample.statistics.zero);
            const double share = 1 - std::min(1.0, changed / found->second);
            ++all;
            if (share > share_) ++lost;
            if (share > kMostly) ++mostly;
            if (share > worst) {
                worst = share;
                worst_ = info.name;
                dtype_ = info.dtype == tensor::DType::kBFloat16 ? "bfloat16" : "float16";
            }
        }
        if (all == 0 || (rates_.is_known() && !(rates_.now() > 0))) return;
        ++looks_;
        if (is_at_rate) most_lost_ = 2 * mostly > all ? most_lost_ + 1 : 0;
        if (2 * lost > all) {
            if (lost_looks_++ == 0) first_ = step.step();
            share_now_ = worst;
            places_ = lost;
        }
    }

    static bool is_table(const model::TensorInfo& info) {
        return info.shape.size() == 2 && info.shape[1] > 1 &&
               info.module_type.find("Embedding") != std::string::npos;
    }
    static double rms_of(const model::Statistics& values) {
        return values.finite() == 0 ? 0 : values.l2 / std::sqrt(static_cast<double>(values.finite()));
    }
    void note_size(const model::TensorInfo& info, const model::Statistics& values) {
        const double size = rms_of(values);
        if (info.dtype == tensor::DType::kFloat32 && size > kLargeWeights && std::isfinite(size))
            sizes_[std::string(place_of(info.name))] = size;
    }
    // Whether a step that would change a number of size 1 is less than half of the last bit of these. Where
    // it would change neither, it is the gradient or the rate that is small.
    [[nodiscard]] bool is_too_large(const model::StepView& step, const model::TensorInfo& info,
                                    double slope) const {
        constexpr double kHalfOfLastBit = 0x1p-24;  // of 1 in float32
        const auto size = sizes_.find(place_of(info.name));
        if (size == sizes_.end() || info.dtype != tensor::DType::kFloat32 || !rates_.is_known()) return false;
        double typical = rates_.now();
        if (updates_follow_gradients(*step.meta)) {
            const double momentum = optimizer_setting(*step.meta, "momentum").value_or(0);
            typical *= slope / (1 - std::clamp(momentum, 0.0, 0.99));
        }
        const double half = kHalfOfLastBit * std::exp2(std::floor(std::log2(size->second)));
        return typical > kHalfOfLastBit && typical < half;
    }

    struct Layer {
        std::string name, module;
        double size = 0;  // where that is why; 0: the element type is
        std::uint64_t looks = 0, lost = 0;
        double share = 0;
        model::StepIndex first = 0;
    };

    // `can_be_lost`: its numbers are too coarse for the step.
    void look_at_layer(const model::StepView& step, const model::TensorSample& sample,
                       const std::map<std::string_view, double, std::less<>>& alive, bool can_be_lost) {
        const model::TensorInfo& info = step.info(sample.tensor);
        const auto found = alive.find(place_of(info.name));
        const auto size = sizes_.find(place_of(info.name));
        if ((info.shape.size() < 2 && size == sizes_.end()) || found == alive.end()) return;
        const auto count = static_cast<double>(sample.statistics.count);
        if (found->second < 0.5 * count || (rates_.is_known() && !(rates_.now() > 0))) return;
        Layer& layer = layers_[info.name];
        if (layer.looks++ == 0) {
            layer.name = info.name;
            layer.module = info.module;
            layer.first = step.step();
            if (size != sizes_.end()) layer.size = size->second;
        }
        const auto changed = count - static_cast<double>(sample.statistics.zero);
        layer.share = 1 - std::min(1.0, changed / found->second);
        if (can_be_lost && layer.share > frozen_) ++layer.lost;
    }

    // Averages of weights, and targets that follow by a small factor.
    void judge_averages(const model::StepView& step, FindingSink& sink) {
        const std::optional<LoopFact> fact = loop_fact(step, "averages_lost");
        const std::optional<LoopFact> steps = loop_fact(step, "averages_steps");
        if (!fact) return;
        averages_.add(step, fact->value > behind_);
        if (!averages_.is_enough()) return;
        model::Finding finding = loop_finding("average", model::Severity::kWarning, averages_, *fact);
        finding.message = base::format(
            "An average of the weights that is kept in 16 bits no longer follows them: {:.0f} % of its "
            "entries that are far from the weights did not change {}, most of all those of {}.",
            100 * fact->value,
            steps ? base::format("in {:.0f} steps", steps->value) : "since the look before", fact->place);
        finding.fix =
            "Keep the average in float32. What is added to it at each step, 1 - decay of the difference, is "
            "less than half of the last bit of a number of 16 bits.";
        finding.evidence.push_back({"entries that do not change", fact->value, "limit", behind_});
        sink.fire(std::move(finding));
    }

    [[nodiscard]] bool is_firing_warning() const {
        return firing_ != nullptr && std::string_view(firing_) == "lost";
    }
    // Whatever the others do.
    void judge_layers(FindingSink& sink) {
        const Layer* worst = nullptr;
        std::size_t places = 0;
        for (const auto& [name, layer] : layers_) {
            if (layer.looks < 5 || layer.lost < layer.looks) continue;
            ++places;
            if (worst == nullptr || layer.share > worst->share) worst = &layer;
        }
        const char* key = worst == nullptr ? nullptr : may_have_masters() ? "layer_note" : "layer";
        if (firing_layer_ != nullptr && firing_layer_ != key) sink.clear(firing_layer_);
        firing_layer_ = key;
        if (worst == nullptr) return;
        model::Finding finding;
        finding.key = key;
        if (may_have_masters()) finding.severity = model::Severity::kInfo;
        finding.first_step = worst->first;
        finding.tensor = worst->name;
        finding.layer = worst->module;
        finding.places = places;
        finding.message = base::format(
            "{} hardly moves: {:.0f} % of its entries that had a gradient did not change at any of {} steps "
            "looked at. {}, and the updates are less than half of the last bit.",
            place_in_words(worst->name), 100 * worst->share, worst->looks,
            worst->size > 0
                ? base::format("It is kept in float32, at a size of {}", human_number(worst->size))
                : "It is kept in 16 bits");
        finding.fix = worst->size > 0
                          ? "Keep the large part as a constant and learn the difference from it (centre + "
                            "parameter), or scale the parameter to about unit size, or keep it in float64."
                          : kKeepInFloat32;
        finding.evidence.push_back({"entries that do not change", worst->share, "limit", frozen_});
        finding.plots = {{worst->name, "zero"}};
        sink.fire(std::move(finding));
    }

    void judge(FindingSink& sink) {
        const bool mostly = lost_looks_ >= 3 && 2 * lost_looks_ > looks_;
        const bool is_most = most_lost_ >= 2 && lost_looks_ >= 2 && last_ >= kLate;
        const char* found = is_most && !may_have_masters() ? "lost"
                            : !mostly && !is_most          ? nullptr
                            : loss_.has_learned()          ? "lost_note"
                                                           : "lost";
        if (found != firing_) {
            if (firing_ != nullptr) sink.clear(firing_);
            firing_ = found;
        }
        if (firing_ == nullptr) return;
        model::Finding finding;
        finding.key = firing_;
        finding.severity =
            std::string_view(firing_) == "lost" ? model::Severity::kWarning : model::Severity::kInfo;
        finding.first_step = first_;
        finding.tensor = worst_;
        finding.layer = std::string(place_of(worst_)).substr(0, place_of(worst_).rfind('.'));
        finding.places = places_;
        finding.message = base::format(
            "{:.0f} % of the entries of {} that had a gradient did not change: the weights are {}, and the "
            "updates are less than half of their last bit. So it was at {} of {} steps looked at; the loss "
            "is {}, {} at the start.",
            100 * share_now_, place_in_words(worst_), dtype_, lost_looks_, looks_,
            human_number(loss_.level()), human_number(loss_.start()));
        finding.fix = kKeepInFloat32;
        finding.evidence.push_back({"entries that do not change", share_now_, "limit", share_});
        finding.evidence.push_back({"loss", loss_.level(), "at the start", loss_.start()});
        finding.plots = {{worst_, "zero"}};
        if (!loss_.tensor().empty()) finding.plots.emplace_back(loss_.tensor(), "value");
        sink.fire(std::move(finding));
    }

    static constexpr double kLargeWeights = 100;        // far above what networks are made of
    std::map<std::string, double, std::less<>> sizes_;  // of large ones in float32, at the first step
    std::map<std::string, Layer> layers_;
    bool has_masters_ = false;
    double share_, frozen_, behind_;
    std::uint64_t patience_;
    std::uint64_t looks_ = 0, lost_looks_ = 0, large_looks_ = 0;
    model::StepIndex first_ = 0, last_ = 0;
    std::size_t places_ = 1;
    double share_now_ = 0;
    std::string worst_, dtype_;
    std::uint64_t most_lost_ = 0;  // looks in a row
    const char *firing_ = nullptr, *firing_layer_ = nullptr;
    InARow averages_{2};
    static constexpr double kMostly = 0.7;
    static constexpr double kFewestOfTable = 64;  // entries with a gradient
    static constexpr model::StepIndex kLate = 100;
    LearningRates rates_;
    TrainingLoss loss_;
};

std::vector<model::Requirement> low_precision_updates_lost_needs(const Parameters&) {
    std::vector<model::Requirement> all = loss_requirements(kLowPrecisionUpdatesLost.name);
    model::Requirement updates = update_requirement(kLowPrecisionUpdatesLost.name);
    all.push_back(updates);
    updates.collection = "gradients";
    all.push_back(std::move(updates));
    for (const char* parameters : {"weights", "biases"})
        all.push_back({parameters,
                       model::Mode::kTrain,
                       model::What::kStatistics,
                       {.every = 0, .dense_until = 1},
                       kLowPrecisionUpdatesLost.name});
    all.push_back(rate_requirement(kLowPrecisionUpdatesLost.name));
    all.push_back(loop_requirement(kLowPrecisionUpdatesLost.name));
    return all;
}

}  // namespace

RuleEntry builtin::low_precision_updates_lost() {
    return {&kLowPrecisionUpdatesLost, &low_precision_updates_lost_needs,
            [](const Parameters& p) -> std::unique_ptr<Rule> {
                return std::make_unique<LowPrecisionUpdatesLost>(p);
            }};
}

}  // namespace traindbg::rules

#include "traindbg/diagnose/source_lines.h"

#include <algorithm>
#include <array>
#include <span>
#include <string>

namespace traindbg::diagnose {
namespace {

using model::SourceLine;

constexpr std::size_t kMostLines = 3;

// Stand for lines that depend on the finding: where its layer is made, and its loss is computed.
constexpr std::string_view kLayer = "module/";
constexpr std::string_view kLoss = "loss/";
constexpr std::string_view kEvaluation = "evaluation/";

using Places = std::array<std::string_view, kMostLines>;
struct KindPlaces {
    std::string_view kind;
    Places places;
};

constexpr std::array kTable = {
    // The loop.
    KindPlaces{"detached_loss", {"number_read", "backward", kLoss}},
    KindPlaces{"step_without_gradient", {"step", "backward"}},
    KindPlaces{"optimizer_never_steps", {"backward", "optimizer"}},
    KindPlaces{"gradients_not_cleared", {"step", "backward"}},
    KindPlaces{"loss_sign_flipped", {"backward", kLoss}},
    KindPlaces{"parameters_not_in_optimizer", {"optimizer", kLayer}},
    KindPlaces{"unregistered_parameters", {kLayer, "model"}},
    KindPlaces{"detached_graph", {"slope", kLayer, "model"}},
    KindPlaces{"eval_mode_while_training", {"eval", "step"}},
    KindPlaces{"train_mode_in_validation", {kEvaluation, "evaluation_loop"}},
    KindPlaces{"accumulation_not_averaged", {"backward", kLoss}},
    KindPlaces{"memory_leak", {"backward", kLoss}},
    KindPlaces{"replica_divergence", {"model", "step"}},
    KindPlaces{"duplicate_shards", {"loader", "loop"}},
    // What the loss is given.
    KindPlaces{"loss_shape_broadcast", {kLoss, "model"}},
    KindPlaces{"loss_reduction", {kLoss, "optimizer"}},
    KindPlaces{"softmax_single_unit", {kLoss, "model"}},
    KindPlaces{"redundant_softmax", {kLoss, "model"}},
    KindPlaces{"missing_softmax", {kLoss, "model"}},
    KindPlaces{"redundant_sigmoid", {kLoss, "model"}},
    KindPlaces{"output_activation_range", {kLoss, kLayer, "model"}},
    KindPlaces{"wrong_loss", {kLoss}},
    KindPlaces{"labels_out_of_range", {kLoss, "loader"}},
    KindPlaces{"target_not_normalized", {kLoss, "loader"}},
    // The data.
    KindPlaces{"repeated_batch", {"loop", "loader", kLoss}},
    KindPlaces{"unshuffled_data", {"loader", "loop"}},
    KindPlaces{"targets_in_order", {"loader", "loop"}},
    KindPlaces{"class_imbalance", {kLoss, "loader"}},
    KindPlaces{"single_class_labels", {"loader", "loop", kLoss}},
    KindPlaces{"target_leak", {"loader", "loop"}},
    KindPlaces{"label_noise", {"loader", "loop"}},
    KindPlaces{"duplicated_rows", {"loader", "loop"}},
    KindPlaces{"label_misalignment", {"loader", "loop"}},
    KindPlaces{"nan_input", {"loader", "loop"}},
    KindPlaces{"input_not_normalized", {"loader", "loop"}},
    KindPlaces{"constant_feature", {"loader", "loop"}},
    KindPlaces{"destructive_augmentation", {"loader", "loop"}},
    KindPlaces{"train_val_mismatch", {"evaluation_loader", "evaluation_loop", "loader"}},
    KindPlaces{"train_val_overlap", {"evaluation_loader", "evaluation_loop", "loader"}},
    KindPlaces{"future_leak", {"model", "loop"}},
    // The model.
    KindPlaces{"samples_mixed", {kLayer, "model"}},
    KindPlaces{"attention_mask_wrong", {kLayer, "model"}},
    KindPlaces{"posterior_collapse", {kLoss, "model"}},
    KindPlaces{"no_nonlinearity", {kLayer, "model"}},
    KindPlaces{"poor_weight_init", {kLayer, "model"}},
    KindPlaces{"dead_relu", {kLayer, "model"}},
    KindPlaces{"saturated_activation", {kLayer, "model"}},
    KindPlaces{"dying_relu", {"optimizer", kLayer}},
    // Optimizers and numbers.
    KindPlaces{"learning_rate_too_high", {"optimizer", "schedule"}},
    KindPlaces{"learning_rate_too_low", {"optimizer", "schedule"}},
    KindPlaces{"exploding_gradient", {"optimizer", kLayer}},
    KindPlaces{"vanishing_gradient", {kLayer, "model"}},
    KindPlaces{"schedule_collapsed", {"schedule", "schedule_step", "optimizer"}},
    KindPlaces{"schedule_never_steps", {"schedule", "step"}},
    KindPlaces{"gradient_clipped_to_nothing", {"clip", "optimizer"}},
    KindPlaces{"bad_optimizer_settings", {"optimizer"}},
    KindPlaces{"resume_lost_optimizer_state", {"optimizer"}},
    KindPlaces{"best_weights_not_kept", {"weights_taken"}},
    KindPlaces{"low_precision_updates_lost", {"optimizer", kLayer}},
    KindPlaces{"over_regularized", {kLayer, "optimizer"}},
    KindPlaces{"loss_scale_overflow", {"backward", "step"}},
    KindPlaces{"unstable_log_softmax", {kLayer, kLoss}},
    KindPlaces{"division_by_zero_norm", {kLayer, kLoss}},
    // How it goes.
    KindPlaces{"overfit", {"loader", "optimizer"}},
    KindPlaces{"metric_contradicts_loss", {kLoss}},
    KindPlaces{"stopped_too_early", {"rounds", "loop"}},
};

// Of other kinds, also those of rules of users: where the layer is made, else where the loss is computed.
constexpr Places kOtherKinds = {kLayer, kLoss};

const SourceLine* find(const model::WorkerMeta& meta, std::string_view what) {
    const auto found = std::find_if(meta.sources.begin(), meta.sources.end(),
                                    [&](const SourceLine& source) { return source.what == what; });
    return found == meta.sources.end() ? nullptr : &*found;
}

// Of a layer whose line is not known, the line of what it is in.
const SourceLine* line_of_layer(const model::WorkerMeta& meta, std::string_view layer) {
    while (!layer.empty()) {
        if (const SourceLine* found = find(meta, std::string(kLayer) + std::string(layer))) return found;
        const std::size_t dot = layer.rfind('.');
        layer = dot == std::string_view::npos ? std::string_view() : layer.substr(0, dot);
    }
    return nullptr;
}

// Of the function that the finding names; else of the only one that there is, or of the first.
const SourceLine* line_of_loss(const model::WorkerMeta& meta, std::string_view place,
                               const model::Finding& finding) {
    std::string_view function = finding.tensor;
    if (const std::size_t slash = function.rfind('/'); slash != std::string_view::npos)
        function.remove_prefix(slash + 1);
    function = function.substr(0, function.find_first_of("@#."));
    if (!function.empty())
        if (const SourceLine* found = find(meta, std::string(place) + std::string(function))) return found;
    const auto first = std::find_if(meta.sources.begin(), meta.sources.end(),
                                    [&](const SourceLine& source) { return source.what.starts_with(place); });
    return first == meta.sources.end() ? nullptr : &*first;
}

const SourceLine* line_at(std::string_view place, const model::Finding& finding,
                          const model::WorkerMeta& meta) {
    if (place.empty()) return nullptr;
    if (place == kLayer) return line_of_layer(meta, finding.layer);
    if (place == kLoss || place == kEvaluation) return line_of_loss(meta, place, finding);
    return find(meta, place);
}

}  // namespace

std::vector<SourceLine> source_lines(std::string_view kind, const model::Finding& finding,
                                     const model::WorkerMeta& meta) {
    std::vector<SourceLine> lines;
    if (meta.sources.empty()) return lines;
    const auto known =
        std::find_if(kTable.begin(), kTable.end(), [&](const KindPlaces& row) { return row.kind == kind; });
    for (const std::string_view place : known == kTable.end() ? kOtherKinds : known->places) {
        const SourceLine* line = line_at(place, finding, meta);
        if (line == nullptr) continue;
        // One statement may do two of these.
        const bool is_known = std::any_of(lines.begin(), lines.end(), [&](const SourceLine& other) {
            return other.file == line->file && other.line == line->line;
        });
        if (!is_known) lines.push_back(*line);
        if (known == kTable.end()) break;
    }
    return lines;
}

}  // namespace traindbg::diagnose

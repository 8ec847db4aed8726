#include "traindbg/diagnose/fault_kinds.h"

#include <algorithm>
#include <array>

namespace traindbg::diagnose {
namespace {

constexpr Effect kStalls = Effect::kStalls;
constexpr Effect kBoth = Effect::kStalls | Effect::kBlowsUp;
constexpr Effect kGeneralises = Effect::kGeneralises;
constexpr Effect kNone = Effect::kNone;  // but for what it is itself

constexpr std::array kKinds = {
    // The loop: what was called, and in which order.
    FaultKind{
        "detached_loss", "Loss cut off from the model", 0.97, kStalls,
        "Refuted if loss.grad_fn leads to these parameters, and no function of your own on the way returns "
        "None for them."},
    FaultKind{"step_without_gradient", "Optimizer step without gradients", 0.97, kStalls,
              "Refuted if the parameters have a gradient when the optimizer steps."},
    FaultKind{"optimizer_never_steps", "No optimizer step", 0.97, kStalls,
              "Refuted if the weights are changed in another way."},
    FaultKind{"loss_sign_flipped", "Sign of the loss flipped", 0.96, kBoth,
              "Refuted if the value that backward() is called on falls when the model gets better."},
    FaultKind{"parameters_not_in_optimizer", "Parameters that the optimizer does not have", 0.96, kStalls,
              "Refuted if some optimizer's param_groups hold them."},
    FaultKind{"unregistered_parameters", "Parameters that the model does not have", 0.95, kStalls,
              "Refuted if model.parameters() yields them."},
    FaultKind{"detached_graph", "Layers cut off from the loss", 0.95, kStalls,
              "Refuted if these parameters get a gradient in another branch of the training."},
    FaultKind{"eval_mode_while_training", "Training in evaluation mode", 0.95, kBoth | kGeneralises,
              "Refuted if dropout and batch norm are to be off on purpose."},
    FaultKind{"train_mode_in_validation", "Evaluation in training mode", 0.93, kGeneralises,
              "Refuted if the noise of dropout is wanted in the evaluation."},
    FaultKind{"accumulation_not_averaged", "Accumulated gradients not averaged", 0.9, kBoth,
              "Refuted if the learning rate was chosen for the sum."},
    FaultKind{"memory_leak", "Graphs that are kept", 0.9, kNone, "Refuted if they are let go later on."},
    // The ranks of a training.
    FaultKind{"replica_divergence", "Ranks that drift apart", 0.97, kBoth | kGeneralises,
              "Refuted if the ranks are meant to hold different weights."},
    FaultKind{"duplicate_shards", "The same data to several ranks or workers", 0.96, kGeneralises,
              "Refuted if all of them are meant to go through the same batches."},
    // What the loss is given.
    FaultKind{"loss_shape_broadcast", "Shapes that broadcast in the loss", 0.96, kStalls,
              "Refuted if each prediction is meant to be compared with each label."},
    FaultKind{"softmax_single_unit", "Softmax over a single unit", 0.96, kStalls,
              "Refuted if the output is not constant."},
    FaultKind{"redundant_softmax", "Softmax applied twice", 0.95, kStalls,
              "Refuted if the values given to the loss do not sum to one."},
    FaultKind{"missing_softmax", "Loss without the softmax that it needs", 0.965, kBoth,
              "Refuted if the values given to the loss are log-probabilities."},
    FaultKind{"labels_out_of_range", "Labels out of the loss's range", 0.97, kStalls,
              "Refuted if the labels are within the range that the loss is defined for."},
    FaultKind{"redundant_sigmoid", "Sigmoid applied twice", 0.93, kStalls,
              "Refuted if the model's output is below zero for some inputs."},
    FaultKind{"output_activation_range", "Targets out of the output's reach", 0.92, kStalls,
              "Refuted if the last layer can give values as large as the targets."},
    FaultKind{"wrong_loss", "Loss for another kind of target", 0.85, kStalls,
              "Refuted if the order and the distance of the labels mean something."},
    // The data.
    FaultKind{"repeated_batch", "The same batch again and again", 0.94, kGeneralises,
              "Refuted if the training has this one batch on purpose."},
    FaultKind{"target_leak", "Targets among the inputs", 0.9, kGeneralises,
              "Refuted if the column is known when the model is used."},
    FaultKind{"future_leak", "The model sees what it is to predict", 0.95, kNone,
              "Refuted if the outputs at a position stay the same when later inputs are changed."},
    FaultKind{"train_val_overlap", "Evaluated on training data", 0.93, kNone,
              "Refuted if these rows are evaluated to be compared with others."},
    FaultKind{
        "duplicated_rows", "Copies among the rows of the data", 0.9, kStalls | kGeneralises,
        "Refuted if the rows that are named are there as often in the data's source, with these labels."},
    FaultKind{"label_noise", "Wrong labels in the training data", 0.8, kGeneralises,
              "Refuted if the rows with the largest loss have the right labels."},
    FaultKind{"destructive_augmentation", "Augmentation that destroys the samples", 0.76, kStalls,
              "Refuted if the training loss gets no lower without the augmentation."},
    FaultKind{"input_not_normalized", "Inputs not normalised", 0.88, kBoth,
              "Refuted if the training does not get better with standardised inputs.", true},
    FaultKind{"target_not_normalized", "Targets not normalised", 0.8, kBoth,
              "Refuted if the training does not get better with standardised targets."},
    FaultKind{"train_val_mismatch", "Training and evaluation data differ", 0.85, kGeneralises,
              "Refuted if both go through the same transformation."},
    // The model, its weights, their updates.
    FaultKind{"samples_mixed", "Samples of a batch that see each other", 0.94, kStalls | kGeneralises,
              "Refuted if the output for a sample is the same in any batch."},
    FaultKind{"attention_mask_wrong", "Wrong attention mask", 0.94, kStalls,
              "Refuted if the positions that the mask hides are the padding."},
    FaultKind{"poor_weight_init", "Poor initialisation", 0.86, kBoth,
              "Refuted if the default initialisation does no better.", true},
    FaultKind{"schedule_collapsed", "Learning rate fell to nothing", 0.9, kStalls,
              "Refuted if the training does not go on with the learning rate that it had.", false, true},
    FaultKind{"schedule_never_steps", "Schedule that never steps", 0.75, kNone,
              "Refuted if the learning rate is meant to stay as it is."},
    FaultKind{"low_precision_updates_lost", "Updates lost to rounding", 0.93, kStalls,
              "Refuted if the weights do change from step to step."},
    FaultKind{"loss_scale_overflow", "Steps skipped for overflowing gradients", 0.93, kStalls,
              "Refuted if the scale settles and steps are taken.", false, true},
    FaultKind{"gradient_clipped_to_nothing", "Gradients clipped to nothing", 0.9, kStalls,
              "Refuted if the training is no faster with a limit of 1."},
    FaultKind{"bad_optimizer_settings", "Optimizer settings that cannot work", 0.84, kBoth,
              "Refuted if the training is no better with the optimizer's defaults."},
    FaultKind{"resume_lost_optimizer_state", "Optimizer state lost on resuming", 0.85, kBoth,
              "Refuted if optimizer.load_state_dict() was called.", false, true},
    FaultKind{"best_weights_not_kept", "Best weights not kept", 0.92, kGeneralises,
              "Refuted if the model is left with the weights that were to be kept."},
    FaultKind{"over_regularized", "Regularisation too strong", 0.82, kStalls,
              "Refuted if the training is no better with a tenth of the regularisation."},
    FaultKind{"no_nonlinearity", "Linear layers without an activation between them", 0.85, kStalls,
              "Refuted if they are one factored layer on purpose."},
    FaultKind{"frozen_parameters", "Frozen layers that should be trained", 0.85, kStalls,
              "Refuted if they are frozen on purpose, with weights that come from a training."},
    FaultKind{"embedding_rows_unused", "Embedding rows that are never used", 0.8, kStalls | kGeneralises,
              "Refuted if these ids do not occur in the data."},
    FaultKind{"posterior_collapse", "Collapsed posterior", 0.84, kStalls | kGeneralises,
              "Refuted if what is decoded differs with the sample that was encoded."},
    FaultKind{"gradient_underflow", "Gradients lost below float16's range", 0.9, kStalls,
              "Refuted if as many entries are zero when the same step is computed in float32."},
    FaultKind{"batchnorm_momentum", "Running statistics of batch norm are off", 0.86, kStalls | kGeneralises,
              "Refuted if the evaluation loss is no lower in training mode."},
    FaultKind{"representation_collapse", "Collapsed representation", 0.8, kStalls | kGeneralises,
              "Refuted if the layer's values differ between the samples of a batch."},
    FaultKind{"learning_rate_too_low", "Learning rate too low", 0.7, kStalls,
              "Refuted if ten times the learning rate is no faster."},
    FaultKind{"low_capacity", "Too narrow a layer", 0.66, kStalls,
              "Refuted if the loss gets no lower with a wider layer."},
    FaultKind{"loss_spike", "The loss jumped and did not come back", 0.51, kStalls,
              "Refuted if the data or the task changed at that step.", false, true},
    FaultKind{"stopped_too_early", "Stopped while it was learning", 0.505, kNone,
              "Refuted if the evaluation loss is no lower after twice the steps."},
};

bool is_one_of(std::string_view rule, std::span<const std::string_view> rules) {
    return std::find(rules.begin(), rules.end(), rule) != rules.end();
}

constexpr std::array<std::string_view, 7> kOfStalling = {"loss_not_decreasing",
                                                         "class_imbalance",
                                                         "vanishing_gradient",
                                                         "learning_rate_too_low",
                                                         "constant_output",
                                                         "stopped_too_early",
                                                         "underfit"};
constexpr std::array<std::string_view, 8> kOfBlowingUp = {
    "loss_not_decreasing",    "class_imbalance", "exploding_gradient", "non_finite",
    "learning_rate_too_high", "constant_output", "loss_spike",         "divergence_ahead"};
constexpr std::array<std::string_view, 2> kOfGeneralising = {"overfit", "evaluation_at_chance"};
constexpr std::array<std::string_view, 2> kOfDying = {"dead_relu", "saturated_activation"};

bool has(Effect set, Effect bit) {
    return (static_cast<std::uint8_t>(set) & static_cast<std::uint8_t>(bit)) != 0;
}

}  // namespace

std::span<const FaultKind> fault_kinds() noexcept { return kKinds; }

bool follows(std::string_view rule, std::string_view key, const FaultKind& fault, bool since_start) noexcept {
    if (has(fault.effect, Effect::kStalls) && is_one_of(rule, kOfStalling)) return true;
    if (has(fault.effect, Effect::kBlowsUp) && is_one_of(rule, kOfBlowingUp)) return true;
    // A loss of logarithms has no lower bound where it is given other numbers, and falls without end.
    const bool is_bound_lost = fault.kind == "missing_softmax" || fault.kind == "labels_out_of_range";
    if (is_bound_lost && rule == "loss_sign_flipped" && key == "runaway") return true;
    // Squares of gradients that were clipped away are smaller than any epsilon.
    if (fault.kind == "gradient_clipped_to_nothing" && rule == "bad_optimizer_settings" && key == "eps")
        return true;
    if (has(fault.effect, Effect::kGeneralises) && is_one_of(rule, kOfGeneralising)) return true;
    return fault.effect != Effect::kNone && (!since_start || fault.is_first) && is_one_of(rule, kOfDying);
}

}  // namespace traindbg::diagnose

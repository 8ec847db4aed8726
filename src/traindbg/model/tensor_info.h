// What a tensor is: its name, its role in the training, the module that it belongs to.
//
// Written once per tensor into a run; steps refer to it by `id`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "traindbg/tensor/dtype.h"

namespace traindbg::model {

using TensorId = std::uint32_t;

// What a tensor does in a training. Each role has a collection of the same name (`collection_of`).
// The numbers are written into run files: never change one, only add.
enum class Role : std::uint8_t {
    kOther = 0,
    kWeight = 1,
    kBias = 2,
    kGradient = 3,  // of a weight or bias, as the optimizer is about to use it
    kLoss = 4,
    kInput = 5,            // of the whole model
    kOutput = 6,           // of a module that is not an activation function
    kActivation = 7,       // output of an activation function
    kMetric = 8,           // a number that the user logged
    kClasses = 9,          // labels, predictions and hits per class, counted
    kLoop = 10,            // what the training loop did, e.g. the gradient that was there before backward
    kOptimizerState = 11,  // of a parameter, after the step (a moment, say); a group's learning rate
    kWeightUpdate = 12,    // what the step added to a parameter; how large that is beside the parameter
    kPrediction = 13,      // what a loss function was given to judge
    kLabel = 14,           // what it was given to judge that by
    kAttention = 15,       // how much each position attends to each other one
    kGradientBefore = 16,  // as backward left it: before it was unscaled and clipped
    kBuffer = 17,          // what a module keeps and no optimizer trains, after the step: a running mean, say
    kBlockOutput = 18,  // of a module with others inside, whose outputs are looked at: only where asked for
};
inline constexpr std::uint8_t kRoleCount = 19;

[[nodiscard]] std::string_view to_string(Role role) noexcept;  // "weight"
[[nodiscard]] std::optional<Role> parse_role(std::string_view word) noexcept;
// The built-in collection that tensors of this role are in: "weights", "gradients", "losses", ...
[[nodiscard]] std::string_view collection_of(Role role) noexcept;
// The role whose collection has this name; nothing for a collection of the user's.
[[nodiscard]] std::optional<Role> role_of_collection(std::string_view collection) noexcept;
// Every built-in collection's name, for help and nearest-match errors.
[[nodiscard]] const std::vector<std::string>& builtin_collections();

// Which function an activation is, as far as a rule needs to know.
enum class ActivationKind : std::uint8_t {
    kNone = 0,
    kRelu = 1,     // zero for negative inputs: units can die
    kTanh = 2,     // saturates at -1 and 1
    kSigmoid = 3,  // saturates at 0 and 1
    kSmooth = 4,   // GELU, SiLU, ELU, ...: neither
};
[[nodiscard]] std::string_view to_string(ActivationKind kind) noexcept;
[[nodiscard]] std::optional<ActivationKind> parse_activation_kind(std::string_view word) noexcept;

// Where in a distributed tensor the part of one worker lies.
struct ShardInfo {
    std::vector<std::int64_t> whole_shape;
    std::vector<std::int64_t> offset;  // of the part's first element, for each dimension; empty: not known
    // A word for each dimension of the mesh of workers, joined by commas: "shard(0)" (cut along that
    // dimension), "replicate" (the same everywhere), "partial(sum)" (the whole is the sum of the parts).
    std::string placement;

    // Parts of values that have yet to be reduced: their statistics say nothing of those of the whole.
    [[nodiscard]] bool is_partial() const noexcept { return placement.find("partial") != std::string::npos; }

    friend bool operator==(const ShardInfo&, const ShardInfo&) = default;
};

struct TensorInfo {
    TensorId id = 0;
    std::string name;  // unique in a worker, e.g. "gradient/conv1.weight"
    Role role = Role::kOther;
    ActivationKind activation = ActivationKind::kNone;
    std::string module;       // qualified module or parameter path, e.g. "layers.3.conv1"
    std::string module_type;  // class name, e.g. "Conv2d"
    std::int32_t layer = -1;  // position in the order of the forward pass; -1: not known
    tensor::DType dtype = tensor::DType::kUnknown;
    std::vector<std::int64_t> shape;       // as first seen; of a distributed tensor, this worker's part
    std::vector<std::string> collections;  // beside the role's own: the user's
    std::optional<ShardInfo> shard;        // of a distributed tensor

    friend bool operator==(const TensorInfo&, const TensorInfo&) = default;
};

// Whether one number per step is recorded of it (`ScalarSample`), and no statistics: a loss, a metric, a
// learning rate, how large an update is, a fact about the loop. But losses and metrics, none has an element
// type.
[[nodiscard]] bool is_number(const TensorInfo& info) noexcept;

}  // namespace traindbg::model

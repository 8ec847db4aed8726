// Record a training that is written in C++.
//
//     #include <traindbg/recorder.h>
//
//     traindbg::Recorder recorder = traindbg::Recorder::open("runs/first");
//     for (...) {
//         ... forward and backward ...
//         recorder.scalar("loss", loss);
//         recorder.tensor("fc1.weight", traindbg::Role::kWeight, weights, shape);
//         recorder.tensor("fc1.weight", traindbg::Role::kGradient, gradients, shape);
//         if (recorder.end_step().stop_requested) break;
//         ... update the weights ...
//     }
//     recorder.close();
//
// This writes a run directory that `traindbg check runs/first` judges and `traindbg report runs/first`
// shows. Started as `traindbg run -- ./train`, the same program is watched while it trains, is recorded
// as the rules need it, and is asked to stop when one of them fires.
//
// What it costs: a call for something that is not due this step is a lookup of its name. A tensor that
// is due is read once, at about the speed of memory, inside the call; its values are not copied or kept.
// A thread in the background writes.
//
// What it never does: throw, end the program, wait without a deadline, or change what it is given. When
// something fails (a full disk, no memory) it says so once on standard error, counts what was lost, and
// the training goes on. A Recorder that could not be opened takes all calls and does nothing. In the
// child of a `fork` it does nothing either.
//
// Thread-safety: one thread at a time.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace traindbg {

// What a tensor does in a training. Rules look for tensors by role.
enum class Role : std::uint8_t {
    kWeight,
    kBias,
    kGradient,    // of a weight or bias: give it the name of that
    kInput,       // of the model
    kOutput,      // of a layer, before its activation function
    kActivation,  // of a layer, after a function for which see Activation
    kOther,
    kBuffer,  // what a layer keeps and no optimizer trains: a running mean, say
};

// Which activation function a tensor of role kActivation came out of, if it is one of these.
enum class Activation : std::uint8_t { kOther, kRelu, kTanh, kSigmoid };

enum class Mode : std::uint8_t {
    kTrain,
    kEval,  // validation, between two training steps
};

// What is recorded when nobody asked for anything else, that is, without `traindbg run` and when the run
// directory has no plan.json yet.
struct RecorderOptions {
    // Statistics of tensors: at every n-th training step (0: never) ...
    std::uint64_t every = 10;
    // ... and at each of the first steps, where trainings go wrong most.
    std::uint64_t dense_until = 20;
    // Statistics of tensors given at evaluation steps: at every n-th of those.
    std::uint64_t eval_every = 1;
};

// What the training should do next.
struct NextStep {
    bool anything_due = false;    // tensors will be taken at the step that begins now
    bool stop_requested = false;  // a rule fired and the user asked for a stop: leave the loop
};

class Recorder {
  public:
    // Records into `run_directory`, which is made; or, for a program that was started by `traindbg run`,
    // into the directory of that run. Each process of a training opens its own Recorder on the same
    // directory. Look at `is_open()` and `error()` if you want to know whether it worked.
    [[nodiscard]] static Recorder open(std::string_view run_directory,
                                       const RecorderOptions& options = {}) noexcept;
    // A Recorder that does nothing.
    Recorder() noexcept;
    Recorder(Recorder&& other) noexcept;
    Recorder& operator=(Recorder&& other) noexcept;
    ~Recorder();  // closes

    [[nodiscard]] bool is_open() const noexcept;
    [[nodiscard]] const std::string& error() const noexcept;          // empty if there was none
    [[nodiscard]] const std::string& run_directory() const noexcept;  // where it records

    // Whether tensors of this role are due at the step under way: ask before you compute something only
    // to record it.
    [[nodiscard]] bool needs(Role role, Mode mode = Mode::kTrain) const noexcept;

    // Takes the statistics of `values`, row-major, if they are due. `name` says which tensor it is, as
    // "fc1.weight"; a tensor given twice in a step counts once. Without `shape` it is one-dimensional.
    // A shape that does not fit the number of values is an error: counted, said once, not recorded.
    void tensor(std::string_view name, Role role, std::span<const float> values,
                std::span<const std::int64_t> shape = {}, Mode mode = Mode::kTrain) noexcept;
    void tensor(std::string_view name, Role role, std::span<const double> values,
                std::span<const std::int64_t> shape = {}, Mode mode = Mode::kTrain) noexcept;
    // What an activation function gave, [batch, units, ...]: also counts the units that are dead (ReLU)
    // or saturated (tanh, sigmoid).
    void activation(std::string_view name, Activation function, std::span<const float> values,
                    std::span<const std::int64_t> shape, Mode mode = Mode::kTrain) noexcept;

    // A number. "loss" and "loss/..." are losses, which the rules watch; anything else is a metric.
    void scalar(std::string_view name, double value, Mode mode = Mode::kTrain) noexcept;

    // Ends a training step: call it once per update of the weights.
    NextStep end_step() noexcept;
    // Ends an evaluation.
    void end_eval_step() noexcept;

    // Steps (of training) that were ended.
    [[nodiscard]] std::uint64_t step() const noexcept;
    // What was given but could not be recorded, for want of disk, memory or a fitting shape.
    [[nodiscard]] std::uint64_t lost() const noexcept;

    // Writes out what is left, for at most `patience`, and ends the recording.
    void close(std::chrono::milliseconds patience = std::chrono::seconds(5)) noexcept;

  private:
    class Impl;
    explicit Recorder(std::unique_ptr<Impl> impl) noexcept;
    std::unique_ptr<Impl> impl_;  // null: does nothing
};

}  // namespace traindbg

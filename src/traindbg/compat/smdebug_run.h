// A run in the layout of the SageMaker Debugger client (docs/format/smdebug.md), opened for reading: while it
// is written, after it ended, or after it was cut off.
//
// Opening reads the index files; values are read when they are asked for. Damage never hides what is whole:
// what cannot be read is named in `damage()`, and everything else is there. A reader never writes into the
// run, and opens nothing outside of it.
//
// Where the original's own reader loses something that lies in the files (a value that has a shape entry,
// too; 16-bit, unsigned and complex64 elements; the sign of int8), this one gives it.
//
// Thread-safety: one thread at a time. `refresh` invalidates references. Cost: 16 bytes per tensor and step
// stay in memory, some 2 µs each to read.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "traindbg/base/status.h"
#include "traindbg/format/smdebug_collections.h"
#include "traindbg/model/step.h"
#include "traindbg/read/run.h"
#include "traindbg/storage/file_system.h"
#include "traindbg/tensor/dtype.h"

namespace traindbg::compat {

// What was saved under one name at one step.
struct SmdebugValue {
    tensor::DType dtype = tensor::DType::kUnknown;  // kUnknown: text
    std::vector<std::int64_t> shape;
    std::vector<std::byte> bytes;    // row-major, little-endian
    std::vector<std::string> texts;  // of text
    double wall_seconds = 0;         // since 1970

    // The element of a number with exactly one.
    [[nodiscard]] std::optional<double> number() const;
};

// A step of the whole run. The original counts steps over all modes, and in each mode.
struct SmdebugStep {
    std::uint64_t global_step = 0;
    model::Mode mode = model::Mode::kGlobal;
    model::StepIndex mode_step = 0;

    friend bool operator==(const SmdebugStep&, const SmdebugStep&) = default;
};

// What there is of one tensor at one step of one worker.
struct SmdebugSample {
    std::string_view name;
    bool has_value = false;
    const std::vector<std::int64_t>* shape = nullptr;  // where its shape was saved on its own
    std::vector<std::string_view> reductions;          // "mean", "abs_mean", "l1"
};

class SmdebugRun {
  public:
    // Whether `path` is a directory of this layout (and not a run of traindbg).
    [[nodiscard]] static bool is_one(const std::string& path, storage::FileSystem& files);
    // kNotFound with a hint when it is not one.
    [[nodiscard]] static base::Result<std::unique_ptr<SmdebugRun>> open(
        const std::string& path, storage::FileSystem& files = storage::posix_file_system());
    SmdebugRun(const SmdebugRun&) = delete;
    SmdebugRun& operator=(const SmdebugRun&) = delete;
    ~SmdebugRun();

    [[nodiscard]] const std::string& path() const noexcept;
    // The end marker is there: no more data will come.
    [[nodiscard]] bool is_complete() const noexcept;
    [[nodiscard]] const std::vector<read::Damage>& damage() const noexcept;
    // Reads what came since. True when there is anything new.
    [[nodiscard]] base::Result<bool> refresh();

    // Sorted by name. Those that have a collections file only count, too.
    [[nodiscard]] std::vector<std::string> workers() const;
    // How many there should be.
    [[nodiscard]] std::uint64_t expected_workers() const noexcept;
    // All tensors of any worker, sorted; a reduction counts as what it was taken of.
    [[nodiscard]] std::vector<std::string> tensor_names() const;
    // Modes of which anything was saved, without kGlobal.
    [[nodiscard]] std::vector<model::Mode> modes() const;
    // Steps of any worker, in order.
    [[nodiscard]] std::vector<SmdebugStep> steps() const;
    // Those of one worker from `first` on, at most `most`.
    [[nodiscard]] std::vector<SmdebugStep> steps_of(const std::string& worker, std::uint64_t first = 0,
                                                    std::size_t most = SIZE_MAX) const;
    [[nodiscard]] const std::vector<format::SmdebugCollection>& collections() const noexcept;
    // The tensors of `collection`: those that it names, and those that its patterns match.
    [[nodiscard]] std::vector<std::string> names_of(const format::SmdebugCollection& collection) const;

    // What one worker saved at one step, in the order in which it was written. Empty: nothing.
    [[nodiscard]] std::vector<SmdebugSample> samples(const std::string& worker,
                                                     std::uint64_t global_step) const;
    // The global steps at which a worker saved anything of this tensor.
    [[nodiscard]] std::vector<std::uint64_t> steps_with(const std::string& worker,
                                                        std::string_view name) const;
    // kNotFound: that was not saved; kDataLoss: its bytes are damaged or missing, which `damage()` tells from
    // then on, too.
    [[nodiscard]] base::Result<SmdebugValue> value(const std::string& worker, std::uint64_t global_step,
                                                   std::string_view name);
    [[nodiscard]] base::Result<SmdebugValue> reduction(const std::string& worker, std::uint64_t global_step,
                                                       std::string_view name, std::string_view reduction);
    // The shape that was saved on its own, or that of the value.
    [[nodiscard]] base::Result<std::vector<std::int64_t>> shape(const std::string& worker,
                                                                std::uint64_t global_step,
                                                                std::string_view name);

  private:
    class Impl;
    explicit SmdebugRun(std::unique_ptr<Impl> impl) noexcept;
    std::unique_ptr<Impl> impl_;
};

}  // namespace traindbg::compat

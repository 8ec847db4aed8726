// A run, opened for reading: while it is written, after it ended, or after it was cut off.
//
// Opening reads the footers of sealed parts and the frames of logs; values are decoded when they are
// asked for, and of a sealed part only the columns that are. Damage never hides what is whole: bad bytes are
// skipped, named in `damage()`, and everything else is still there. A reader never writes into the run.
//
// Thread-safety: one thread at a time. `refresh` invalidates references into `tensors()`.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "traindbg/base/status.h"
#include "traindbg/format/removals.h"
#include "traindbg/model/run_meta.h"
#include "traindbg/model/step_source.h"
#include "traindbg/read/worker_gaps.h"
#include "traindbg/storage/file_system.h"

namespace traindbg::read {

namespace internal {
struct Statistic;
}

struct Damage {
    std::string file;
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
    std::string what;   // "checksum does not match", "the file ends inside a frame"
    bool tail = false;  // at the end of the file: what a crash leaves behind
    // No damage: whole, but written by a newer version, so that this one cannot read it.
    bool newer = false;
};

// Something of a run of which nobody can tell whether it is as it was written.
struct Unverified {
    std::string file;
    std::string what;  // "has no checksum"
};

struct RunEvent {
    model::WorkerId worker = 0;
    std::int64_t wall_nanos = 0;
    std::string kind;
    std::string json;
};

struct RunTotals {
    std::uint64_t steps = 0;          // step records of all modes
    std::uint64_t bytes = 0;          // of all log and raw files
    std::uint64_t step_nanos = 0;     // time of all recorded TRAIN steps
    std::uint64_t capture_nanos = 0;  // of these, spent in traindbg
    std::uint64_t steps_dropped = 0;
    std::uint64_t raw_tensors_dropped = 0;
    std::uint64_t samples_skipped = 0;  // of steps read so far: their tensor's description was lost
};

// One value of a series: what `get` prints.
struct SeriesPoint {
    model::Mode mode = model::Mode::kTrain;
    model::StepIndex step = 0;
    double value = 0;
};

// What tells a tensor apart, at one step.
struct DigestPoint {
    model::Mode mode = model::Mode::kTrain;
    model::StepIndex step = 0;
    model::Digest digest;
};

// A whole tensor over steps: the same type and shape at all of them.
struct RawSeries {
    tensor::DType dtype = tensor::DType::kUnknown;
    std::vector<std::int64_t> shape;
    std::vector<model::StepIndex> steps;
    std::vector<std::byte> bytes;  // one tensor after the other, row-major
};

// A whole tensor where it lies, not copied.
struct MappedTensor {
    tensor::DType dtype = tensor::DType::kUnknown;
    std::vector<std::int64_t> shape;
    std::unique_ptr<storage::Mapping> mapping;  // row-major; stays valid when the run is closed
};

class Run {
  public:
    // `path` is a run directory. kNotFound with a hint when it is not one.
    [[nodiscard]] static base::Result<std::unique_ptr<Run>> open(
        const std::string& path, storage::FileSystem& files = storage::posix_file_system());
    Run(const Run&) = delete;
    Run& operator=(const Run&) = delete;
    ~Run();

    [[nodiscard]] const std::string& path() const noexcept;
    // The file system that it was opened with.
    [[nodiscard]] storage::FileSystem& files() const noexcept;
    [[nodiscard]] const model::RunMeta& meta() const noexcept;
    [[nodiscard]] std::optional<model::RunEnd> end() const;
    // True when every worker wrote its end record: no more data will come.
    [[nodiscard]] bool is_complete() const noexcept;
    // What could not be read so far, and what is missing. Pages of sealed parts are looked at when they are
    // needed: who has read values looks here again; `verify` looks at all. Valid until the next call.
    [[nodiscard]] const std::vector<Damage>& damage() const;
    [[nodiscard]] const std::vector<RunEvent>& events() const noexcept;
    [[nodiscard]] RunTotals totals() const noexcept;

    // What was removed on purpose to save space, of all workers; nothing: all that was recorded is there.
    [[nodiscard]] std::optional<format::Removals> removals() const;

    [[nodiscard]] std::vector<model::WorkerId> workers() const;
    [[nodiscard]] const model::WorkerMeta& worker_meta(model::WorkerId worker) const;
    [[nodiscard]] const model::TensorTable& tensors(model::WorkerId worker) const;
    // All names, in id order over all workers, each once. Filtering by a pattern is the caller's.
    [[nodiscard]] std::vector<std::string> tensor_names() const;
    [[nodiscard]] std::vector<model::StepIndex> steps(model::Mode mode) const;

    // Reads what was appended since. True when there is anything new.
    [[nodiscard]] base::Result<bool> refresh();
    // The same, waiting up to `patience` for something new: woken by the file system, not by a clock.
    // Where that is not to be had, looks every 20 ms. False: nothing came in time.
    [[nodiscard]] base::Result<bool> wait(std::chrono::nanoseconds patience);
    // After a `wait`: becomes readable when there may be something new, for poll(); -1: look now and then.
    [[nodiscard]] int wake_descriptor() const noexcept;

    // Calls `visit` for every step of every worker, worker by worker, in recorded order, until it
    // returns false. `with_raw` also loads whole tensors.
    [[nodiscard]] base::Status for_each_step(const std::function<bool(const model::StepView&)>& visit,
                                             bool with_raw = false);
    // One step; nothing when it was not recorded.
    [[nodiscard]] base::Result<std::optional<model::StepRecord>> step(model::WorkerId worker,
                                                                      model::Mode mode, model::StepIndex step,
                                                                      bool with_raw = false);
    // One statistic ("value" for losses and metrics; "min", "max", "mean", "std", "l1", "l2", "count",
    // "nan", "inf", "zero", "units", "inactive_units", "low", "high") of one tensor over its steps. Four
    // follow from what is recorded when they are asked for, and are of the finite elements as those are:
    // "variance" (std²), "sum", "mean_abs" (l1 by the number of elements), "rms" (l2 by the root of it).
    // "product" is there where digests were recorded.
    // kNotFound names the nearest tensor; kInvalidArgument the statistics there are.
    [[nodiscard]] base::Result<std::vector<SeriesPoint>> series(model::WorkerId worker,
                                                                const std::string& tensor,
                                                                std::string_view statistic);
    // The digests of one tensor over the steps at which they were recorded. Errors as above.
    [[nodiscard]] base::Result<std::vector<DigestPoint>> digests(model::WorkerId worker,
                                                                 const std::string& tensor);
    // The steps at which the whole tensor was kept, as recorded.
    [[nodiscard]] base::Result<std::vector<model::StepIndex>> raw_steps(model::WorkerId worker,
                                                                        const std::string& tensor,
                                                                        model::Mode mode);
    // All of them at once. kInvalidArgument when its shape or type changes on the way.
    [[nodiscard]] base::Result<RawSeries> raw_series(model::WorkerId worker, const std::string& tensor,
                                                     model::Mode mode);
    // One of them, verified, without a copy; nothing when it was not kept at that step.
    [[nodiscard]] base::Result<std::optional<MappedTensor>> map_raw(model::WorkerId worker, model::Mode mode,
                                                                    model::StepIndex step,
                                                                    const std::string& tensor);
    // Workers that the others expect (their WORLD_SIZE) and that have recorded nothing.
    [[nodiscard]] std::vector<model::WorkerId> missing_workers() const;
    // These, and the workers that stopped while others went on. While a run is recorded, one that has not
    // closed its record may only be slow: it is named once one that got farther has closed its own, or the
    // run has an END.json. One that has closed its record is named where WORLD_SIZE says that all train
    // together, and no rule stopped them.
    [[nodiscard]] WorkerGaps worker_gaps() const;
    // Workers without an end record: they go on, or were cut off, or their last part is gone. Their last
    // steps may be missing.
    [[nodiscard]] std::vector<model::WorkerId> unclosed_workers() const;
    // Reads every byte of the record: parts, whole tensors with what lies between them, and the JSON files
    // (docs/format/native.md says what belongs to it). `damage` holds all there is afterwards, `unverified`
    // what has no checksum. Neither knows of files at the end of what a worker recorded (see
    // `unclosed_workers`), nor of workers of whom nothing is there (see `missing_workers`).
    [[nodiscard]] base::Status verify();
    // What the last `verify` found and could not judge.
    [[nodiscard]] const std::vector<Unverified>& unverified() const noexcept;
    [[nodiscard]] static const std::vector<std::string>& statistic_names();
    // The one number of `sample` that `statistic` names.
    [[nodiscard]] static std::optional<double> statistic_of(const model::TensorSample& sample,
                                                            std::string_view statistic);

    class Impl;  // shared with RunTail

  private:
    explicit Run(std::unique_ptr<Impl> impl) noexcept;
    [[nodiscard]] base::Result<std::vector<SeriesPoint>> derived_series(model::WorkerId worker,
                                                                        const std::string& tensor,
                                                                        const internal::Statistic& statistic);
    std::unique_ptr<Impl> impl_;
};

// Follows a run: gives the steps of all workers as they are committed and then those to come.
// Woken by the file system (inotify), not by a clock; where that is not to be had it looks every
// 20 ms. `path` must exist; its workers may come later. The source is ended once every worker has
// ended and `finish_when_idle` was called (the writer may have died without an end record).
// kUnavailable: some of it cannot be read just now; the next call goes on where this one left off.
class RunTail : public model::StepSource {
  public:
    // `with_raw`: steps hold whole tensors, too.
    [[nodiscard]] static base::Result<std::unique_ptr<RunTail>> open(
        const std::string& path, storage::FileSystem& files = storage::posix_file_system(),
        bool with_raw = false);
    ~RunTail() override;

    [[nodiscard]] base::Result<std::optional<model::StepView>> next(
        std::chrono::nanoseconds patience) override;
    [[nodiscard]] bool ended() const override;
    // What could not be read so far. Valid until the next call.
    [[nodiscard]] const std::vector<Damage>& damage() const;
    // As `Run::worker_gaps`, of what was seen so far.
    [[nodiscard]] WorkerGaps worker_gaps() const;
    // Nobody writes any more: ended() becomes true once all that is there was given.
    void finish_when_idle() noexcept;
    // A descriptor that becomes readable when there may be something new, for poll(); -1 if none.
    [[nodiscard]] int wake_descriptor() const noexcept;

  private:
    class Impl;
    explicit RunTail(std::unique_ptr<Impl> impl) noexcept;
    std::unique_ptr<Impl> impl_;
};

}  // namespace traindbg::read

// The names and index files of a run directory in the layout of the SageMaker Debugger client
// (docs/format/smdebug.md):
//
//   events/000000000003/000000000003_worker_0.tfevents   the tensors of one step of one worker
//   index/000000000/000000000003_worker_0.json           where in it each tensor lies
//   collections/000000000/worker_0_collections.json      smdebug_collections.h
//   training_job_end.ts                                  empty: the training has ended
//
// The step in file names counts over all modes. Bytes of an index come from anywhere: every number is
// checked, and memory is bounded by the text. Errors: kDataLoss says what is wrong. Thread-safety: free
// functions and plain values. Cost: an index entry takes some 0.5 µs to read.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "traindbg/base/status.h"
#include "traindbg/model/step.h"

namespace traindbg::format {

inline constexpr std::string_view kSmdebugEndMarker = "training_job_end.ts";
inline constexpr std::string_view kSmdebugIndexDirectory = "index";
inline constexpr std::string_view kSmdebugCollectionsDirectory = "collections/000000000";
inline constexpr std::string_view kSmdebugCollectionsSuffix = "_collections.json";
// What is still being written carries this suffix.
inline constexpr std::string_view kSmdebugTemporarySuffix = ".tmp";

// One tensor in an event file: a whole record.
struct SmdebugTensorEntry {
    std::string tensor;
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;

    friend bool operator==(const SmdebugTensorEntry&, const SmdebugTensorEntry&) = default;
};

struct SmdebugShapeEntry {
    std::string tensor;
    std::string original_name;  // the framework's, where it differs from `tensor`
    std::vector<std::int64_t> shape;

    friend bool operator==(const SmdebugShapeEntry&, const SmdebugShapeEntry&) = default;
};

// One step of one worker.
struct SmdebugIndex {
    model::Mode mode = model::Mode::kGlobal;
    model::StepIndex mode_step = 0;
    std::string event_file;  // relative to the run; empty where only shapes were saved
    std::vector<SmdebugTensorEntry> tensors;
    std::vector<SmdebugShapeEntry> shapes;

    friend bool operator==(const SmdebugIndex&, const SmdebugIndex&) = default;
};

[[nodiscard]] base::Result<SmdebugIndex> decode_smdebug_index(std::string_view text);
// To the byte as the original writes it.
[[nodiscard]] std::string encode_smdebug_index(const SmdebugIndex& index);

// "TRAIN", "EVAL", "PREDICT", "GLOBAL".
[[nodiscard]] std::string_view smdebug_mode_name(model::Mode mode) noexcept;
[[nodiscard]] std::optional<model::Mode> parse_smdebug_mode(std::string_view name) noexcept;

// ---- file names

// A worker's name in file names: "worker_0" as it is; "/job:worker/device:GPU:0" with `/` as `_`, `:` as `-`.
[[nodiscard]] std::string smdebug_worker_in_file(std::string_view worker);
[[nodiscard]] std::string smdebug_worker_of_file(std::string_view text);

[[nodiscard]] std::string smdebug_event_file(std::uint64_t global_step, std::string_view worker);
[[nodiscard]] std::string smdebug_index_file(std::uint64_t global_step, std::string_view worker);
[[nodiscard]] std::string smdebug_collections_file(std::string_view worker);

struct SmdebugIndexName {
    std::uint64_t global_step = 0;
    std::string worker;
};
// Of "000000000003_worker_0.json"; nothing for any other name, those of unfinished files among them.
[[nodiscard]] std::optional<SmdebugIndexName> parse_smdebug_index_name(std::string_view name);
// The worker of "worker_0_collections.json"; nothing for any other name.
[[nodiscard]] std::optional<std::string> parse_smdebug_collections_name(std::string_view name);

// ---- reductions, which are tensors with names of their own

struct SmdebugReduction {
    std::string_view reduction;  // "mean", "abs_mean", "l1"
    std::string_view tensor;     // what it was taken of
};
// Nothing where `name` is not that of a reduction. Borrows `name`.
[[nodiscard]] std::optional<SmdebugReduction> parse_smdebug_reduction(std::string_view name) noexcept;
[[nodiscard]] std::string smdebug_reduction_name(std::string_view reduction, std::string_view tensor);

}  // namespace traindbg::format

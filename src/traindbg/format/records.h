// The payloads of frames: records to bytes and back. docs/format/native.md describes each to the byte.
//
// Evolution: a decoder ignores bytes behind the fields that it knows, sections that it does not know,
// and words that a newer version added to an enumeration (they become "other"). So a newer minor
// version is readable by an older program.
//
// Decoders are pure functions over bytes that nobody vouches for: every length is checked before it
// is used and before memory is taken for it, and the answer is a value or kDataLoss.
//
// Thread-safety: free functions. Cost: one pass; a step of 1000 tensors takes 10 to 40 µs, by where it lies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "traindbg/base/bytes.h"
#include "traindbg/base/status.h"
#include "traindbg/model/run_meta.h"
#include "traindbg/model/step_record.h"
#include "traindbg/model/step_source.h"
#include "traindbg/model/tensor_info.h"

namespace traindbg::format {

// Larger tables and class counts than these are refused by both sides: they bound what a reader
// allocates for a small file.
inline constexpr std::uint32_t kMostTensors = 1U << 20;
inline constexpr std::uint32_t kMostClasses = 1U << 20;       // of all class samples of a step together
inline constexpr std::uint32_t kMostStepChannels = 1U << 19;  // the same of all channel samples
inline constexpr std::size_t kMostRank = 64;

// Elements of a tensor of this shape; 1 for no dimension, 0 where one is negative or it is 2^64 - 1 or more.
[[nodiscard]] std::uint64_t element_count(const std::vector<std::int64_t>& shape) noexcept;
// `id` was described in the log that `table` was read from (after damage, ids may be missing).
[[nodiscard]] inline bool is_known(const model::TensorTable& table, model::TensorId id) noexcept {
    return id < table.size() && !table[id].name.empty();
}

// The element count of each of a table's tensors, by id; kNotDescribed where there is no description. Who
// encodes or decodes many steps keeps this beside the table: of the table itself a step needs little else,
// and 8 bytes a tensor stay in the cache.
inline constexpr std::uint64_t kNotDescribed = UINT64_MAX;
[[nodiscard]] std::vector<std::uint64_t> element_counts(const model::TensorTable& table);

// SCHEMA: tensors that steps from here on may refer to.
void encode_schema(base::ByteWriter& out, const std::vector<model::TensorInfo>& tensors);
// Adds what is new to `table`; ids that were never described become entries without a name.
[[nodiscard]] base::Status decode_schema(base::ByteSpan payload, model::TensorTable& table);

// WORKER: the worker about itself, as JSON.
void encode_worker(base::ByteWriter& out, const model::WorkerMeta& meta);
[[nodiscard]] base::Result<model::WorkerMeta> decode_worker(base::ByteSpan payload);

// Where a whole tensor lies: in one piece, row-major, in a blob of the same worker.
struct RawPlace {
    model::TensorId tensor = 0;
    tensor::DType dtype = tensor::DType::kUnknown;
    std::vector<std::int64_t> shape;
    std::uint32_t blob = 0;
    std::uint64_t offset = 0;  // a multiple of kBlobAlignment
    std::uint64_t bytes = 0;
    std::uint32_t checksum = 0;  // crc32c, see checksum_seed

    friend bool operator==(const RawPlace&, const RawPlace&) = default;
};

// What stands at the beginning of a STEP, enough for an index.
struct StepPrefix {
    model::Mode mode = model::Mode::kTrain;
    model::StepIndex step = 0;
    std::uint64_t sequence = 0;
    std::int64_t wall_nanos = 0;
    std::int64_t monotonic_nanos = 0;
    std::uint64_t step_nanos = 0;
    std::uint64_t capture_nanos = 0;
    std::uint64_t raw_tensors = 0;
};

// STEP: everything of `record` but its raw tensors, which were written before to `raw`. Moments are
// stored as float32: a finite value stays finite, one that is not zero stays so. Class samples beyond
// kMostClasses and channel samples beyond kMostStepChannels are left out; the number of those is returned.
// `counts`: element_counts(table), where the caller keeps them.
std::size_t encode_step(base::ByteWriter& out, const model::StepRecord& record,
                        const model::TensorTable& table, std::span<const RawPlace> raw,
                        std::span<const std::uint64_t> counts = {});
[[nodiscard]] base::Result<StepPrefix> decode_step_prefix(base::ByteSpan payload);
// `record` is overwritten; its buffers are used again. Samples of tensors that `table` does not know
// are left out; their number is returned. `raw`: where the whole tensors lie, for who wants to know.
// `counts`: as above.
[[nodiscard]] base::Result<std::uint64_t> decode_step(base::ByteSpan payload, const model::TensorTable& table,
                                                      model::StepRecord& record,
                                                      std::vector<RawPlace>* raw = nullptr,
                                                      std::span<const std::uint64_t> counts = {});

// EVENT: something worth knowing that is no measurement.
struct EventRecord {
    std::int64_t wall_nanos = 0;
    std::string kind;
    std::string json;  // one JSON object

    friend bool operator==(const EventRecord&, const EventRecord&) = default;
};
void encode_event(base::ByteWriter& out, const EventRecord& event);
[[nodiscard]] base::Result<EventRecord> decode_event(base::ByteSpan payload);

// DROPPED (so far) and END (in all): what was written and what was lost on the way.
struct TotalsRecord {
    std::int64_t wall_nanos = 0;
    std::uint64_t steps_written = 0;
    std::uint64_t steps_dropped = 0;
    std::uint64_t raw_tensors_dropped = 0;

    friend bool operator==(const TotalsRecord&, const TotalsRecord&) = default;
};
void encode_totals(base::ByteWriter& out, const TotalsRecord& totals);
[[nodiscard]] base::Result<TotalsRecord> decode_totals(base::ByteSpan payload);

}  // namespace traindbg::format

// The tables of a run, pulled batch by batch.
//
// What is in the run when the reader comes to it is given, in the order in which it was recorded; a run
// that grows does not keep a reader from ending. Damage is skipped, as everywhere in reading, and told.
//
// Errors: opening fails with kNotFound for no run and kInvalidArgument for an unknown table, statistic or
// collection, naming the nearest. Thread-safety: one thread at a time. Memory: one batch, one step, and the
// names of the tensors.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "traindbg/base/status.h"
#include "traindbg/read/run.h"
#include "traindbg/storage/file_system.h"
#include "traindbg/tables/selection.h"
#include "traindbg/tables/table.h"

namespace traindbg::tables {

inline constexpr std::size_t kBatchRows = std::size_t{64} << 10;

enum class TableKind : std::uint8_t {
    kScalars,
    kStatistics,
    kHistograms,
    kClasses,
    kSteps,
    kTensors,
    kEvents,
    kFindings,
    kChannels,
    kDigests,
};
struct TableInfo {
    TableKind kind;
    std::string_view name;
    std::string_view summary;
};
[[nodiscard]] std::span<const TableInfo> all_tables() noexcept;
// kInvalidArgument names the nearest table.
[[nodiscard]] base::Result<TableKind> parse_table(std::string_view name);

class TableReader {
  public:
    // `batch_rows`: at most so many rows in a batch; at least 1.
    [[nodiscard]] static base::Result<std::unique_ptr<TableReader>> open(
        const std::string& run, TableKind kind, Selection selection,
        storage::FileSystem& files = storage::posix_file_system(), std::size_t batch_rows = kBatchRows);
    TableReader() = default;
    TableReader(const TableReader&) = delete;
    TableReader& operator=(const TableReader&) = delete;
    virtual ~TableReader() = default;

    [[nodiscard]] virtual const std::vector<Field>& fields() const noexcept = 0;
    // The next rows, never an empty batch; nothing at the end, and from then on.
    [[nodiscard]] virtual base::Result<std::optional<Batch>> next() = 0;
    // What could not be read so far, of all that the reader looked at; complete at the end. Valid until the
    // next call.
    [[nodiscard]] virtual const std::vector<read::Damage>& damage() const = 0;
    // Steps looked at so far, for a progress line; 0 for tables that are not about steps.
    [[nodiscard]] virtual std::uint64_t steps_read() const noexcept = 0;
};

}  // namespace traindbg::tables

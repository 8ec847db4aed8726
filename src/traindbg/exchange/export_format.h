// The formats that a run can be exported in: one row each.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "traindbg/base/status.h"
#include "traindbg/read/run.h"
#include "traindbg/storage/file_system.h"
#include "traindbg/tables/selection.h"

namespace traindbg::exchange {

// Beside the tables of `tables::all_tables`: whole tensors.
inline constexpr std::string_view kWholeTensors = "raw";

struct ExportResult {
    std::uint64_t items = 0;  // rows, arrays or events
    std::uint64_t bytes = 0;
    std::uint64_t files = 0;
    std::vector<std::string> notes{};    // what was left out or changed, for people
    std::vector<read::Damage> damage{};  // what could not be read, each place once

    void add_damage(const std::vector<read::Damage>& places);
};

struct ExportRequest {
    std::string run;                    // directory
    std::string to;                     // "-": standard output, where the format can
    std::vector<std::string> tables{};  // empty: those that the format begins with
    tables::Selection selection{};
    bool overwrite = false;
    storage::FileSystem* files = &storage::posix_file_system();
    // Steps done and steps in all, now and then.
    std::function<void(std::uint64_t done, std::uint64_t total)> progress{};
    // Lets Python write a Parquet file of the table; where there is no Python, none.
    std::function<base::Result<ExportResult>(const ExportRequest&)> parquet{};

    void tell(std::uint64_t done, std::uint64_t total) const {
        if (progress) progress(done, total);
    }
};

struct ExportFormat {
    std::string_view name;
    std::string_view summary;
    std::string_view items;  // what ExportResult::items counts
    bool to_stdout = false;
    bool one_table = false;           // at most one --table
    std::vector<std::string> tables;  // that it can hold
    std::size_t usual = 1;            // so many of them, from the first on, when none is named
    base::Result<ExportResult> (*write)(const ExportRequest& request) = nullptr;
};

[[nodiscard]] std::span<const ExportFormat> all_formats();

// Checks the request against the row of the format of that name, fills in its tables, and writes.
// kInvalidArgument names the nearest format or table; kAlreadyExists says how to overwrite.
[[nodiscard]] base::Result<ExportResult> export_run(std::string_view name, ExportRequest request);

// The rows' functions.
[[nodiscard]] base::Result<ExportResult> export_csv(const ExportRequest& request);
[[nodiscard]] base::Result<ExportResult> export_json_lines(const ExportRequest& request);
[[nodiscard]] base::Result<ExportResult> export_npz(const ExportRequest& request);
[[nodiscard]] base::Result<ExportResult> export_safetensors(const ExportRequest& request);
[[nodiscard]] base::Result<ExportResult> export_tensorboard(const ExportRequest& request);
[[nodiscard]] base::Result<ExportResult> export_smdebug(const ExportRequest& request);

}  // namespace traindbg::exchange

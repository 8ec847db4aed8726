#include "traindbg/exchange/export_format.h"

#include <algorithm>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/tables/table_reader.h"

namespace traindbg::exchange {
namespace {

using base::Code;
using base::Result;
using base::Status;

Result<ExportResult> export_parquet(const ExportRequest& request) {
    if (!request.parquet)
        return Status(Code::kUnsupported, "--format parquet: needs Python with traindbg and pyarrow");
    return request.parquet(request);
}

// The usual one first.
std::vector<std::string> all_tables() {
    std::vector<std::string> names;
    for (const tables::TableInfo& table : tables::all_tables()) names.emplace_back(table.name);
    return names;
}

std::vector<ExportFormat> make_formats() {
    return {
        {.name = "csv",
         .summary = "comma-separated values (RFC 4180), one table",
         .items = "rows",
         .to_stdout = true,
         .one_table = true,
         .tables = all_tables(),
         .write = &export_csv},
        {.name = "jsonl",
         .summary = "JSON lines, one table",
         .items = "rows",
         .to_stdout = true,
         .one_table = true,
         .tables = all_tables(),
         .write = &export_json_lines},
        {.name = "parquet",
         .summary = "Apache Parquet, one table; needs pyarrow",
         .items = "rows",
         .one_table = true,
         .tables = all_tables(),
         .write = &export_parquet},
        {.name = "npz",
         .summary = "NumPy arrays: whole tensors, or series of numbers",
         .items = "arrays",
         .tables = {std::string(kWholeTensors), "scalars", "statistics"},
         .write = &export_npz},
        {.name = "safetensors",
         .summary = "whole tensors",
         .items = "tensors",
         .tables = {std::string(kWholeTensors)},
         .write = &export_safetensors},
        {.name = "tensorboard",
         .summary = "a directory of event files",
         .items = "values",
         .tables = {"scalars", "statistics", "histograms"},
         .usual = 3,
         .write = &export_tensorboard},
        {.name = "smdebug",
         .summary = "a directory that the SageMaker Debugger client opens",
         .items = "tensors",
         .tables = {"scalars", "statistics", std::string(kWholeTensors)},
         .usual = 3,
         .write = &export_smdebug},
    };
}

}  // namespace

void ExportResult::add_damage(const std::vector<read::Damage>& places) {
    for (const read::Damage& place : places)
        if (std::none_of(damage.begin(), damage.end(), [&](const read::Damage& known) {
                return known.file == place.file && known.offset == place.offset && known.what == place.what;
            }))
            damage.push_back(place);
}

std::span<const ExportFormat> all_formats() {
    static const std::vector<ExportFormat> formats = make_formats();
    return formats;
}

Result<ExportResult> export_run(std::string_view name, ExportRequest request) {
    std::vector<std::string> names;
    const ExportFormat* format = nullptr;
    for (const ExportFormat& row : all_formats()) {
        names.emplace_back(row.name);
        if (row.name == name) format = &row;
    }
    if (format == nullptr)
        return Status(Code::kInvalidArgument,
                      base::format("--format: '{}' does not exist{}; there are: {}", base::printable(name),
                                   base::did_you_mean(name, names), base::join(names, ", ")));
    if (request.to.empty())
        return Status(Code::kInvalidArgument, "--to: say where the export goes, as in --to run.csv");
    if (request.to == "-" && !format->to_stdout)
        return Status(Code::kInvalidArgument,
                      base::format("--to -: {} cannot go to standard output; give a path", name));
    for (const std::string& table : request.tables)
        if (std::find(format->tables.begin(), format->tables.end(), table) == format->tables.end())
            return Status(
                Code::kInvalidArgument,
                base::format("--table: {} cannot hold '{}'{}; it can hold: {}", name, base::printable(table),
                             base::did_you_mean(table, format->tables), base::join(format->tables, ", ")));
    if (format->one_table && request.tables.size() > 1)
        return Status(Code::kInvalidArgument,
                      base::format("--table: {} holds one table; export each by itself", name));
    if (request.tables.empty())
        request.tables.assign(format->tables.begin(),
                              format->tables.begin() + static_cast<std::ptrdiff_t>(format->usual));
    return format->write(request);
}

}  // namespace traindbg::exchange

// The layout of the SageMaker Debugger client: `compat` writes it.
#include <algorithm>

#include "traindbg/base/format.h"
#include "traindbg/compat/smdebug_export.h"
#include "traindbg/exchange/export_format.h"
#include "traindbg/exchange/output_file.h"
#include "traindbg/format/smdebug_index.h"
#include "traindbg/read/run.h"

namespace traindbg::exchange {

using base::Code;
using base::Result;
using base::Status;

Result<ExportResult> export_smdebug(const ExportRequest& request) {
    // Files of that layout have no mark in their names by which they would be known as an export's.
    if (request.overwrite)
        return Status(Code::kUnsupported,
                      "--force: a directory of this format is not replaced; name a new one");
    TRAINDBG_ASSIGN_OR_RETURN(const auto run, read::Run::open(request.run, *request.files));
    TRAINDBG_ASSIGN_OR_RETURN(OutputDirectory directory, OutputDirectory::create(request.to, false, ""));
    TRAINDBG_ASSIGN_OR_RETURN(const std::string marker,
                              directory.place(std::string(format::kSmdebugEndMarker)));
    const auto holds = [&](std::string_view table) {
        return std::find(request.tables.begin(), request.tables.end(), table) != request.tables.end();
    };
    compat::SmdebugExport job;
    job.to = marker.substr(0, marker.rfind('/'));
    job.with_values = holds(kWholeTensors);
    job.with_reductions = holds("statistics");
    job.with_scalars = holds("scalars");
    job.selects_tensor = [&](const model::TensorInfo& info) { return request.selection.wants(info); };
    job.selects_step = [&](model::WorkerId worker, model::Mode mode, model::StepIndex step) {
        return request.selection.wants(worker) && request.selection.wants(mode, step);
    };
    if (const auto& names = request.selection.statistics; !names.empty())
        job.selects_reduction = [&names](std::string_view reduction) {
            const std::string_view ours = reduction == "abs_mean" ? "mean_abs"
                                          : reduction == "prod"   ? "product"
                                                                  : reduction;
            return std::any_of(names.begin(), names.end(),
                               [&](const std::string& name) { return name == reduction || name == ours; });
        };
    job.progress = [&](std::uint64_t done, std::uint64_t all) { request.tell(done, all); };
    TRAINDBG_ASSIGN_OR_RETURN(const compat::SmdebugExported done,
                              compat::export_smdebug(*run, job, storage::posix_file_system()));
    TRAINDBG_RETURN_IF_ERROR(directory.commit());
    ExportResult result{.items = done.records, .bytes = done.bytes, .files = done.files};
    result.add_damage(run->damage());
    if (done.widened != 0)
        result.notes.push_back(
            base::format("{} whole tensors were widened to a type that the client can read", done.widened));
    if (done.left_out != 0)
        result.notes.push_back(
            base::format("{} whole tensors without elements were left out", done.left_out));
    if (done.repeated != 0)
        result.notes.push_back(
            base::format("{} steps were recorded a second time; the first was taken", done.repeated));
    return result;
}

}  // namespace traindbg::exchange

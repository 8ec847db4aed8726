#include "traindbg/exchange/import_smdebug.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "traindbg/base/format.h"
#include "traindbg/base/version.h"
#include "traindbg/compat/smdebug_import.h"
#include "traindbg/exchange/output_file.h"
#include "traindbg/model/checked_json.h"
#include "traindbg/model/json.h"
#include "traindbg/storage/run_layout.h"

namespace traindbg::exchange {
namespace {

using base::Code;
using base::Result;
using base::Status;

constexpr std::size_t kMostProblems = 100;

Status put_json(const std::string& path, const model::Json& json) {
    return storage::posix_file_system().put_atomic(path, base::as_bytes(model::to_checked_text(json)));
}

void tell_skips(const compat::SmdebugSkips& skips, std::vector<std::string>& notes) {
    const auto tell = [&](std::uint64_t count, std::string_view what) {
        if (count != 0) notes.push_back(base::format("{} {}", count, what));
    };
    tell(skips.texts, "values are text and were left out");
    tell(skips.types, "values have no statistics (complex numbers, ...)");
    tell(skips.no_norm, "tensors have reductions that do not give a norm; they are not judged");
    tell(skips.shapes, "tensors were saved as shapes alone");
    tell(skips.late, "steps came too late and were left out");
}

}  // namespace

bool is_smdebug(const std::string& from, storage::FileSystem& files) {
    return compat::SmdebugRun::is_one(from, files);
}

Result<ImportResult> import_smdebug(const ImportRequest& request) {
    if (request.role)
        return Status(Code::kUnsupported,
                      "--map: is for TensorBoard logs; here collections say what a tensor is");
    TRAINDBG_ASSIGN_OR_RETURN(OutputDirectory directory, OutputDirectory::create(request.to, false, ""));
    TRAINDBG_ASSIGN_OR_RETURN(const std::string run_json, directory.place("RUN.json"));
    const std::string root = run_json.substr(0, run_json.rfind('/'));
    model::RunMeta meta;
    meta.run_id = request.to.substr(request.to.find_last_of('/') + 1);  // npos + 1 == 0
    meta.command = request.command;
    meta.traindbg = base::version();
    TRAINDBG_RETURN_IF_ERROR(put_json(run_json, model::to_json(meta)));

    compat::SmdebugImport job;
    job.from = request.from;
    job.run_directory = root;
    job.progress = request.progress;
    TRAINDBG_ASSIGN_OR_RETURN(const compat::SmdebugImported done,
                              compat::import_smdebug(job, *request.files));

    meta.started_wall_nanos = done.first_wall_nanos;
    TRAINDBG_RETURN_IF_ERROR(put_json(run_json, model::to_json(meta)));
    model::RunEnd end;
    end.wall_nanos = done.last_wall_nanos;
    end.reason = done.is_complete ? "imported from a run of the SageMaker Debugger client"
                                  : "imported from a run of the SageMaker Debugger client that had not ended";
    TRAINDBG_RETURN_IF_ERROR(put_json(storage::RunLayout{root}.end_json(), model::to_json(end)));
    TRAINDBG_RETURN_IF_ERROR(directory.commit());

    ImportResult result;
    result.steps = done.steps;
    result.tensors = done.tensors;
    result.workers = done.workers;
    result.problems_in_all = done.damage.size();
    for (const read::Damage& damage : done.damage)
        if (result.problems.size() < kMostProblems)
            result.problems.push_back({damage.file, damage.offset, damage.bytes, damage.what, damage.tail});
    tell_skips(done.skips, result.notes);
    return result;
}

}  // namespace traindbg::exchange

#include "traindbg/compat/smdebug_import.h"

#include <algorithm>
#include <map>
#include <memory>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/write/run_writer.h"

namespace traindbg::compat {
namespace {

using base::Code;
using base::Result;
using base::Status;

constexpr std::chrono::hours kForever{24};  // a queue that is full for so long is a disk that hangs

struct Target {
    std::unique_ptr<write::RunWriter> writer;
    std::size_t tensors = 0;  // of the table, so far
};

Result<Target> open_target(const SmdebugImport& job, const model::StepView& view,
                           storage::FileSystem& files) {
    write::WriterOptions options;
    options.run_directory = job.run_directory;
    options.worker = view.worker;
    options.overflow = write::OverflowPolicy::kBlockFor;
    options.block_for = kForever;
    options.sealer_nice = 0;  // no training is in its way
    Target target;
    TRAINDBG_ASSIGN_OR_RETURN(target.writer, write::RunWriter::open(files, options));
    target.writer->describe(*view.meta);
    return target;
}

}  // namespace

Result<SmdebugImported> import_smdebug(const SmdebugImport& job, storage::FileSystem& files) {
    TRAINDBG_ASSIGN_OR_RETURN(const auto source, SmdebugSource::open(job.from, files, job.with_values));
    source->finish_when_idle();
    std::uint64_t all = 0;
    for (const std::string& worker : source->run().workers()) all += source->run().steps_of(worker).size();
    SmdebugImported done;
    std::map<model::WorkerId, Target> targets;
    while (true) {
        TRAINDBG_ASSIGN_OR_RETURN(const auto view, source->next(std::chrono::nanoseconds(0)));
        if (!view) break;
        if (!targets.contains(view->worker)) {
            TRAINDBG_ASSIGN_OR_RETURN(Target target, open_target(job, *view, files));
            targets.emplace(view->worker, std::move(target));
        }
        Target& target = targets.at(view->worker);
        for (; target.tensors < view->tensors->size(); ++target.tensors)
            target.writer->add_tensor((*view->tensors)[target.tensors]);
        if (done.first_wall_nanos == 0) done.first_wall_nanos = view->record->wall_nanos;
        done.last_wall_nanos = std::max(done.last_wall_nanos, view->record->wall_nanos);
        ++done.steps;
        target.writer->append(model::StepRecord(*view->record));
        if (job.progress) job.progress(done.steps, std::max(all, done.steps));
    }
    for (auto& [worker, target] : targets) {
        done.tensors += target.tensors;
        TRAINDBG_RETURN_IF_ERROR(target.writer->close(kForever));
        const write::WriterCounts counts = target.writer->counts();
        if (counts.steps_dropped != 0 || counts.raw_tensors_dropped != 0)
            return Status(Code::kResourceExhausted, base::format("{}: {} steps were not written: {}",
                                                                 base::printable(job.run_directory),
                                                                 counts.steps_dropped, counts.failure));
    }
    done.workers = targets.size();
    done.is_complete = source->run().is_complete();
    done.skips = source->skips();
    done.damage = source->run().damage();
    return done;
}

}  // namespace traindbg::compat

#include "run_files.h"

#include "errors.h"
#include "traindbg/storage/pipe_file_system.h"
#include "waiting.h"

namespace traindbg::bindings {

RunFiles::RunFiles(const std::string& path, const std::string& program) {
    if (!path.starts_with("s3://")) return;
    if (program.empty())
        raise(
            {base::Code::kUnsupported,
             path + ": the program traindbg, which reads from buckets, was not found; set TRAINDBG_PROGRAM"});
    std::unique_ptr<storage::PipeFileSystem> files =
        value_or_raise(storage::PipeFileSystem::start({program, "--serve-files", path}));
    files->set_interrupt([main_thread = main_thread()] { return was_interrupted(main_thread); });
    bucket_ = {files.release(), [](storage::PipeFileSystem* last) {
                   const OthersMayRun while_its_process_ends;
                   delete last;
               }};
}

}  // namespace traindbg::bindings

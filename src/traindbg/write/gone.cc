#include "traindbg/write/gone.h"

#include <chrono>
#include <string>
#include <thread>

#include "traindbg/base/format.h"
#include "traindbg/base/log.h"
#include "traindbg/base/text.h"

namespace traindbg::write {

bool tell_if_gone(storage::FileSystem& files, const storage::RunLayout& layout, model::WorkerId worker,
                  const std::function<bool()>& is_told) {
    const auto is_gone = [&files](const std::string& directory) {
        return files.list(directory).status().code() == base::Code::kNotFound;
    };
    const std::string of_worker = layout.worker_directory(worker);
    if (!is_gone(of_worker)) return false;
    // What is removed goes file by file.
    constexpr std::chrono::milliseconds kRemovalTakes{100};
    // Who writes a file into it while it is being removed keeps the directory.
    const auto has_lost_run = [&] {
        return files.open(layout.run_json()).status().code() == base::Code::kNotFound;
    };
    bool is_whole_run = has_lost_run();
    if (!is_whole_run) {
        std::this_thread::sleep_for(kRemovalTakes);
        is_whole_run = has_lost_run();
    }
    if (is_whole_run && is_told && is_told()) return true;
    const std::string text = base::format(
        "{}: the directory is gone: what was recorded in it is lost, unless it was moved; nothing more is "
        "recorded, the training goes on",
        base::printable(is_whole_run ? layout.root : of_worker));
    base::log_once(base::LogLevel::kError, text, text);
    return true;
}

}  // namespace traindbg::write

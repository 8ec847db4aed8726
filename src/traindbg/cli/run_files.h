// The files of a run that the supervisor writes and every verb may read: RUN.json, plan.json,
// END.json, verdict.json. Each is put in place whole.
//
// Errors: messages begin with the file's path.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "traindbg/base/status.h"
#include "traindbg/model/finding.h"
#include "traindbg/model/requirement.h"
#include "traindbg/model/run_meta.h"
#include "traindbg/rules/rule.h"
#include "traindbg/storage/file_system.h"

namespace traindbg::cli {

[[nodiscard]] base::Result<model::RunMeta> read_run_meta(const std::string& run, storage::FileSystem& files);
[[nodiscard]] base::Result<model::RunEnd> read_run_end(const std::string& run, storage::FileSystem& files);

// The verdict that was kept, and the rules (with their parameters, where they differ from the
// defaults) that gave it.
struct KeptVerdict {
    model::Verdict verdict;
    std::vector<rules::RuleChoice> choices;
};
[[nodiscard]] base::Result<KeptVerdict> read_verdict(const std::string& run, storage::FileSystem& files);

[[nodiscard]] base::Status write_run_meta(const std::string& run, const model::RunMeta& meta,
                                          storage::FileSystem& files);
[[nodiscard]] base::Status write_plan(const std::string& run, const model::CaptureConfig& config,
                                      storage::FileSystem& files);
[[nodiscard]] base::Status write_run_end(const std::string& run, const model::RunEnd& end,
                                         storage::FileSystem& files);
[[nodiscard]] base::Status write_verdict(const std::string& run, const model::Verdict& verdict,
                                         const std::vector<rules::RuleChoice>& choices,
                                         storage::FileSystem& files);

// A run that was there is not any more: its directory, or what makes it one. And what is said then, while its
// training goes on.
[[nodiscard]] bool is_gone(const std::string& run, storage::FileSystem& files);
[[nodiscard]] std::string gone_in_words(const std::string& run);

// Facts about this machine and moment, for RUN.json. `command` is redacted here.
[[nodiscard]] model::RunMeta describe_run(const std::string& run_id, const std::vector<std::string>& command);

// What goes on in a run, as far as its files and processes of this machine tell.
enum class RunState : std::uint8_t {
    kWaiting,  // made, but no training has attached yet
    kRunning,
    kEnded,    // by itself, with code 0 or one that nobody saw
    kStopped,  // by a rule
    kFailed,   // with another code
    kCrashed,  // killed by a signal, or gone without a word
};
[[nodiscard]] std::string_view to_string(RunState state) noexcept;
// `recording_closed`: every worker wrote its end record. `supervised_by_us`: this process holds the
// run's lock.
[[nodiscard]] RunState state_of_run(const std::string& run, bool recording_closed, storage::FileSystem& files,
                                    bool supervised_by_us = false);

// One process at a time judges a run that grows: the one that holds a lock on its control file. The
// kernel releases it when the process ends, however it ends.
class SupervisorLock {
  public:
    // Nothing when another process holds it or the file cannot be opened.
    [[nodiscard]] static std::optional<SupervisorLock> take(const std::string& run) noexcept;
    [[nodiscard]] static bool is_held_by_another(const std::string& run) noexcept;
    SupervisorLock(SupervisorLock&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
    SupervisorLock& operator=(SupervisorLock&& other) noexcept {
        std::swap(descriptor_, other.descriptor_);
        return *this;
    }
    SupervisorLock(const SupervisorLock&) = delete;
    SupervisorLock& operator=(const SupervisorLock&) = delete;
    ~SupervisorLock();

  private:
    explicit SupervisorLock(int descriptor) noexcept : descriptor_(descriptor) {}
    int descriptor_;
};

}  // namespace traindbg::cli

#include "traindbg/actions/action_journal.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <nlohmann/json.hpp>

#include "traindbg/base/clock.h"
#include "traindbg/base/text.h"

namespace traindbg::actions {

using base::Status;

namespace {

// One write of one whole line to a descriptor opened for appending, so that lines of two supervisors
// do not mix. The journal is a log for people beside the record, hence not part of the store.
Status append_line(const std::string& path, const std::string& line) {
    const int descriptor =
        ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    if (descriptor < 0) return Status::from_errno(path, errno);
    const ssize_t written = ::write(descriptor, line.data(), line.size());
    const int error = written < 0 ? errno : ENOSPC;
    const bool whole = written == static_cast<ssize_t>(line.size());
    ::close(descriptor);
    return whole ? Status::ok() : Status::from_errno(path, error);
}

}  // namespace

Status write_down(const std::string& run_directory, const JournalEntry& entry,
                  const model::Finding& finding) {
    nlohmann::ordered_json line = {{"wall_nanos", base::wall_nanos()},
                                   {"rule", base::printable(finding.rule)},
                                   {"key", base::printable(finding.key)},
                                   {"worker", finding.worker},
                                   {"step", finding.step},
                                   {"action", entry.action},
                                   {"intention", base::printable(entry.intention)},
                                   {"result", base::printable(entry.result)}};
    if (entry.withheld != 0) line["withheld"] = entry.withheld;
    return append_line(run_directory + "/" + std::string(kJournalName), line.dump() + "\n");
}

Performed ActionJournal::perform(Action& action, const model::Finding& finding, bool again) {
    Performed performed;
    Key key{std::string(action.name()), finding.rule, finding.key, finding.worker};
    if ((done_.contains(key) && !again) || action.is_done()) {
        performed.outcome = Outcome::kAlreadyDone;
        return performed;
    }
    performed.status = action.act(finding);
    performed.outcome = performed.status.is_ok() ? Outcome::kDone : Outcome::kFailed;
    if (performed.status.is_ok()) done_.insert(std::move(key));
    performed.journal = write_down(run_directory_,
                                   {action.name(), action.intention(finding),
                                    performed.status.is_ok() ? "done" : performed.status.message()},
                                   finding);
    return performed;
}

}  // namespace traindbg::actions

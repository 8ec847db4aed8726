#include "traindbg/actions/action_journal.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <nlohmann/json.hpp>

#include "traindbg/base/clock.h"
#include "traindbg/base/text.h"

namespace traindbg::actions {
namespace {

// One write of one whole line to a descriptor opened for appending, so that lines of two supervisors
// do not mix. The journal is a log for people beside the record, hence not part of the store.
base::Status append_line(const std::string& path, const std::string& line) {
    const int descriptor =
        ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    if (descriptor < 0) return base::Status::from_errno(path, errno);
    const ssize_t written = ::write(descriptor, line.data(), line.size());
    const int error = written < 0 ? errno : ENOSPC;
    const bool whole = written == static_cast<ssize_t>(line.size());
    ::close(descriptor);
    return whole ? base::Status::ok() : base::Status::from_errno(path, error);
}

}  // namespace

Performed ActionJournal::perform(Action& action, const model::Finding& finding) {
    Performed performed;
    Key key{std::string(action.name()), finding.rule, finding.key, finding.worker};
    if (done_.contains(key) || action.is_done()) {
        performed.outcome = Outcome::kAlreadyDone;
        return performed;
    }
    performed.status = action.act(finding);
    performed.outcome = performed.status.is_ok() ? Outcome::kDone : Outcome::kFailed;
    if (performed.status.is_ok()) done_.insert(std::move(key));

    const nlohmann::ordered_json entry = {
        {"wall_nanos", base::wall_nanos()},
        {"rule", base::printable(finding.rule)},
        {"key", base::printable(finding.key)},
        {"worker", finding.worker},
        {"step", finding.step},
        {"action", action.name()},
        {"intention", base::printable(action.intention(finding))},
        {"result", performed.status.is_ok() ? "done" : base::printable(performed.status.message())}};
    performed.journal = append_line(run_directory_ + "/" + std::string(kJournalName), entry.dump() + "\n");
    return performed;
}

}  // namespace traindbg::actions

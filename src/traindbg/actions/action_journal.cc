#include "traindbg/actions/action_journal.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <nlohmann/json.hpp>

#include "traindbg/base/clock.h"
#include "traindbg/base/file_descriptor.h"
#include "traindbg/base/format.h"
#include "traindbg/base/text.h"

namespace traindbg::actions {

using base::Status;

namespace {

// A journal has a line for each finding and receiver; what lies further behind is not looked at.
constexpr std::size_t kMostJournalBytes = 64U << 20;

// Whether the last line is whole: one that a crash cut off would spoil the one that follows.
bool ends_a_line(int descriptor) {
    struct stat facts = {};
    char last = '\n';
    if (::fstat(descriptor, &facts) == 0 && facts.st_size > 0)
        static_cast<void>(::pread(descriptor, &last, 1, facts.st_size - 1));
    return last == '\n';
}

// One write of one whole line to a descriptor opened for appending, so that lines of two supervisors
// do not mix. The journal is a log for people beside the record, hence not part of the store.
Status append_line(const std::string& path, std::string line) {
    const base::FileDescriptor file(
        ::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600));
    if (file.get() < 0) return Status::from_errno(path, errno);
    if (!ends_a_line(file.get())) line.insert(0, 1, '\n');
    const ssize_t written = ::write(file.get(), line.data(), line.size());
    if (written < 0) return Status::from_errno(path, errno);
    if (written != static_cast<ssize_t>(line.size())) return Status::from_errno(path, ENOSPC);
    return Status::ok();
}

// What there is of it, as far as it can be read. A journal that is not there is empty.
Status read_all(const std::string& path, std::string& out) {
    const base::FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    if (file.get() < 0) return errno == ENOENT ? Status::ok() : Status::from_errno(path, errno);
    std::array<char, 65536> buffer;
    while (out.size() < kMostJournalBytes) {
        const ssize_t got = ::read(file.get(), buffer.data(), buffer.size());
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return Status::from_errno(path, errno);
        if (got == 0) return Status::ok();
        out.append(buffer.data(), static_cast<std::size_t>(got));
    }
    return {base::Code::kResourceExhausted, base::format("{}: is larger than {}", base::printable(path),
                                                         base::human_bytes(kMostJournalBytes))};
}

FindingKey key_of(const nlohmann::json& line) {
    return {line.at("rule").get<std::string>(), line.at("key").get<std::string>(),
            line.at("worker").get<model::WorkerId>()};
}

}  // namespace

FindingKey FindingKey::of(const model::Finding& finding) {
    return {base::printable(finding.rule), base::printable(finding.key), finding.worker};
}

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
    if (entry.receiver != 0) line["receiver"] = entry.receiver;
    if (!entry.stands_for.empty()) {
        line["withheld"] = entry.stands_for.size();
        for (const FindingKey& other : entry.stands_for)
            line["stands_for"].push_back(
                {{"rule", other.rule}, {"key", other.key}, {"worker", other.worker}});
    }
    return append_line(run_directory + "/" + std::string(kJournalName), line.dump() + "\n");
}

Performed ActionJournal::perform(Action& action, const model::Finding& finding, bool again) {
    Performed performed;
    Key key{std::string(action.name()), FindingKey::of(finding)};
    // Who judges a run again is asked the same again, in the same order.
    const bool was_done_before = ++asked_[key] <= past_.times(action.name(), key.second, dry_run_);
    if (was_done_before) done_.insert(key);
    if (was_done_before || (done_.contains(key) && !again) || action.is_done()) {
        performed.outcome = Outcome::kAlreadyDone;
        return performed;
    }
    if (dry_run_) {
        performed.outcome = Outcome::kDryRun;
        done_.insert(std::move(key));
        performed.journal = write_down(
            run_directory_, {action.name(), action.intention(finding), std::string(kDryRunResult)}, finding);
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

PastActions PastActions::read(const std::string& run_directory) {
    PastActions past;
    const std::string path = run_directory + "/" + std::string(kJournalName);
    std::string text;
    const Status status = read_all(path, text);
    for (std::size_t begin = 0; begin < text.size();) {
        const std::size_t end = std::min(text.find('\n', begin), text.size());
        if (end > begin) past.add(std::string_view(text).substr(begin, end - begin));
        begin = end + 1;
    }
    if (!status.is_ok()) past.trouble_ = status.message();
    else if (past.unreadable_ != 0)
        past.trouble_ = base::format("{}: {} {} cannot be read", base::printable(path), past.unreadable_,
                                     past.unreadable_ == 1 ? "line" : "lines");
    if (!past.trouble_.empty()) past.trouble_ += "; what it says was done may be done again";
    return past;
}

void PastActions::add(std::string_view text) {
    const nlohmann::json line = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
    try {  // a line of the right form, or none
        const auto action = line.at("action").get<std::string>();
        JournalEntry entry{action, line.at("intention").get<std::string>(),
                           line.at("result").get<std::string>()};
        entry.receiver = line.value("receiver", std::size_t{0});
        std::vector<FindingKey> findings = {key_of(line)};
        if (const auto others = line.find("stands_for"); others != line.end())
            for (const nlohmann::json& other : *others) findings.push_back(key_of(other));
        for (FindingKey& finding : findings) note(entry, std::move(finding));
    } catch (const nlohmann::json::exception&) {
        ++unreadable_;
    }
}

void PastActions::note(const JournalEntry& entry, FindingKey finding) {
    const bool is_dry = entry.result == kDryRunResult;
    if (!is_dry && entry.result != "done") return;
    const std::string action(entry.action);
    (is_dry ? told_dry_ : told_).emplace(action, entry.intention, entry.receiver, finding);
    ++(is_dry ? dry_ : done_)[{action, std::move(finding)}];
}

std::uint64_t PastActions::times(std::string_view action, const FindingKey& finding, bool dry_run) const {
    const Taken key{std::string(action), finding};
    const auto count = [&key](const std::map<Taken, std::uint64_t>& in) {
        const auto place = in.find(key);
        return place == in.end() ? 0 : place->second;
    };
    return count(done_) + (dry_run ? count(dry_) : 0);
}

bool PastActions::was_told(const JournalEntry& entry, const FindingKey& finding, bool dry_run) const {
    const Told key{std::string(entry.action), base::printable(entry.intention), entry.receiver, finding};
    return told_.contains(key) || (dry_run && told_dry_.contains(key));
}

}  // namespace traindbg::actions

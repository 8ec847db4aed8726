#include "traindbg/cli/run_files.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <random>

#include "traindbg/base/clock.h"
#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/base/version.h"
#include "traindbg/cli/redact.h"
#include "traindbg/cli/run_location.h"
#include "traindbg/model/checked_json.h"
#include "traindbg/model/json.h"
#include "traindbg/storage/control_block.h"
#include "traindbg/storage/run_layout.h"

namespace traindbg::cli {
namespace {

using base::Result;
using base::Status;

Result<std::string> read_text(const std::string& path, storage::FileSystem& files) {
    TRAINDBG_ASSIGN_OR_RETURN(const base::ByteBuffer bytes, storage::read_whole(files, path));
    return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

Status in_file(const std::string& path, const Status& status) {
    return {status.code(), path + ": " + status.message()};
}

template <typename T>
Result<T> read_json(const std::string& path, Result<T> (*decode)(std::string_view),
                    storage::FileSystem& files) {
    TRAINDBG_ASSIGN_OR_RETURN(const std::string text, read_text(path, files));
    Result<T> decoded = decode(text);
    if (!decoded.is_ok()) return in_file(path, decoded.status());
    return decoded;
}

Status put(const std::string& path, const model::Json& json, storage::FileSystem& files) {
    return files.put_atomic(path, base::as_bytes(model::to_checked_text(json)));
}

std::string random_uuid() {
    std::random_device device;
    std::array<std::uint32_t, 4> words{};
    for (std::uint32_t& word : words) word = device();
    return base::format("{:08x}-{:04x}-4{:03x}-{:x}{:03x}-{:04x}{:08x}", words[0], words[1] >> 16,
                        words[1] & 0xFFFU, 8U | ((words[2] >> 12) & 3U), words[2] & 0xFFFU, words[2] >> 16,
                        words[3]);
}

std::string platform_words() {
    utsname system{};
    ::uname(&system);
    struct sysinfo memory {};
    ::sysinfo(&memory);
    const double gib = static_cast<double>(memory.totalram) * memory.mem_unit / (1ULL << 30);
    return base::format("{} {} {}, {} cores, {:.0f} GiB", system.sysname, system.release, system.machine,
                        ::sysconf(_SC_NPROCESSORS_ONLN), gib);
}

std::string host_name() {
    utsname system{};
    return ::uname(&system) == 0 ? system.nodename : "";
}

}  // namespace

Result<model::RunMeta> read_run_meta(const std::string& run, storage::FileSystem& files) {
    return read_json(storage::RunLayout{run}.run_json(), &model::run_meta_from_json, files);
}

Result<model::RunEnd> read_run_end(const std::string& run, storage::FileSystem& files) {
    return read_json(storage::RunLayout{run}.end_json(), &model::run_end_from_json, files);
}

Result<KeptVerdict> read_verdict(const std::string& run, storage::FileSystem& files) {
    const std::string path = storage::RunLayout{run}.verdict_json();
    TRAINDBG_ASSIGN_OR_RETURN(const std::string text, read_text(path, files));
    KeptVerdict kept;
    Result<model::Verdict> verdict = model::verdict_from_json(text);
    if (!verdict.is_ok()) return in_file(path, verdict.status());
    kept.verdict = std::move(verdict).value();
    const model::Json json = model::Json::parse(text, nullptr, /*allow_exceptions=*/false);
    const auto parameters = json.is_object() ? json.find("parameters") : json.end();
    for (const model::RuleOutcome& outcome : kept.verdict.outcomes) {
        rules::RuleChoice choice{outcome.rule, {}};
        if (parameters != json.end() && parameters->is_object())
            if (const auto of_rule = parameters->find(outcome.rule);
                of_rule != parameters->end() && of_rule->is_object())
                for (const auto& [name, value] : of_rule->items())
                    if (const auto known = model::parameter_from_json(value))
                        choice.parameters[name] = *known;
        kept.choices.push_back(std::move(choice));
    }
    return kept;
}

Status write_run_meta(const std::string& run, const model::RunMeta& meta, storage::FileSystem& files) {
    return put(storage::RunLayout{run}.run_json(), model::to_json(meta), files);
}

Status write_plan(const std::string& run, const model::CaptureConfig& config, storage::FileSystem& files) {
    return put(storage::RunLayout{run}.plan_json(), model::to_json(config), files);
}

Status write_run_end(const std::string& run, const model::RunEnd& end, storage::FileSystem& files) {
    return put(storage::RunLayout{run}.end_json(), model::to_json(end), files);
}

Status write_verdict(const std::string& run, const model::Verdict& verdict,
                     const std::vector<rules::RuleChoice>& choices, storage::FileSystem& files) {
    model::Json parameters = model::Json::object();
    for (const rules::RuleChoice& choice : choices)
        for (const auto& [name, value] : choice.parameters)
            parameters[choice.name][name] = model::parameter_to_json(value);
    model::Json json = {{"schema_version", 1}};
    json.update(model::to_json(verdict));
    json["parameters"] = std::move(parameters);
    return put(storage::RunLayout{run}.verdict_json(), json, files);
}

// Somebody who writes a file while the directory is being removed keeps it there.
bool is_gone(const std::string& run, storage::FileSystem& files) {
    return files.open(storage::RunLayout{run}.run_json()).status().code() == base::Code::kNotFound;
}

std::string gone_in_words(const std::string& run) {
    return base::format(
        "{}: the run's directory is gone: what was recorded in it is lost, unless it was moved; the training "
        "goes on",
        base::printable(run));
}

model::RunMeta describe_run(const std::string& run_id, const std::vector<std::string>& command) {
    model::RunMeta meta;
    meta.run_id = run_id;
    meta.uuid = random_uuid();
    meta.command = redacted(command);
    std::error_code error;
    meta.working_directory = std::filesystem::current_path(error).string();
    meta.started_wall_nanos = base::wall_nanos();
    meta.host = host_name();
    meta.platform = platform_words();
    meta.traindbg = base::version();
    return meta;
}

std::string_view to_string(RunState state) noexcept {
    switch (state) {
        case RunState::kWaiting: return "waiting";
        case RunState::kRunning: return "running";
        case RunState::kEnded: return "ended";
        case RunState::kStopped: return "stopped";
        case RunState::kFailed: return "failed";
        case RunState::kCrashed: return "crashed";
    }
    return "unknown";
}

RunState state_of_run(const std::string& run, bool recording_closed, storage::FileSystem& files,
                      bool supervised_by_us) {
    const storage::RunLayout layout{run};
    if (const auto end = read_run_end(run, files); end.is_ok()) {
        if (end->stopped_by_rule) return RunState::kStopped;
        constexpr int kFirstSignal = 128;
        if (end->exit_code > kFirstSignal) return RunState::kCrashed;
        return end->exit_code > 0 ? RunState::kFailed : RunState::kEnded;
    }
    if (!is_remote(run) && !supervised_by_us && SupervisorLock::is_held_by_another(run)) {
        // Supervised: waiting until a training attaches, running from then on.
        if (const auto entries = files.list(run); entries.is_ok())
            for (const storage::DirectoryEntry& entry : *entries)
                if (storage::parse_worker_directory(entry.name)) return RunState::kRunning;
        return RunState::kWaiting;
    }
    if (recording_closed) return RunState::kEnded;
    // In a bucket only what was uploaded tells: without an end, it goes on.
    if (is_remote(run)) return RunState::kRunning;
    if (!files.exists(layout.control())) return RunState::kCrashed;
    // Not supervised: the training says in the control page who it is. Only its own machine knows
    // whether that process lives; from elsewhere a run without an end is taken to go on.
    const auto control = storage::ControlBlock::open(layout.control());
    if (!control.is_ok()) return RunState::kCrashed;
    const auto meta = read_run_meta(run, files);
    if (meta.is_ok() && !meta->host.empty() && meta->host != host_name()) return RunState::kRunning;
    const auto pid = static_cast<pid_t>((*control)->pid());
    const bool alive = pid > 0 && (::kill(pid, 0) == 0 || errno == EPERM);
    if (alive && (*control)->state() != storage::TrainingState::kEnded) return RunState::kRunning;
    return (*control)->state() == storage::TrainingState::kEnded ? RunState::kEnded : RunState::kCrashed;
}

std::optional<SupervisorLock> SupervisorLock::take(const std::string& run) noexcept {
    const int descriptor =
        ::open(storage::RunLayout{run}.control().c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (descriptor < 0) return std::nullopt;
    if (::flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
        ::close(descriptor);
        return std::nullopt;
    }
    return SupervisorLock(descriptor);
}

bool SupervisorLock::is_held_by_another(const std::string& run) noexcept {
    const int descriptor =
        ::open(storage::RunLayout{run}.control().c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (descriptor < 0) return false;
    const bool held = ::flock(descriptor, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    ::close(descriptor);
    return held;
}

SupervisorLock::~SupervisorLock() {
    if (descriptor_ >= 0) ::close(descriptor_);
}

}  // namespace traindbg::cli

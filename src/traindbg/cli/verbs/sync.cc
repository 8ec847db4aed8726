#include <poll.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <nlohmann/json.hpp>

#include "traindbg/base/clock.h"
#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/cli/exit_code.h"
#include "traindbg/cli/process.h"
#include "traindbg/cli/run_files.h"
#include "traindbg/cli/run_location.h"
#include "traindbg/cli/run_names.h"
#include "traindbg/cli/verb.h"
#include "traindbg/read/run.h"
#include "traindbg/storage/run_layout.h"
#include "traindbg/sync/upload_thread.h"
#include "traindbg/sync/uploader.h"

namespace traindbg::cli {
namespace {

using base::Code;
using base::Status;

class SyncVerb final : public Verb {
  public:
    void declare(OptionSet& options) override {
        declare_run(options, run_);
        options.text({.names = "URL",
                      .placeholder = "URL",
                      .help = "Where to: s3://bucket/prefix, or s3://bucket/prefix/ to put the run under its "
                              "name there.",
                      .positional = true,
                      .required = true},
                     url_);
        options.flag({.names = "-f,--follow", .help = "Go on until the run has ended."}, follow_);
        options.number({.names = "--interval",
                        .placeholder = "SECONDS",
                        .help = "With --follow: how often to upload what is new (default 10)."},
                       interval_, 0.1, 86400);
        options.flag({.names = "-n,--dry-run", .help = "Upload nothing; say what would be uploaded."},
                     dry_run_);
        options.text({.names = "--endpoint-url",
                      .placeholder = "URL",
                      .help = "Of a server other than AWS (default: AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, "
                              "the profile's endpoint_url)."},
                     endpoint_url_);
        options.flag({.names = "-q,--quiet", .help = "Say nothing but errors."}, quiet_);
        options.flag({.names = "--json", .help = "Print JSON."}, json_);
        declare_runs(options, runs_);
    }

    int run(Console& console) override {
        storage::FileSystem& files = storage::posix_file_system();
        if (is_remote(run_) || is_remote(runs_root(runs_)))
            return fail(console,
                        {Code::kUnsupported,
                         base::printable(run_) + ": sync uploads a run of this machine; name its directory"});
        if (!is_remote(url_))
            return fail(console, {Code::kInvalidArgument,
                                  base::printable(url_) + ": is no s3:// URL; write s3://bucket/prefix"});
        const auto path = resolve_run(run_, runs_root(runs_), files);
        if (!path.is_ok()) return fail(console, path.status());
        auto target = open_upload_target(url_, base_name(*path), endpoint_url_);
        if (!target.is_ok()) return fail(console, target.status());
        auto gate = SignalGate::open();
        if (!gate.is_ok()) return fail(console, gate.status());

        std::vector<nlohmann::ordered_json> changes;
        sync::UploadOptions options;
        options.run = *path;
        options.prefix = target->prefix;
        options.is_dry = dry_run_;
        if (dry_run_)
            options.told = [&](const std::string& key, std::uint64_t bytes, bool is_removed) {
                changes.push_back({{"action", is_removed ? "remove" : "put"},
                                   {"key", base::printable(key)},
                                   {"bytes", bytes}});
            };
        const std::int64_t started = base::monotonic_nanos();
        Status status;
        std::string ended_by;
        const sync::UploadCounts* counts = nullptr;
        // The rounds are on a thread of their own, so that a signal ends a wait for the network.
        std::unique_ptr<sync::UploadThread> thread;
        if (dry_run_) {
            sync::Uploader uploader(options, files, *target->store);
            status = uploader.round(/*is_last=*/true, {});
            return conclude(console, *target, status, uploader.counts(), changes, started);
        }
        thread = std::make_unique<sync::UploadThread>(
            options, files, *target->store,
            std::chrono::nanoseconds(static_cast<std::int64_t>(interval_ * 1e9)), !follow_);
        counts = &thread->counts();
        while (true) {
            show(console, *counts, false);
            std::array<pollfd, 1> waiting{{{gate->descriptor(), POLLIN, 0}}};
            static_cast<void>(::poll(waiting.data(), waiting.size(), 100));
            bool is_interrupted = false;
            while (const auto signal = gate->next()) {
                const int number = static_cast<int>(signal->ssi_signo);
                is_interrupted = is_interrupted || number == SIGINT || number == SIGTERM ||
                                 number == SIGHUP || number == SIGQUIT;
                if (number == SIGTSTP) ::raise(SIGSTOP);
            }
            if (is_interrupted) {
                thread->cancel();
                status = Status(Code::kUnavailable, "interrupted; the same command goes on where it was");
                break;
            }
            if (const auto ended = thread->ended()) {
                status = *ended;
                break;
            }
            if (!follow_) continue;
            if (const auto news = thread->news()) {
                const bool is_final = news->code() != Code::kUnavailable && news->code() != Code::kDataLoss &&
                                      news->code() != Code::kAlreadyExists;
                if (is_final) {
                    status = *news;
                    thread->cancel();
                    break;
                }
                console.warn(news->message() + "; trying again");
            }
            if (thread->has_end()) {
                status = thread->finish(std::chrono::seconds(60));
                break;
            }
            // A run that nobody supervises writes no END.json.
            if (base::monotonic_nanos() - looked_nanos_ > 2'000'000'000) {
                looked_nanos_ = base::monotonic_nanos();
                if (is_over(*path, files)) {
                    status = thread->finish(std::chrono::hours(24));
                    break;
                }
            }
        }
        show(console, *counts, true);
        return conclude(console, *target, status, *counts, changes, started);
    }

  private:
    [[nodiscard]] static bool is_over(const std::string& path, storage::FileSystem& files) {
        if (files.exists(storage::RunLayout{path}.end_json())) return false;  // it goes up by itself
        bool closed = false;
        if (const auto run = read::Run::open(path, files); run.is_ok())
            closed = !(*run)->workers().empty() && (*run)->is_complete();
        const RunState state = state_of_run(path, closed, files);
        return state != RunState::kRunning && state != RunState::kWaiting;
    }

    void show(const Console& console, const sync::UploadCounts& counts, bool is_end) {
        if (quiet_ || json_ || !console.error_is_terminal()) return;
        if (is_end) {
            if (shown_) console.error("\r\x1b[K");
            return;
        }
        const std::int64_t now = base::monotonic_nanos();
        if (now - shown_nanos_ < 200'000'000) return;
        shown_nanos_ = now;
        shown_ = true;
        console.error(base::format("\r\x1b[Kuploaded {} objects, {}; {} to go", counts.objects_put.load(),
                                   base::human_bytes(counts.bytes_put),
                                   base::human_bytes(counts.bytes_pending)));
    }

    int conclude(Console& console, const UploadTarget& target, const Status& status,
                 const sync::UploadCounts& counts, const std::vector<nlohmann::ordered_json>& changes,
                 std::int64_t started) const {
        const s3::S3Counts& requests = target.store->counts();
        if (json_) {
            nlohmann::ordered_json json = {
                {"schema_version", 1},
                {"url", base::printable(target.url)},
                {"complete", status.is_ok()},
                {"dry_run", dry_run_},
                {"objects_put", counts.objects_put.load()},
                {"bytes_put", counts.bytes_put.load()},
                {"objects_removed", counts.objects_removed.load()},
                {"objects_kept", counts.objects_kept.load()},
                {"bytes_pending", counts.bytes_pending.load()},
                {"requests",
                 {{"put_list", requests.puts.load()},
                  {"get", requests.gets.load()},
                  {"delete", requests.deletes.load()},
                  {"retries", requests.retries.load()}}},
                {"seconds", static_cast<double>(base::monotonic_nanos() - started) / 1e9},
                {"error",
                 status.is_ok() ? nlohmann::ordered_json() : nlohmann::ordered_json(status.message())}};
            if (dry_run_) json["changes"] = changes;
            console.out(json.dump(2) + "\n");
        } else if (dry_run_) {
            for (const auto& change : changes)
                console.out(base::format("{:<6}  {}  {}\n", change["action"].get<std::string>(),
                                         change["key"].get<std::string>(),
                                         base::human_bytes(change["bytes"].get<std::uint64_t>())));
        }
        if (!status.is_ok()) return fail(console, status);
        if (!quiet_ && !json_)
            console.out(base::format("{}: {} object{}, {}{}; {} {} there\n", base::printable(target.url),
                                     counts.objects_put.load(), counts.objects_put == 1 ? "" : "s",
                                     base::human_bytes(counts.bytes_put),
                                     dry_run_ ? " to upload" : " uploaded", counts.objects_kept.load(),
                                     counts.objects_kept == 1 ? "was" : "were"));
        return kExitClean;
    }

    std::string run_;
    std::string url_;
    std::string runs_;
    bool follow_ = false;
    double interval_ = 10;
    bool dry_run_ = false;
    std::string endpoint_url_;
    bool quiet_ = false;
    bool json_ = false;
    bool shown_ = false;
    std::int64_t shown_nanos_ = 0;
    std::int64_t looked_nanos_ = base::monotonic_nanos();
};

}  // namespace

VerbEntry sync_verb() {
    return {
        .name = "sync",
        .summary = "Upload a run to S3, now or while it is recorded.",
        .usage = "[options] RUN URL",
        .about =
            "Brings what a bucket lacks of a run there, and nothing twice: the same command goes on after "
            "whatever interrupted it. Every verb that reads takes the s3:// URL in place of a run, also "
            "while it is uploaded. Credentials come by the usual chain: environment, shared files and "
            "profile, container, machine.",
        .examples =
            "  traindbg sync last s3://my-bucket/runs/\n"
            "  traindbg sync last s3://my-bucket/runs/night --follow --interval 30\n"
            "  traindbg sync last s3://bucket/runs/ --endpoint-url http://127.0.0.1:9000\n"
            "  traindbg show s3://my-bucket/runs/night\n",
        .make = []() -> std::unique_ptr<Verb> { return std::make_unique<SyncVerb>(); }};
}

}  // namespace traindbg::cli

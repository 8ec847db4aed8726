#include <algorithm>
#include <nlohmann/json.hpp>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/cli/damage.h"
#include "traindbg/cli/exit_code.h"
#include "traindbg/cli/run_location.h"
#include "traindbg/cli/run_names.h"
#include "traindbg/cli/verb.h"
#include "traindbg/cli/worker_gaps_json.h"
#include "traindbg/model/json.h"
#include "traindbg/read/run.h"

namespace traindbg::cli {
namespace {

using base::printable;
using model::Json;

class VerifyVerb final : public Verb {
  public:
    void declare(OptionSet& options) override {
        declare_run(options, run_);
        options.flag({.names = "--json", .help = "Print JSON."}, json_);
        declare_runs(options, runs_);
    }

    int run(Console& console) override {
        const auto location = RunLocation::of(run_, runs_root(runs_));
        if (!location.is_ok()) return fail(console, location.status());
        storage::FileSystem& files = location->files();
        const auto path = resolve_run(run_, runs_root(runs_), files);
        if (!path.is_ok()) return fail(console, path.status());
        auto opened = read::Run::open(*path, files);
        if (!opened.is_ok()) return fail(console, opened.status());
        read::Run& run = **opened;
        if (const base::Status status = run.verify(); !status.is_ok()) return fail(console, status);
        const Found found{run.damage(), run.unverified(), run.unclosed_workers(), run.worker_gaps()};
        const bool is_empty = run.workers().empty();
        if (json_) print_json(run, found, console);
        else print_text(run, found, console);
        if (found.damaged_places() != 0) return kExitFired;
        if (is_empty)
            console.warn(
                base::format("{}: no training has recorded anything in this run; there was nothing to "
                             "verify",
                             printable(*path)));
        return is_empty ? kExitUsage : kExitClean;
    }

  private:
    struct Found {
        const std::vector<read::Damage>& damage;
        const std::vector<read::Unverified>& unverified;
        std::vector<model::WorkerId> unclosed;
        read::WorkerGaps gaps;

        // What a newer version wrote is whole.
        [[nodiscard]] std::size_t damaged_places() const {
            return static_cast<std::size_t>(std::count_if(
                damage.begin(), damage.end(), [](const read::Damage& place) { return !place.newer; }));
        }
    };

    static void print_json(const read::Run& run, const Found& found, Console& console) {
        Json unverified = Json::array();
        for (const read::Unverified& place : found.unverified)
            unverified.push_back({{"file", printable(place.file)}, {"what", printable(place.what)}});
        const read::RunTotals totals = run.totals();
        Json json = {{"schema_version", 1},
                     {"path", printable(run.path())},
                     {"workers", run.workers()},
                     {"steps", totals.steps},
                     {"bytes", totals.bytes}};
        put_worker_gaps(json, found.gaps);
        json["unclosed_workers"] = found.unclosed;
        json["unverified"] = std::move(unverified);
        json["damage"] = damage_json(found.damage);
        console.out(json.dump(2) + "\n");
    }

    static void print_text(const read::Run& run, const Found& found, Console& console) {
        for (const read::Damage& place : found.damage) console.out(damage_line(place) + "\n");
        for (const read::Unverified& place : found.unverified)
            console.out(base::format("{}: {}: not verified\n", printable(place.file), printable(place.what)));
        for (const model::WorkerId worker : found.unclosed)
            console.out(base::format(
                "worker {}: not closed: the last steps may be missing (it is still recording, was "
                "cut off, or its last files are gone)\n",
                worker));
        for (const std::string& line : found.gaps.in_words()) console.out(line + "\n");
        const bool is_all = found.damage.empty() && found.unverified.empty() && found.unclosed.empty() &&
                            found.gaps.empty() && !run.workers().empty();
        const read::RunTotals totals = run.totals();
        const std::size_t damaged = found.damaged_places();
        console.out(base::format(
            "{} steps, {}: {}\n", totals.steps, base::human_bytes(totals.bytes),
            damaged != 0
                ? base::format("{} place{} damaged or missing; all else that could be verified is whole",
                               damaged, damaged == 1 ? "" : "s")
            : is_all ? "every byte of the record is as it was written"
                     : "nothing that could be verified is damaged"));
    }

    std::string run_;
    std::string runs_;
    bool json_ = false;
};

}  // namespace

VerbEntry verify_verb() {
    return {
        .name = "verify",
        .summary = "Read every byte of a run and name what is damaged or missing.",
        .usage = "[options] RUN",
        .about =
            "Other verbs look at what they need and name the damage that they meet. This one reads "
            "all of it, whole tensors included. Exits with 1 when anything is damaged or missing, with 2 "
            "when nothing was recorded; what is whole can still be read, shown and judged. A worker whose "
            "record was not closed, and what has no checksum, is named and no failure.",
        .examples = "  traindbg verify last\n  traindbg verify s3://my-bucket/runs/night --json\n",
        .make = []() -> std::unique_ptr<Verb> { return std::make_unique<VerifyVerb>(); }};
}

}  // namespace traindbg::cli

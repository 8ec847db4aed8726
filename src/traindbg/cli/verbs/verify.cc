#include <algorithm>
#include <nlohmann/json.hpp>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/cli/exit_code.h"
#include "traindbg/cli/run_location.h"
#include "traindbg/cli/run_names.h"
#include "traindbg/cli/verb.h"
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
        const std::vector<read::Damage>& damage = run.damage();
        if (json_) print_json(run, damage, console);
        else print_text(run, damage, console);
        return damaged_places(damage) == 0 ? kExitClean : kExitFired;
    }

  private:
    static std::size_t damaged_places(const std::vector<read::Damage>& damage) {
        return static_cast<std::size_t>(std::count_if(
            damage.begin(), damage.end(), [](const read::Damage& place) { return !place.newer; }));
    }
    static void print_json(const read::Run& run, const std::vector<read::Damage>& damage, Console& console) {
        Json places = Json::array();
        for (const read::Damage& place : damage)
            places.push_back({{"file", printable(place.file)},
                              {"offset", place.offset},
                              {"bytes", place.bytes},
                              {"what", printable(place.what)},
                              {"tail", place.tail},
                              {"newer", place.newer}});
        const read::RunTotals totals = run.totals();
        console.out(Json{{"schema_version", 1},
                         {"path", printable(run.path())},
                         {"steps", totals.steps},
                         {"bytes", totals.bytes},
                         {"missing_workers", run.missing_workers()},
                         {"damage", std::move(places)}}
                        .dump(2) +
                    "\n");
    }

    static void print_text(const read::Run& run, const std::vector<read::Damage>& damage, Console& console) {
        for (const read::Damage& place : damage)
            console.out(base::format("{}, byte {}: {}{}\n", printable(place.file), place.offset,
                                     printable(place.what),
                                     place.tail ? " (at the end: what a crash leaves behind)" : ""));
        const read::RunTotals totals = run.totals();
        const std::size_t damaged = damaged_places(damage);
        console.out(base::format("{} steps, {}: {}\n", totals.steps, base::human_bytes(totals.bytes),
                                 damaged == 0 ? "every byte is as it was written"
                                              : base::format("{} place{} damaged; all else is whole", damaged,
                                                             damaged == 1 ? "" : "s")));
        for (const model::WorkerId worker : run.missing_workers())
            console.out(base::format("worker {} has recorded nothing, though others expect it\n", worker));
    }

    std::string run_;
    std::string runs_;
    bool json_ = false;
};

}  // namespace

VerbEntry verify_verb() {
    return {.name = "verify",
            .summary = "Read every byte of a run and name what is damaged.",
            .usage = "[options] RUN",
            .about =
                "Other verbs look at what they need and name the damage that they meet. This one reads "
                "all of it, whole tensors included. Exits with 1 when anything is damaged; what is whole "
                "can still be read, shown and judged.",
            .examples = "  traindbg verify last\n  traindbg verify s3://my-bucket/runs/night --json\n",
            .make = []() -> std::unique_ptr<Verb> { return std::make_unique<VerifyVerb>(); }};
}

}  // namespace traindbg::cli

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/cli/exit_code.h"
#include "traindbg/cli/name_filter.h"
#include "traindbg/cli/progress_line.h"
#include "traindbg/cli/redact.h"
#include "traindbg/cli/run_names.h"
#include "traindbg/cli/verb.h"
#include "traindbg/exchange/import_smdebug.h"
#include "traindbg/exchange/import_tensorboard.h"
#include "traindbg/model/json.h"
#include "traindbg/storage/run_layout.h"

namespace traindbg::cli {
namespace {

using base::Code;
using base::Result;
using base::Status;
using exchange::ImportProblem;
using exchange::ImportResult;
using exchange::RoleChoice;

constexpr std::string_view kIgnore = "ignore";
constexpr std::size_t kMostShown = 10;

// "REGEX=role", in the order in which they were given: the first that matches decides.
Result<exchange::RoleChooser> parse_map(const std::vector<std::string>& map) {
    using Rows = std::vector<std::pair<NameFilter, RoleChoice>>;
    const auto rows = std::make_shared<Rows>();
    std::vector<std::string> words = {std::string(kIgnore)};
    for (std::uint8_t role = 0; role < model::kRoleCount; ++role)
        if (static_cast<model::Role>(role) != model::Role::kClasses &&
            static_cast<model::Role>(role) != model::Role::kLoop)
            words.emplace_back(model::to_string(static_cast<model::Role>(role)));
    for (const std::string& text : map) {
        const std::size_t equals = text.rfind('=');
        if (equals == std::string::npos || equals == 0)
            return Status(
                Code::kInvalidArgument,
                base::format("--map: '{}' is not REGEX=ROLE, as in ^cost/=loss", base::printable(text)));
        const std::string word = text.substr(equals + 1);
        if (std::find(words.begin(), words.end(), word) == words.end())
            return Status(Code::kInvalidArgument,
                          base::format("--map: '{}' is no role{}; there are: {}", base::printable(word),
                                       base::did_you_mean(word, words), base::join(words, ", ")));
        Result<NameFilter> filter = NameFilter::make(text.substr(0, equals));
        if (!filter.is_ok()) return Status(filter.status().code(), "--map: " + filter.status().message());
        RoleChoice choice;
        choice.ignore = word == kIgnore;
        if (!choice.ignore) choice.role = *model::parse_role(word);
        rows->emplace_back(std::move(filter).value(), choice);
    }
    if (rows->empty()) return exchange::RoleChooser();
    return exchange::RoleChooser([rows](std::string_view tag) -> std::optional<RoleChoice> {
        for (const auto& [filter, choice] : *rows)
            if (filter.matches(tag)) return choice;
        return std::nullopt;
    });
}

std::string problem_in_words(const ImportProblem& problem) {
    return base::format("{}: offset {}: {}{}", base::printable(problem.file), problem.offset,
                        base::printable(problem.what),
                        problem.tail ? " (at the end: what a crash leaves behind)" : "; it is left out");
}

class ImportVerb final : public Verb {
  public:
    void declare(OptionSet& options) override {
        options.text({.names = "LOGDIR",
                      .placeholder = "LOGDIR",
                      .help = "A directory with event files in it or below, one such file, or a "
                              "directory that the SageMaker Debugger client wrote.",
                      .completes = Completes::kDirectory,
                      .positional = true,
                      .required = true},
                     from_);
        options.text({.names = "-o,--to",
                      .placeholder = "RUN",
                      .help = "The run to make: a name under the runs root, or a path.",
                      .completes = Completes::kDirectory},
                     to_);
        options.texts(
            {.names = "--map",
             .placeholder = "REGEX=ROLE",
             .help = "Tags with this in them have this role (loss, metric, gradient, weight, ...), or "
                     "'ignore'; the first that matches decides."},
            map_, false);
        options.flag({.names = "--json", .help = "Print a summary as JSON."}, json_);
        declare_runs(options, runs_);
    }

    int run(Console& console) override {
        storage::FileSystem& files = storage::posix_file_system();
        if (to_.empty())
            return fail(console,
                        {Code::kInvalidArgument, "--to: say how the run is to be called, as in --to old"});
        const auto role = parse_map(map_);
        if (!role.is_ok()) return fail(console, role.status());
        const bool is_path = to_.find('/') != std::string::npos;
        const std::string path = is_path ? to_ : runs_root(runs_) + "/" + to_;
        if (!storage::is_valid_run_id(base_name(path)))
            return fail(console,
                        {Code::kInvalidArgument,
                         base::format("--to: '{}' is no name of a run: letters, digits, '.', '_' and "
                                      "'-' only",
                                      base::printable(base_name(path)))});
        if (files.exists(path))
            return fail(console, {Code::kAlreadyExists, base::format("{}: exists already; take another name",
                                                                     base::printable(path))});
        if (!is_path)
            if (const Status status = files.create_directories(runs_root(runs_)); !status.is_ok())
                return fail(console, status);
        const bool is_smdebug = exchange::is_smdebug(from_, files);
        ProgressLine progress(console, "importing",
                              is_smdebug ? ProgressLine::Unit::kSteps : ProgressLine::Unit::kBytes);
        exchange::ImportRequest request;
        request.from = from_;
        request.to = path;
        request.command = redacted({"traindbg", "import", from_, "--to", to_});
        request.role = *role;
        request.progress = [&](std::uint64_t done, std::uint64_t total) { progress.show(done, total); };
        const auto result =
            is_smdebug ? exchange::import_smdebug(request) : exchange::import_tensorboard(request);
        progress.clear();
        if (!result.is_ok()) return fail(console, result.status());
        tell(*result, console);
        if (json_) print_json(path, *result, console);
        else if (is_smdebug)
            console.out(base::format("{}: {} steps of {} tensors of {} workers\n", base::printable(path),
                                     result->steps, result->tensors, result->workers));
        else
            console.out(
                base::format("{}: {} steps of {} tensors from {} scalars and {} histograms in {} files\n",
                             base::printable(path), result->steps, result->tensors, result->scalars,
                             result->histograms, result->files));
        return kExitClean;
    }

  private:
    static void tell(const ImportResult& result, const Console& console) {
        for (std::size_t i = 0; i < std::min(result.problems.size(), kMostShown); ++i)
            console.warn(problem_in_words(result.problems[i]));
        if (result.problems_in_all > kMostShown)
            console.warn(base::format("and {} more places that could not be read; --json names the first 100",
                                      result.problems_in_all - kMostShown));
        if (result.replaced > 0)
            console.warn(
                base::format("{} values were written again for the same step (a restart?); the later "
                             "ones were taken",
                             result.replaced));
        if (result.skipped > 0)
            console.warn(
                base::format("{} values of other kinds (images, text, ...), ignored or empty, were "
                             "left out",
                             result.skipped));
        for (const std::string& note : result.notes) console.warn(note);
    }

    void print_json(const std::string& path, const ImportResult& result, Console& console) const {
        model::Json problems = model::Json::array();
        for (const ImportProblem& problem : result.problems)
            problems.push_back({{"file", base::printable(problem.file)},
                                {"offset", problem.offset},
                                {"bytes", problem.bytes},
                                {"what", base::printable(problem.what)},
                                {"tail", problem.tail}});
        model::Json notes = model::Json::array();
        for (const std::string& note : result.notes) notes.push_back(note);
        console.out(model::Json{{"schema_version", 1},
                                {"from", base::printable(from_)},
                                {"run", base::printable(path)},
                                {"files", result.files},
                                {"bytes", result.bytes},
                                {"events", result.events},
                                {"scalars", result.scalars},
                                {"histograms", result.histograms},
                                {"replaced", result.replaced},
                                {"skipped", result.skipped},
                                {"steps", result.steps},
                                {"tensors", result.tensors},
                                {"workers", result.workers},
                                {"problems_in_all", result.problems_in_all},
                                {"problems", std::move(problems)},
                                {"notes", std::move(notes)}}
                        .dump(2) +
                    "\n");
    }

    std::string from_;
    std::string to_;
    std::string runs_;
    std::vector<std::string> map_;
    bool json_ = false;
};

}  // namespace

VerbEntry import_verb() {
    return {
        .name = "import",
        .summary = "Make a run of a TensorBoard log, so that the rules can judge it.",
        .usage = "[options] LOGDIR --to RUN",
        .about =
            "Reads TensorBoard's event files (scalars and histograms) into a new run. Losses, gradients, "
            "weights and modes are told by the names of tags; docs/export.md has the rules, --map overrides "
            "them. A directory of the SageMaker Debugger client is imported, too. Places that are damaged "
            "are "
            "named, and everything else is imported.",
        .examples =
            "  traindbg import runs/Nov21_10-30-00 --to old && traindbg check old\n"
            "  traindbg import logs --to fixed --map '^cost=loss' --map '^debug/=ignore'\n",
        .make = []() -> std::unique_ptr<Verb> { return std::make_unique<ImportVerb>(); }};
}

}  // namespace traindbg::cli

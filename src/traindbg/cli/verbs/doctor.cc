#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/base/version.h"
#include "traindbg/cli/bootstrap.h"
#include "traindbg/cli/exit_code.h"
#include "traindbg/cli/process.h"
#include "traindbg/cli/run_location.h"
#include "traindbg/cli/run_names.h"
#include "traindbg/cli/verb.h"

namespace traindbg::cli {
namespace {

enum class Health { kOk, kWarn, kFail };

struct Check {
    std::string name;
    Health health = Health::kOk;
    std::string what;    // what was seen
    std::string remedy;  // what to do, unless all is well
};

std::string_view word_of(Health health) {
    switch (health) {
        case Health::kOk: return "ok";
        case Health::kWarn: return "warn";
        case Health::kFail: return "fail";
    }
    return "fail";
}

// The interpreter says line by line what it has; each line may be missing.
constexpr const char* kQuestions =
    "import sys, importlib.util as u\n"
    "print('python', sys.version.split()[0], sys.executable)\n"
    "for name in ('traindbg', 'torch'):\n"
    "    if u.find_spec(name) is None:\n"
    "        continue\n"
    "    try:\n"
    "        module = __import__(name)\n"
    "        print(name, getattr(module, '__version__', 'unknown'))\n"
    "    except BaseException as error:\n"
    "        print(name, 'broken', type(error).__name__ + ': ' + ' '.join(str(error).split())[:200])\n"
    "core = u.find_spec('traindbg') and u.find_spec('traindbg._core')\n"
    "print('core', bool(core))\n";

// What follows `name` in the answer.
std::string answer_of(const std::string& answer, std::string_view name) {
    std::size_t start = 0;
    while (start < answer.size()) {
        const std::size_t end = std::min(answer.find('\n', start), answer.size());
        const std::string_view line = std::string_view(answer).substr(start, end - start);
        if (line.starts_with(name) && line.substr(name.size()).starts_with(' '))
            return base::printable(line.substr(name.size() + 1));
        start = end + 1;
    }
    return {};
}

class DoctorVerb final : public Verb {
  public:
    void declare(OptionSet& options) override {
        options.text(
            {.names = "--python",
             .placeholder = "PYTHON",
             .help = "The interpreter that runs your training (default: python, else python3, in PATH).",
             .completes = Completes::kFile},
            python_);
        declare_runs(options, runs_);
        options.flag({.names = "--json", .help = "Print JSON."}, json_);
    }

    int run(Console& console) override {
        std::vector<Check> checks;
        checks.push_back(
            {"traindbg", Health::kOk, base::format("{}, {}", base::version(), executable_directory()), ""});
        check_python(checks);
        check_bootstrap(checks);
        check_runs(checks);
        check_inotify(checks);
        const bool failed = std::any_of(checks.begin(), checks.end(),
                                        [](const Check& check) { return check.health == Health::kFail; });
        if (json_) print_json(checks, console);
        else print_lines(checks, console);
        return failed ? kExitFired : kExitClean;
    }

  private:
    void check_python(std::vector<Check>& checks) {
        Captured answer;
        std::string asked = python_;
        for (const std::string& candidate : python_.empty() ? std::vector<std::string>{"python", "python3"}
                                                            : std::vector<std::string>{python_}) {
            asked = candidate;
            answer = run_and_capture({candidate, "-c", kQuestions}, {}, std::chrono::seconds(120));
            if (answer.exit_code == 0) break;
        }
        const std::string python = answer_of(answer.output, "python");
        if (answer.exit_code != 0 || python.empty()) {
            checks.push_back({"python", Health::kFail, base::printable(asked) + " does not run",
                              "activate your training's environment, or name its interpreter with --python"});
            return;
        }
        checks.push_back({"python", Health::kOk, python, ""});

        const std::string package = answer_of(answer.output, "traindbg");
        if (package.empty())
            checks.push_back({"package", Health::kFail, "this Python has no traindbg",
                              "install traindbg into this environment"});
        else if (package.starts_with("broken"))
            checks.push_back({"package", Health::kFail, "import traindbg fails: " + package.substr(7),
                              "install traindbg again into this environment"});
        else if (package != base::version())
            checks.push_back({"package", Health::kWarn,
                              base::format("traindbg {} in Python, {} here", package, base::version()),
                              "install one version of both: start the traindbg of the same environment"});
        else if (answer_of(answer.output, "core") != "True")
            checks.push_back({"package", Health::kFail, "traindbg has no compiled core in this Python",
                              "install traindbg again: the source tree alone is not enough"});
        else checks.push_back({"package", Health::kOk, "traindbg " + package, ""});

        const std::string torch = answer_of(answer.output, "torch");
        if (torch.empty())
            checks.push_back(
                {"torch", Health::kWarn, "this Python has no torch",
                 "install PyTorch where your training runs, or name its interpreter with --python"});
        else if (torch.starts_with("broken"))
            checks.push_back({"torch", Health::kFail, "import torch fails: " + torch.substr(7),
                              "mend the installation of PyTorch"});
        else if (torch.starts_with("1."))
            checks.push_back(
                {"torch", Health::kWarn, "torch " + torch, "use PyTorch 2: older ones are not tested"});
        else checks.push_back({"torch", Health::kOk, "torch " + torch, ""});
    }

    static void check_bootstrap(std::vector<Check>& checks) {
        const auto bootstrap = find_bootstrap(executable_directory());
        if (bootstrap.is_ok()) checks.push_back({"bootstrap", Health::kOk, base::printable(*bootstrap), ""});
        else
            checks.push_back({"bootstrap", Health::kFail, bootstrap.status().message(),
                              "install the traindbg package beside this program"});
    }

    // Runs are recorded on this machine; a bucket is where they are read from.
    static void check_bucket(std::vector<Check>& checks, const std::string& root) {
        base::Status status;
        if (auto location = RunLocation::of("", root); location.is_ok())
            status = location->files().list(root).status();
        else status = location.status();
        const bool is_readable = status.is_ok() || status.code() == base::Code::kNotFound;
        checks.push_back({"runs", is_readable ? Health::kOk : Health::kFail,
                          is_readable ? base::printable(root) + " can be read" : status.message(),
                          is_readable
                              ? ""
                              : "look at the credentials, region and endpoint in the environment and in "
                                "~/.aws, or choose another place with --runs or TRAINDBG_RUNS"});
    }

    void check_runs(std::vector<Check>& checks) const {
        if (const std::string named = runs_root(runs_); is_remote(named)) return check_bucket(checks, named);
        const std::string root = absolute_path(runs_root(runs_));
        // The nearest directory that is there: the rest would be made.
        std::filesystem::path there = root;
        std::error_code error;
        while (!std::filesystem::exists(there, error) && there.has_parent_path() &&
               there != there.parent_path())
            there = there.parent_path();
        // Asked by doing it: permissions alone do not tell about read-only and special file systems.
        std::string probe = (there / ".traindbg-doctor-XXXXXX").string();
        const bool usable = ::mkdtemp(probe.data()) != nullptr;
        if (usable) ::rmdir(probe.c_str());
        checks.push_back({"runs", usable ? Health::kOk : Health::kFail,
                          base::printable(root) + (usable ? "" : " cannot be written"),
                          usable ? "" : "choose another place with --runs or TRAINDBG_RUNS"});
        const std::filesystem::space_info space = std::filesystem::space(there, error);
        if (error) {
            checks.push_back(
                {"disk", Health::kWarn, "free space is not known: " + error.message(), "look with df"});
            return;
        }
        constexpr std::uintmax_t kLittle = 1'000'000'000;
        constexpr std::uintmax_t kTooLittle = 50'000'000;
        const Health health = space.available < kTooLittle ? Health::kFail
                              : space.available < kLittle  ? Health::kWarn
                                                           : Health::kOk;
        checks.push_back({"disk", health, base::human_bytes(space.available) + " free",
                          health == Health::kOk ? "" : "make room, or choose another place with --runs"});
    }

    static void check_inotify(std::vector<Check>& checks) {
        const int descriptor = ::inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
        const bool watches = descriptor >= 0 && ::inotify_add_watch(descriptor, "/", IN_CREATE) >= 0;
        const int error = errno;
        if (descriptor >= 0) ::close(descriptor);
        checks.push_back({"inotify", watches ? Health::kOk : Health::kWarn,
                          watches ? "new steps are seen at once"
                                  : base::Status::from_errno("not to be had", error).message(),
                          watches ? ""
                                  : "nothing is lost: runs are looked at every 20 ms instead; raise "
                                    "fs.inotify.max_user_instances and max_user_watches"});
    }

    static void print_json(const std::vector<Check>& checks, Console& console) {
        nlohmann::ordered_json list = nlohmann::ordered_json::array();
        for (const Check& check : checks)
            list.push_back({{"name", check.name},
                            {"state", word_of(check.health)},
                            {"what", base::printable(check.what)},
                            {"remedy", check.remedy}});
        console.out(nlohmann::ordered_json{{"schema_version", 1}, {"checks", std::move(list)}}.dump(2) +
                    "\n");
    }

    static void print_lines(const std::vector<Check>& checks, Console& console) {
        for (const Check& check : checks) {
            const Style style = check.health == Health::kOk     ? Style::kGreen
                                : check.health == Health::kWarn ? Style::kYellow
                                                                : Style::kRed;
            console.out(base::format("{}  {}  {}\n",
                                     padded(styled(word_of(check.health), style, console.out_colour()), 4),
                                     padded(check.name, 9), check.what));
            if (!check.remedy.empty()) console.out(base::format("{:17}{}\n", "", check.remedy));
        }
    }

    std::string python_;
    std::string runs_;
    bool json_ = false;
};

}  // namespace

VerbEntry doctor_verb() {
    return {
        .name = "doctor",
        .summary = "Check that trainings can be recorded here.",
        .usage = "[options]",
        .about =
            "Looks at what a recorded training needs: Python, the traindbg package and PyTorch in it, the "
            "place where runs lie, its free space, and notifications of the file system. Each line is ok, "
            "warn or fail, with the remedy. Exits with 1 when one fails.",
        .examples = "  traindbg doctor\n  traindbg doctor --python .venv/bin/python\n",
        .make = []() -> std::unique_ptr<Verb> { return std::make_unique<DoctorVerb>(); }};
}

}  // namespace traindbg::cli

#include "traindbg/cli/program.h"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <exception>
#include <string>
#include <vector>

#include "traindbg/base/text.h"
#include "traindbg/base/version.h"
#include "traindbg/cli/console.h"
#include "traindbg/cli/exit_code.h"
#include "traindbg/cli/judge_process.h"
#include "traindbg/cli/other_runs.h"
#include "traindbg/cli/run_location.h"
#include "traindbg/cli/verb.h"
#include "traindbg/storage/pipe_file_system.h"

namespace traindbg::cli {
namespace {

using Arguments = std::vector<std::string>;

struct Found {
    const VerbEntry* entry = nullptr;
    std::size_t words = 0;  // of the command line that name it
};

// The verb of the longest name that `arguments` begin with.
Found find_verb(const Arguments& arguments) {
    Found found;
    for (const VerbEntry& entry : all_verbs()) {
        const std::size_t space = entry.name.find(' ');
        const std::size_t words = space == std::string_view::npos ? 1 : 2;
        if (arguments.size() < words || arguments[0] != entry.name.substr(0, space)) continue;
        if (words == 2 && arguments[1] != entry.name.substr(space + 1)) continue;
        if (words > found.words) found = {&entry, words};
    }
    return found;
}

// The entries below a first word that is no verb by itself: `rules`.
std::vector<const VerbEntry*> entries_below(std::string_view word) {
    std::vector<const VerbEntry*> entries;
    for (const VerbEntry& entry : all_verbs())
        if (entry.name.starts_with(word) && entry.name.substr(word.size()).starts_with(' '))
            entries.push_back(&entry);
    return entries;
}

int run_verb_entry(const VerbEntry& entry, const Arguments& arguments, Console& console) {
    const std::unique_ptr<Verb> verb = entry.make();
    OptionSet options(entry.name);
    verb->declare(options);
    CommonOptions common;
    common.declare(options);

    // --help counts wherever it stands, unless it is an argument of somebody else's command.
    bool wants_help = false;
    for (const std::string& argument : arguments) {
        if (argument == "--" || (options.takes_command() && !argument.starts_with("-"))) break;
        wants_help = wants_help || argument == "--help" || argument == "-h";
    }
    if (wants_help) {
        console.out(help_page(entry, options, console.out_colour()));
        return kExitClean;
    }
    if (const base::Status parsed = options.parse(arguments); !parsed.is_ok()) return fail(console, parsed);
    if (const auto mode = parse_colour_mode(common.color); !mode.is_ok()) return fail(console, mode.status());
    console.set_colour(common.color);
    return verb->run(console);
}

int unknown_verb(const std::string& word, const Console& console) {
    std::vector<std::string> names;
    for (const VerbEntry& entry : all_verbs()) names.emplace_back(entry.name);
    return fail(console, {base::Code::kInvalidArgument, "'" + base::printable(word) + "' is not a command" +
                                                            base::did_you_mean(word, names) +
                                                            "; traindbg --help lists the commands"});
}

int serve_files_of(const std::string& url, const Console& console) {
    // Ctrl-C is for the process that started us; we end when it does.
    ::signal(SIGINT, SIG_IGN);
    ::signal(SIGPIPE, SIG_IGN);
    const auto location = RunLocation::of(url, std::string());
    if (!location.is_ok()) return fail(console, location.status());
    const base::Status served = storage::serve_files(location->files(), STDIN_FILENO, STDOUT_FILENO);
    return served.is_ok() ? kExitClean : fail(console, served);
}

int dispatch(Arguments arguments, Console& console) {
    open_other_runs_below(std::string());
    if (arguments.empty()) {
        console.error(program_help(console.error_colour()));
        return kExitUsage;
    }
    if (arguments[0] == "help") {
        arguments.erase(arguments.begin());
        if (!arguments.empty()) arguments.emplace_back("--help");
    }
    if (arguments.empty() || arguments[0] == "--help" || arguments[0] == "-h") {
        console.out(program_help(console.out_colour()));
        return kExitClean;
    }
    // Not for people: how the Python package reads from a bucket (storage/pipe_file_system.h).
    if (arguments[0] == "--serve-files" && arguments.size() == 2)
        return serve_files_of(arguments[1], console);
    // Not for people: how a judge starts the processes that it spreads its rules over (spread_judge.h).
    if (arguments[0] == "--judge" && arguments.size() == 2) return serve_judging(arguments[1], console);
    if (arguments[0] == "--version" || arguments[0] == "-V") arguments[0] = "version";

    if (const Found found = find_verb(arguments); found.entry != nullptr) {
        arguments.erase(arguments.begin(), arguments.begin() + static_cast<std::ptrdiff_t>(found.words));
        return run_verb_entry(*found.entry, arguments, console);
    }
    const std::vector<const VerbEntry*> below = entries_below(arguments[0]);
    if (below.empty()) return unknown_verb(arguments[0], console);
    if (arguments.size() > 1 && !arguments[1].starts_with("-"))
        return unknown_verb(arguments[0] + " " + arguments[1], console);
    const bool help = arguments.size() > 1 && (arguments[1] == "--help" || arguments[1] == "-h");
    std::string text = "usage:\n";
    for (const VerbEntry* entry : below) {
        text += "  traindbg " + padded(std::string(entry->name) + " " + std::string(entry->usage), 32) + "  ";
        text += entry->summary;
        text += '\n';
    }
    if (help) console.out(text);
    else console.error(text);
    return help ? kExitClean : kExitUsage;
}

}  // namespace

void CommonOptions::declare(OptionSet& options) {
    options.group("Common");
    options.flag({.names = "-h,--help", .help = "Show this page."}, help);
    options.text({.names = "--color",
                  .placeholder = "WHEN",
                  .help = "Colours: auto (default), always, never. TRAINDBG_COLOR and NO_COLOR work too.",
                  .choices = {"auto", "always", "never"}},
                 color);
}

int fail(const Console& console, const base::Status& status) {
    console.complain(status.message());
    return exit_code_of(status);
}

int run_program(int argc, char** argv) noexcept {
    try {
        Console console;
        int code = dispatch(Arguments(argv + std::min(argc, 1), argv + argc), console);
        if (!console.flush()) {
            console.complain("standard output: could not be written; is the disk full?");
            if (code == kExitClean) code = kExitInternal;
        }
        return code;
    } catch (const std::exception& error) {
        // Nothing of ours throws: this is memory that is not to be had, or a defect.
        constexpr std::string_view kWhat = "traindbg: internal error: ";
        write_all(STDERR_FILENO, kWhat);
        write_all(STDERR_FILENO, error.what());
        write_all(STDERR_FILENO, "\n");
        return kExitInternal;
    }
}

}  // namespace traindbg::cli

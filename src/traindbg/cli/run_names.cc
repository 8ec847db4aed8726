#include "traindbg/cli/run_names.h"

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <filesystem>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/cli/run_files.h"
#include "traindbg/cli/run_location.h"
#include "traindbg/storage/run_layout.h"

namespace traindbg::cli {
namespace {

bool is_run(const std::string& path, storage::FileSystem& files) {
    return files.exists(storage::RunLayout{path}.run_json());
}

// What a script is called, as part of a run's name: "train" of "python -u src/train.py --lr 1".
std::string script_word(const std::vector<std::string>& command) {
    std::string best = command.empty() ? "run" : command.front();
    for (std::size_t i = 1; i < command.size(); ++i) {
        if (command[i] == "-m" && i + 1 < command.size()) {
            best = command[i + 1];
            break;
        }
        if (command[i].ends_with(".py")) {
            best = command[i];
            break;
        }
    }
    best = base_name(best);
    if (best.ends_with(".py")) best.resize(best.size() - 3);
    std::string word;
    for (const char letter : best) {
        const bool good = (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
                          (letter >= '0' && letter <= '9') || letter == '_' || letter == '-';
        word += good ? letter : '_';
    }
    constexpr std::size_t kMostLetters = 40;
    word = word.substr(0, kMostLetters);
    return word.empty() ? "run" : word;
}

}  // namespace

std::string base_name(std::string_view path) {
    while (path.size() > 1 && path.back() == '/') path.remove_suffix(1);
    const std::size_t slash = path.rfind('/');
    return std::string(slash == std::string_view::npos || path.size() == 1 ? path : path.substr(slash + 1));
}

std::string absolute_path(const std::string& path) {
    std::error_code error;
    const std::filesystem::path absolute = std::filesystem::absolute(path, error);
    if (error) return path;
    std::string text = absolute.lexically_normal().string();
    while (text.size() > 1 && text.back() == '/') text.pop_back();
    return text;
}

void declare_run(options::OptionSet& options, std::string& value) {
    options.text({.names = "RUN",
                  .placeholder = "RUN",
                  .help = "A run's directory, its s3:// URL, its name, or last.",
                  .completes = options::Completes::kRun,
                  .positional = true,
                  .required = true},
                 value);
}

void declare_runs(options::OptionSet& options, std::string& value) {
    options.text(
        {.names = "--runs",
         .placeholder = "DIR",
         .help = "Where runs lie, a directory or s3:// URL (default: TRAINDBG_RUNS, or ./traindbg-runs).",
         .completes = options::Completes::kDirectory},
        value);
}

std::string runs_root(const std::string& option) {
    const char* setting = std::getenv("TRAINDBG_RUNS");
    std::string root = option;
    if (root.empty()) root = setting != nullptr && *setting != '\0' ? setting : "traindbg-runs";
    while (is_remote(root) && root.ends_with('/')) root.pop_back();
    return root;
}

std::vector<std::string> run_names(const std::string& root, storage::FileSystem& files) {
    std::vector<std::string> names;
    auto entries = files.list(root);
    if (!entries.is_ok()) return names;
    for (const storage::DirectoryEntry& entry : *entries)
        if (entry.is_directory && storage::is_valid_run_id(entry.name) &&
            is_run(root + "/" + entry.name, files))
            names.push_back(entry.name);
    return names;
}

base::Result<std::string> resolve_run(const std::string& argument, const std::string& root,
                                      storage::FileSystem& files) {
    const auto missing = [&](const std::string& why) { return base::Status(base::Code::kNotFound, why); };
    if (is_remote(argument)) {
        std::string url = argument;
        while (url.ends_with('/')) url.pop_back();
        // Opened, not looked for: what is wrong with the bucket or the credentials is to be told.
        const auto file = files.open(storage::RunLayout{url}.run_json());
        if (file.is_ok()) return url;
        if (file.status().code() != base::Code::kNotFound) return file.status();
        return missing(
            base::format("{}: no run is there (no RUN.json); traindbg ls --runs {} shows the runs there are",
                         base::printable(argument), base::printable(url.substr(0, url.rfind('/')))));
    }
    if (argument == "last") {
        std::string newest;
        std::int64_t newest_start = 0;
        for (const std::string& name : run_names(root, files)) {
            const std::string path = root + "/" + name;
            const auto meta = read_run_meta(path, files);
            const std::int64_t start = meta.is_ok() ? meta->started_wall_nanos : 0;
            if (newest.empty() || start >= newest_start) {
                newest = path;
                newest_start = start;
            }
        }
        if (!newest.empty()) return newest;
        return missing(
            base::format("last: there is no run in {}; record one with traindbg run, or say where "
                         "runs lie with TRAINDBG_RUNS or --runs",
                         base::printable(root)));
    }
    if (argument.find('/') == std::string::npos && storage::is_valid_run_id(argument)) {
        const std::string path = root + "/" + argument;
        if (is_run(path, files)) return path;
    }
    if (is_run(argument, files)) return absolute_path(argument);
    const std::string shown = base::printable(argument);
    if (argument.find('/') != std::string::npos || files.exists(argument))
        return missing(
            files.exists(argument)
                ? base::format("{}: not a run (it holds no RUN.json); traindbg ls shows the runs there are",
                               shown)
                : base::format("{}: no such directory; traindbg ls shows the runs there are", shown));
    const std::vector<std::string> names = run_names(root, files);
    return missing(base::format("{}: no run of that name in {}{}; traindbg ls shows the runs there are",
                                shown, base::printable(root), base::did_you_mean(argument, names)));
}

std::string new_run_name(const std::vector<std::string>& command, std::int64_t wall_nanos) {
    const auto seconds = static_cast<std::time_t>(wall_nanos / 1'000'000'000);
    std::tm parts{};
    localtime_r(&seconds, &parts);
    return base::format("{:04}{:02}{:02}-{:02}{:02}{:02}-{}", parts.tm_year + 1900, parts.tm_mon + 1,
                        parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec, script_word(command));
}

std::string shell_word(const std::string& word) {
    const bool plain = !word.empty() && std::all_of(word.begin(), word.end(), [](char letter) {
        return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
               (letter >= '0' && letter <= '9') || std::strchr("._-/+=:,@%", letter) != nullptr;
    });
    if (plain) return word;
    std::string out = "'";
    for (const char letter : base::printable(word)) {
        if (letter == '\'') out += "'\\''";
        else out += letter;
    }
    return out + "'";
}

}  // namespace traindbg::cli

#include "traindbg/options/settings_file.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <optional>
#include <vector>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/options/run_options.h"
#include "traindbg/storage/file_system.h"

namespace traindbg::options {
namespace {

using base::Code;
using base::Result;
using base::Status;

settings::Form form_of(const std::string& path) {
    return path == "pyproject.toml" || path.ends_with("/pyproject.toml") ? settings::Form::kPyproject
                                                                         : settings::Form::kTraindbg;
}

Result<SettingsFile> read(const std::string& path) {
    TRAINDBG_ASSIGN_OR_RETURN(const base::ByteBuffer bytes,
                              storage::read_whole(storage::posix_file_system(), path, settings::kMostBytes));
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    SettingsFile file;
    file.path = path;
    TRAINDBG_ASSIGN_OR_RETURN(file.settings, settings::parse(text, base::printable(path), form_of(path)));
    return file;
}

bool is_empty(const settings::Settings& settings) {
    return settings.options.empty() && settings.rule_settings.empty() && settings.collections.empty() &&
           settings.captures.empty();
}

// The path that is named, and by whom; no path where nothing is.
struct Named {
    std::string path;
    std::string_view by;
};

Named named(const std::string& config, std::string_view named_by) {
    if (!config.empty()) return {config, named_by};
    const char* const variable = std::getenv("TRAINDBG_CONFIG");
    return {variable != nullptr ? variable : "", "TRAINDBG_CONFIG"};
}

Status check_keys(const SettingsFile& file, const OptionSet& options) {
    const std::vector<std::string> known = options.settable();
    for (const settings::Setting& setting : file.settings.options) {
        if (std::find(known.begin(), known.end(), setting.name) != known.end()) continue;
        std::vector<std::string> words = known;
        words.insert(words.end(), {"rule", "collection", "capture"});
        return {Code::kInvalidArgument,
                base::format("{}: unknown key '{}'{}; traindbg run --help says which options may stand there",
                             setting.origin, base::printable(setting.name),
                             base::did_you_mean(setting.name, words))};
    }
    return Status::ok();
}

// What the environment says of the options.
std::vector<settings::Setting> environment_of(const OptionSet& options) {
    std::vector<settings::Setting> environment;
    for (const std::string& name : options.settable()) {
        const std::string variable = environment_name(name);
        const char* value = std::getenv(variable.c_str());
        if (value != nullptr && *value != '\0') environment.push_back({name, {value}, variable});
    }
    return environment;
}

constexpr std::string_view kPrefix = "TRAINDBG_";

// Those that are no option's. A new one that is read anywhere belongs here.
constexpr std::array kOtherVariables = {
    // The program and the training.
    "TRAINDBG_RUNS", "TRAINDBG_CONFIG", "TRAINDBG_RUN_DIR", "TRAINDBG_BOOTSTRAP", "TRAINDBG_PYTHON",
    "TRAINDBG_PROGRAM", "TRAINDBG_LOG", "TRAINDBG_COLOR", "TRAINDBG_CACHE_MIB", "TRAINDBG_S3_ADDRESSING",
    "TRAINDBG_STRICT", "TRAINDBG_KERNEL", "TRAINDBG_DEVICE_PATH", "TRAINDBG_DEVICE_KERNELS",
    "TRAINDBG_DEVICE_BEHIND",
    // What the commands of --notify are given; one of them may start a training.
    "TRAINDBG_RULE", "TRAINDBG_SEVERITY", "TRAINDBG_STEP", "TRAINDBG_PLACE", "TRAINDBG_MESSAGE",
    "TRAINDBG_RUN", "TRAINDBG_FINDING_ID",
    // How it is set up, built and tested.
    "TRAINDBG_BENCHMARKS", "TRAINDBG_CCACHE", "TRAINDBG_EXE", "TRAINDBG_EXECUTABLE", "TRAINDBG_FIXTURES",
    "TRAINDBG_FUZZERS", "TRAINDBG_GTEST_SOURCE", "TRAINDBG_MOLD", "TRAINDBG_MOTO_SERVER",
    "TRAINDBG_ORIGINAL_ENV", "TRAINDBG_POWER_LOSSES", "TRAINDBG_PRECOMPILE", "TRAINDBG_SANITIZE",
    "TRAINDBG_SETUP_BROWSER", "TRAINDBG_SOURCE", "TRAINDBG_TESTS", "TRAINDBG_UP_TO", "TRAINDBG_WERROR",
    "TRAINDBG_WRITE_RULE_PAGES"};

}  // namespace

Result<SettingsFile> named_settings(const std::string& config, std::string_view named_by) {
    const Named found = named(config, named_by);
    if (found.path.empty() || found.path == "none") return SettingsFile();
    Result<SettingsFile> file = read(found.path);
    if (file.is_ok()) return file;
    if (file.status().code() != Code::kNotFound)
        return Status(Code::kInvalidArgument, file.status().message());
    return Status(Code::kNotFound,
                  base::format("{}: {}: there is no such file; 'none' means no settings file", found.by,
                               base::printable(found.path)));
}

Result<SettingsFile> find_settings(const std::string& config) {
    constexpr std::string_view kOption = "--config";
    if (!named(config, kOption).path.empty()) return named_settings(config, kOption);
    for (const char* usual : {"traindbg.toml", "pyproject.toml"}) {
        Result<SettingsFile> file = read(usual);
        if (file.status().code() == Code::kNotFound) continue;
        if (file && is_empty(file->settings)) continue;
        if (file.status().code() == Code::kUnsupported) continue;
        return file;
    }
    return SettingsFile();
}

Status apply_settings(const SettingsFile& file, OptionSet& options) {
    TRAINDBG_RETURN_IF_ERROR(check_keys(file, options));
    TRAINDBG_RETURN_IF_ERROR(options.apply(environment_of(options)));
    return apply_file(file, options);
}

Status apply_file(const SettingsFile& file, OptionSet& options) {
    TRAINDBG_RETURN_IF_ERROR(check_keys(file, options));
    TRAINDBG_RETURN_IF_ERROR(options.apply(file.settings.options));
    options.apply_rest(file.settings);
    return Status::ok();
}

std::string environment_name(std::string_view option) {
    std::string name(kPrefix);
    for (const char each : option)
        name += each == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(each)));
    return name;
}

std::vector<std::string> unknown_variables(std::span<const std::string> environment,
                                           std::span<const std::string> words) {
    std::vector<std::string> known(kOtherVariables.begin(), kOtherVariables.end());
    for (const std::string& option : run_option_names()) known.push_back(environment_name(option));
    std::vector<std::string> endings;
    for (const std::string& name : known) endings.push_back(name.substr(kPrefix.size()));
    const auto is_somebodys = [&](const std::string& name) {
        const auto names_it = [reference = "env:" + name](const std::string& text) {
            return text.find(reference) != std::string::npos;
        };
        return std::any_of(words.begin(), words.end(), names_it) ||
               std::any_of(environment.begin(), environment.end(), names_it);
    };
    std::vector<std::string> out;
    for (const std::string& variable : environment) {
        const std::size_t equals = variable.find('=');
        if (!variable.starts_with(kPrefix) || equals == std::string::npos || equals + 1 == variable.size())
            continue;
        const std::string name = variable.substr(0, equals);
        if (std::find(known.begin(), known.end(), name) != known.end() || is_somebodys(name)) continue;
        // Compared without what all begin with.
        const std::optional<std::string> near = base::nearest_match(name.substr(kPrefix.size()), endings);
        out.push_back(base::format(
            "{}: traindbg knows no such variable, and it counts nothing{}", base::printable(name),
            near ? base::format(" (did you mean '{}{}'?)", kPrefix, *near) : std::string()));
    }
    return out;
}

}  // namespace traindbg::options

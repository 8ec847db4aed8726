#include "traindbg/cli/settings_file.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <vector>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/storage/file_system.h"

namespace traindbg::cli {
namespace {

using base::Code;
using base::Result;
using base::Status;

Result<SettingsFile> read(const std::string& path, settings::Form form) {
    TRAINDBG_ASSIGN_OR_RETURN(const base::ByteBuffer bytes,
                              storage::read_whole(storage::posix_file_system(), path, settings::kMostBytes));
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    SettingsFile file;
    file.path = path;
    TRAINDBG_ASSIGN_OR_RETURN(file.settings, settings::parse(text, base::printable(path), form));
    return file;
}

settings::Form form_of(const std::string& path) {
    return path == "pyproject.toml" || path.ends_with("/pyproject.toml") ? settings::Form::kPyproject
                                                                         : settings::Form::kTraindbg;
}

bool is_empty(const settings::Settings& settings) {
    return settings.options.empty() && settings.rule_settings.empty() && settings.collections.empty() &&
           settings.captures.empty();
}

}  // namespace

Result<SettingsFile> find_settings(const std::string& config) {
    const char* variable = std::getenv("TRAINDBG_CONFIG");
    const bool is_from_variable = config.empty() && variable != nullptr && *variable != '\0';
    const std::string named = is_from_variable ? variable : config;
    if (named == "none") return SettingsFile();
    if (!named.empty()) {
        Result<SettingsFile> file = read(named, form_of(named));
        if (file.status().code() != Code::kNotFound) return file;
        return Status(
            Code::kNotFound,
            base::format("{}: {}: there is no such file; 'none' means no settings file",
                         is_from_variable ? "TRAINDBG_CONFIG" : "--config", base::printable(named)));
    }
    for (const char* usual : {"traindbg.toml", "pyproject.toml"}) {
        Result<SettingsFile> file = read(usual, form_of(usual));
        if (file.status().code() == Code::kNotFound) continue;
        if (file && is_empty(file->settings)) continue;
        if (file.status().code() == Code::kUnsupported) continue;
        return file;
    }
    return SettingsFile();
}

Status apply_settings(const SettingsFile& file, OptionSet& options) {
    const std::vector<std::string> known = options.settable();
    std::vector<settings::Setting> environment;
    for (const std::string& name : known) {
        const std::string variable = environment_name(name);
        const char* value = std::getenv(variable.c_str());
        if (value != nullptr && *value != '\0') environment.push_back({name, {value}, variable});
    }
    for (const settings::Setting& setting : file.settings.options) {
        if (std::find(known.begin(), known.end(), setting.name) != known.end()) continue;
        std::vector<std::string> words = known;
        words.insert(words.end(), {"rule", "collection", "capture"});
        return {Code::kInvalidArgument,
                base::format("{}: unknown key '{}'{}; traindbg run --help says which options may stand there",
                             setting.origin, base::printable(setting.name),
                             base::did_you_mean(setting.name, words))};
    }
    TRAINDBG_RETURN_IF_ERROR(options.apply(environment));
    TRAINDBG_RETURN_IF_ERROR(options.apply(file.settings.options));
    const Status rest = options.apply_rest(file.settings);
    return rest.is_ok() ? rest : Status(rest.code(), base::printable(file.path) + ": " + rest.message());
}

std::string environment_name(std::string_view option) {
    std::string name = "TRAINDBG_";
    for (const char each : option)
        name += each == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(each)));
    return name;
}

}  // namespace traindbg::cli

// Settings files, as the program understands them, for `watch`.

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bindings.h"
#include "errors.h"
#include "rule_choices.h"
#include "traindbg/model/json.h"
#include "traindbg/options/watch_settings.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace traindbg::bindings {
namespace {

using options::WatchSettings;
using Collections = std::vector<std::pair<std::string, std::vector<std::string>>>;

std::optional<WatchSettings> read_settings(const nb::bytes& config, std::vector<std::string> without,
                                           std::optional<std::uint64_t> every, const Collections& collections,
                                           const std::optional<RuleChoices>& rules) {
    const auto file =
        value_or_raise(options::named_settings(std::string(config.c_str(), config.size()), "settings"));
    if (file.path.empty()) return std::nullopt;
    options::WatchArguments arguments;
    arguments.options = std::move(without);
    arguments.every = every.value_or(0);
    for (const auto& [name, patterns] : collections) arguments.collections.push_back({name, patterns, {}});
    if (rules) arguments.rules = from_python(*rules);
    return value_or_raise(options::settings_for_watch(file, arguments));
}

std::optional<RuleChoices> rules_of(const WatchSettings& settings) {
    if (!settings.rules) return std::nullopt;
    return to_python(*settings.rules);
}

}  // namespace

void bind_settings(nb::module_& module) {
    nb::class_<WatchSettings>(module, "WatchSettings",
                              "What a settings file means beside the arguments of `watch`.")
        .def_ro("path", &WatchSettings::path)
        .def_prop_ro(
            "plan", [](const WatchSettings& self) { return model::to_json(self.plan).dump(); },
            "What the file and the rules need: JSON, as in plan.json.")
        .def_prop_ro("rules", &rules_of, "Rules that judge, as (name, parameters); None: the default ones.")
        .def_ro("supervisor", &WatchSettings::supervisor, "Options for `traindbg watch`.")
        .def_ro("left_out", &WatchSettings::left_out, "Options that only the program can follow.")
        .def_ro("every", &WatchSettings::every, "The interval that was asked for; 0: none.")
        .def_prop_ro(
            "form",
            [](const WatchSettings& self) {
                model::CaptureConfig plan;
                plan.requirements.push_back(self.form);
                return model::to_json(plan).at("requirements").at(0).dump();
            },
            "JSON of a requirement of which `mode` and `schedule` are meant: when the file captures things.")
        .def_ro("names_something", &WatchSettings::names_something,
                "Whether the file says of what that is the interval.");
    module.def(
        "watch_settings", &read_settings, "config"_a, "without"_a = std::vector<std::string>(),
        "every"_a = nb::none(), "collections"_a = Collections(), "rules"_a = nb::none(),
        "The file at `config`, or where that is empty the one that TRAINDBG_CONFIG names; None: there is "
        "none. Its values of the options in `without` count nothing; `every`, `collections` and `rules` "
        "take the place of its own.");
}

}  // namespace traindbg::bindings

#include "traindbg/cli/custom_rules.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "traindbg/cli/bootstrap.h"
#include "traindbg/extend/plugin_rules.h"
#include "traindbg/extend/python_rules.h"
#include "traindbg/rules/rule.h"

namespace traindbg::cli {
namespace {

std::string interpreter() {
    if (const char* setting = std::getenv("TRAINDBG_PYTHON"); setting != nullptr && *setting != '\0')
        return setting;
    for (const char* name : {"/python3", "/python"})
        if (const std::string path = executable_directory() + name; ::access(path.c_str(), X_OK) == 0)
            return path;
    return "python3";
}

}  // namespace

base::Status load_custom_rules(const options::CustomRuleOptions& options) {
    std::vector<rules::RuleEntry> all;
    const auto add = [&](std::vector<rules::RuleEntry>&& entries) {
        all.insert(all.end(), std::make_move_iterator(entries.begin()),
                   std::make_move_iterator(entries.end()));
    };
    for (const std::string& path : options.plugins) {
        TRAINDBG_ASSIGN_OR_RETURN(auto entries, extend::load_plugin(path));
        add(std::move(entries));
    }
    if (!options.python.empty()) {
        TRAINDBG_ASSIGN_OR_RETURN(const std::string bootstrap, find_bootstrap(executable_directory()));
        extend::PythonHost host;
        host.command = {interpreter(),
                        (std::filesystem::path(bootstrap).parent_path() / "_rule_host.py").string()};
        TRAINDBG_ASSIGN_OR_RETURN(host.memory, options.memory_bytes());
        host.for_step = std::chrono::nanoseconds(static_cast<std::int64_t>(options.timeout * 1e9));
        for (const std::string& source : options.python) {
            TRAINDBG_ASSIGN_OR_RETURN(auto entries, extend::load_python_rules(source, host));
            add(std::move(entries));
        }
    }
    return rules::add_custom_rules(std::move(all));
}

}  // namespace traindbg::cli

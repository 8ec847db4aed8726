// OptionSet::parse. CLI11 is seen here alone: it is slow to compile, and who reads settings only need not
// link it.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstddef>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/options/option_set.h"
#include "traindbg/options/option_set_impl.h"

namespace traindbg::options {
namespace {

using base::Code;
using base::Status;

Status usage(std::string_view verb, std::string message) {
    return {Code::kInvalidArgument, base::format("{}; see traindbg {} --help", message, verb)};
}

}  // namespace

// How many of `arguments` are ours; the rest, without a separating "--", is the command.
std::size_t OptionSet::Impl::length_of_ours(const std::vector<std::string>& arguments) const {
    std::size_t i = 0;
    while (i < arguments.size()) {
        const std::string& argument = arguments[i];
        if (argument == "--" || argument.empty() || argument[0] != '-' || argument == "-") return i;
        const Entry* entry = find(argument);  // "--name=value" is one word and not found here
        i += entry != nullptr && entry->option.takes_value() ? 2 : 1;
    }
    return arguments.size();
}

Status OptionSet::Impl::check_spellings(const std::vector<std::string>& arguments) const {
    for (auto value = arguments.begin(); value != arguments.end(); ++value) {
        if (*value == "--") break;
        if (value->size() < 2 || (*value)[0] != '-') continue;
        const std::string name = value->substr(0, value->find('='));
        if (const Entry* entry = find(name)) {
            if (entry->option.takes_value() && name == *value && value + 1 != arguments.end()) ++value;
            continue;
        }
        if (name.size() > 2 && name[1] != '-' && find(name.substr(0, 2)) != nullptr) continue;  // -ofile
        std::vector<std::string> known;
        for (const Entry& each : entries) {
            if (each.option.positional || !each.option.listed) continue;
            const std::vector<std::string> spellings = each.option.spellings();
            known.insert(known.end(), spellings.begin(), spellings.end());
        }
        return usage(verb, base::format("unknown option '{}'{}", base::printable(name),
                                        base::did_you_mean(name, known)));
    }
    return Status::ok();
}

Status OptionSet::parse(const std::vector<std::string>& given) {
    const std::string& verb = impl_->verb;
    std::vector<std::string> arguments = given;
    if (impl_->command != nullptr) {
        const std::size_t ours = std::min(impl_->length_of_ours(arguments), arguments.size());
        std::size_t theirs = ours;
        if (theirs < arguments.size() && arguments[theirs] == "--") ++theirs;
        impl_->command->assign(arguments.begin() + static_cast<std::ptrdiff_t>(theirs), arguments.end());
        arguments.resize(ours);
    }
    TRAINDBG_RETURN_IF_ERROR(impl_->check_spellings(arguments));

    CLI::App app;
    app.set_help_flag();  // --help is ours
    app.allow_extras();
    app.allow_windows_style_options(false);
    std::string problem;
    std::vector<const CLI::Option*> parsed;  // of each entry
    for (const Impl::Entry& entry : impl_->entries) {
        const Option& option = entry.option;
        if (entry.flag != nullptr) {
            parsed.push_back(app.add_flag(option.names, *entry.flag));
            continue;
        }
        const std::string label =
            option.positional ? option.placeholder : option.spellings().back() + " " + option.placeholder;
        CLI::Option* const added =
            app.add_option(option.positional ? base::format("positional_{}", parsed.size()) : option.names,
                           [&problem, &entry, label](const CLI::results_t& values) {
                               if (std::string wrong = entry.take(values, label); !wrong.empty())
                                   problem = std::move(wrong);
                               return true;
                           });
        added->expected(1);
        if (option.repeatable)
            added->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
                ->expected(1, option.positional ? 1 << 20 : 1)  // `--option a b`: b is not its value
                ->allow_extra_args(option.positional);
        else added->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
        parsed.push_back(added);
    }
    try {
        std::reverse(arguments.begin(), arguments.end());  // as CLI11 wants them
        app.parse(std::move(arguments));
    } catch (const CLI::ParseError& error) {
        return usage(verb, base::printable(error.what()));
    }
    if (!problem.empty()) return usage(verb, problem);
    for (const std::string& extra : app.remaining()) {
        if (extra == "--") continue;
        return usage(verb, base::format("unexpected argument '{}'", base::printable(extra)));
    }
    for (std::size_t i = 0; i < parsed.size(); ++i) {
        Impl::Entry& entry = impl_->entries[i];
        entry.is_given = parsed[i]->count() > 0;
        if (entry.option.positional && entry.option.required && !entry.is_given)
            return usage(verb, base::format("{} is missing", entry.option.placeholder));
    }
    if (impl_->command != nullptr && impl_->command->empty())
        return usage(
            verb, base::format("the command to run is missing, as in: traindbg {} -- python train.py", verb));
    return Status::ok();
}

}  // namespace traindbg::options

#include "traindbg/cli/option_set.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"

namespace traindbg::cli {
namespace {

using base::Code;
using base::Status;

Status usage(std::string_view verb, std::string message) {
    return {Code::kInvalidArgument, base::format("{}; see traindbg {} --help", message, verb)};
}

std::vector<std::string> split_at_commas(const std::string& text) {
    std::vector<std::string> parts;
    std::size_t start = 0;
    while (true) {
        const std::size_t comma = text.find(',', start);
        std::string part = text.substr(start, comma == std::string::npos ? comma : comma - start);
        if (!part.empty()) parts.push_back(std::move(part));
        if (comma == std::string::npos) return parts;
        start = comma + 1;
    }
}

}  // namespace

std::vector<std::string> Option::spellings() const { return split_at_commas(names); }

class OptionSet::Impl {
  public:
    explicit Impl(std::string_view verb) : verb_(verb) {
        app_.set_help_flag();  // --help is ours
        app_.allow_extras();
        app_.allow_windows_style_options(false);
        groups_.push_back({"Options", false, {}});
    }

    // `check` looks at one value and gives what is wrong with it, or nothing.
    using Check = std::function<std::string(const std::string&)>;
    void add(Option option, std::function<std::string(const std::vector<std::string>&)> accept) {
        const std::string label =
            option.positional ? option.placeholder : option.spellings().back() + " " + option.placeholder;
        const std::vector<std::string> choices = option.choices;
        const auto take = [label, choices, accept = std::move(accept)](const std::vector<std::string>& values,
                                                                       const std::string& where) {
            for (const std::string& value : values) {
                if (choices.empty() || std::find(choices.begin(), choices.end(), value) != choices.end())
                    continue;
                return base::format("{}: '{}' is not one of {}{}", where, base::printable(value),
                                    base::join(choices, ", "), base::did_you_mean(value, choices));
            }
            const std::string problem = accept(values);
            return problem.empty() ? problem : base::format("{}: {}", where, problem);
        };
        CLI::Option* added =
            app_.add_option(option.positional ? "positional_" + std::to_string(positionals_++) : option.names,
                            [this, label, take](const CLI::results_t& values) {
                                if (std::string problem = take(values, label); !problem.empty())
                                    problem_ = std::move(problem);
                                return true;
                            });
        added->expected(1);
        if (option.repeatable)
            added->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
                ->expected(1, option.positional ? 1 << 20 : 1)  // `--option a b`: b is not its value
                ->allow_extra_args(option.positional);
        else added->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
        remember(std::move(option), added, take);
    }

    void add_flag(Option option, bool& target) {
        CLI::Option* added = app_.add_flag(option.names, target);
        remember(std::move(option), added,
                 [&target](const std::vector<std::string>& values, const std::string& where) {
                     const std::string& word = values.back();
                     if (word != "true" && word != "false" && word != "1" && word != "0")
                         return base::format("{}: '{}' is not true or false", where, base::printable(word));
                     target = word == "true" || word == "1";
                     return std::string();
                 });
    }

    // Takes values that stood at `where`; gives what is wrong with them, or nothing.
    using Take = std::function<std::string(const std::vector<std::string>& values, const std::string& where)>;
    void remember(Option option, CLI::Option* added, Take take) {
        if (!option.positional) {
            std::vector<std::string> spellings = option.spellings();
            if (groups_.back().settable && option.listed && spellings.back().starts_with("--"))
                settable_.push_back({spellings.back().substr(2), added, option.repeatable, std::move(take)});
            for (std::string& spelling : spellings) known_.emplace_back(std::move(spelling), added);
        }
        (option.listed ? groups_.back().options : unlisted_).push_back(std::move(option));
    }

    [[nodiscard]] const Option* find(std::string_view spelling) const {
        const auto is_meant = [spelling](const Option& option) {
            const std::vector<std::string> names = option.spellings();
            return !option.positional && std::find(names.begin(), names.end(), spelling) != names.end();
        };
        for (const Group& group : groups_) {
            const auto found = std::find_if(group.options.begin(), group.options.end(), is_meant);
            if (found != group.options.end()) return &*found;
        }
        const auto found = std::find_if(unlisted_.begin(), unlisted_.end(), is_meant);
        return found != unlisted_.end() ? &*found : nullptr;
    }

    // How many of `arguments` are ours; the rest, without a separating "--", is the command.
    [[nodiscard]] std::size_t length_of_ours(const std::vector<std::string>& arguments) const {
        std::size_t i = 0;
        while (i < arguments.size()) {
            const std::string& argument = arguments[i];
            if (argument == "--" || argument.empty() || argument[0] != '-' || argument == "-") return i;
            const Option* option = find(argument);  // "--name=value" is one word and not found here
            i += option != nullptr && option->takes_value() ? 2 : 1;
        }
        return arguments.size();
    }

    Status parse(std::vector<std::string> arguments) {
        if (command_ != nullptr) {
            const std::size_t ours = std::min(length_of_ours(arguments), arguments.size());
            std::size_t theirs = ours;
            if (theirs < arguments.size() && arguments[theirs] == "--") ++theirs;
            command_->assign(arguments.begin() + static_cast<std::ptrdiff_t>(theirs), arguments.end());
            arguments.resize(ours);
        }
        for (auto value = arguments.begin(); value != arguments.end(); ++value) {
            if (*value == "--") break;
            if (value->size() < 2 || (*value)[0] != '-') continue;
            const std::string name = value->substr(0, value->find('='));
            if (const Option* option = find(name)) {
                if (option->takes_value() && name == *value && value + 1 != arguments.end()) ++value;
                continue;
            }
            if (name.size() > 2 && name[1] != '-' && find(name.substr(0, 2)) != nullptr) continue;  // -ofile
            std::vector<std::string> spellings;
            for (const auto& [spelling, option] : known_)
                if (find(spelling)->listed) spellings.push_back(spelling);
            return usage(verb_, base::format("unknown option '{}'{}", base::printable(name),
                                             base::did_you_mean(name, spellings)));
        }
        try {
            std::reverse(arguments.begin(), arguments.end());  // as CLI11 wants them
            app_.parse(std::move(arguments));
        } catch (const CLI::ParseError& error) {
            return usage(verb_, base::printable(error.what()));
        }
        if (!problem_.empty()) return usage(verb_, problem_);
        const std::vector<std::string> extras = app_.remaining();
        for (const std::string& extra : extras) {
            if (extra == "--") continue;
            return usage(verb_, base::format("unexpected argument '{}'", base::printable(extra)));
        }
        for (const Group& group : groups_)
            for (std::size_t i = 0, position = 0; i < group.options.size(); ++i) {
                const Option& option = group.options[i];
                if (!option.positional) continue;
                const CLI::Option* given =
                    app_.get_option_no_throw("positional_" + std::to_string(position++));
                if (option.required && (given == nullptr || given->count() == 0))
                    return usage(verb_, base::format("{} is missing", option.placeholder));
            }
        if (command_ != nullptr && command_->empty())
            return usage(
                verb_,
                base::format("the command to run is missing, as in: traindbg {} -- python train.py", verb_));
        return Status::ok();
    }

    std::string verb_;
    CLI::App app_;
    std::vector<Group> groups_;
    std::vector<Option> unlisted_;
    std::vector<std::pair<std::string, CLI::Option*>> known_;
    // An option that may also stand elsewhere than on the command line.
    struct Settable {
        std::string name;
        CLI::Option* option = nullptr;
        bool is_list = false;
        Take take;
        bool is_applied = false;
    };
    std::vector<Settable> settable_;
    std::vector<std::function<Status(const settings::Settings&)>> on_settings_;
    std::vector<std::string>* command_ = nullptr;
    std::string problem_;
    int positionals_ = 0;
};

OptionSet::OptionSet(std::string_view verb) : impl_(std::make_unique<Impl>(verb)) {}
OptionSet::~OptionSet() = default;

void OptionSet::group(std::string_view title, bool settable) {
    impl_->groups_.push_back({std::string(title), settable, {}});
}

void OptionSet::flag(Option option, bool& target) { impl_->add_flag(std::move(option), target); }

void OptionSet::text(Option option, std::string& target) {
    impl_->add(std::move(option), [&target](const std::vector<std::string>& values) {
        target = values.back();
        return target.empty() ? std::string("must not be empty") : std::string();
    });
}

void OptionSet::texts(Option option, std::vector<std::string>& target, bool split) {
    option.repeatable = true;
    impl_->add(std::move(option), [&target, split](const std::vector<std::string>& values) {
        target.clear();
        for (const std::string& value : values) {
            if (!split) {
                target.push_back(value);
                continue;
            }
            for (std::string& part : split_at_commas(value)) target.push_back(std::move(part));
        }
        return target.empty() ? std::string("must not be empty") : std::string();
    });
}

void OptionSet::number(Option option, double& target, double min, double max) {
    impl_->add(std::move(option), [&target, min, max](const std::vector<std::string>& values) {
        const std::string& value = values.back();
        double parsed = 0;
        const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), parsed);
        if (error != std::errc() || end != value.data() + value.size() || !std::isfinite(parsed))
            return base::format("'{}' is not a number", base::printable(value));
        if (parsed < min || parsed > max)
            return base::format("{} is not between {} and {}", base::printable(value), min, max);
        target = parsed;
        return std::string();
    });
}

void OptionSet::count(Option option, std::uint64_t& target, std::uint64_t min) {
    impl_->add(std::move(option), [&target, min](const std::vector<std::string>& values) {
        const std::string& value = values.back();
        std::uint64_t parsed = 0;
        const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), parsed);
        if (error != std::errc() || end != value.data() + value.size())
            return base::format("'{}' is not a whole number from {} up", base::printable(value), min);
        if (parsed < min) return base::format("{} is less than {}", parsed, min);
        target = parsed;
        return std::string();
    });
}

void OptionSet::command(std::vector<std::string>& target) { impl_->command_ = &target; }
bool OptionSet::takes_command() const noexcept { return impl_->command_ != nullptr; }

Status OptionSet::parse(const std::vector<std::string>& arguments) { return impl_->parse(arguments); }

void OptionSet::on_settings(std::function<Status(const settings::Settings&)> take) {
    impl_->on_settings_.push_back(std::move(take));
}

std::vector<std::string> OptionSet::settable() const {
    std::vector<std::string> names;
    for (const Impl::Settable& each : impl_->settable_) names.push_back(each.name);
    return names;
}

Status OptionSet::apply(const std::vector<settings::Setting>& settings) {
    std::vector<Impl::Settable*> taken;
    for (const settings::Setting& setting : settings) {
        const auto found =
            std::find_if(impl_->settable_.begin(), impl_->settable_.end(),
                         [&](const Impl::Settable& each) { return each.name == setting.name; });
        if (found == impl_->settable_.end() || found->option->count() > 0 || found->is_applied) continue;
        const std::string where = base::format("{}: {}", setting.origin, setting.name);
        if (setting.values.empty() || (setting.values.size() > 1 && !found->is_list))
            return {Code::kInvalidArgument,
                    base::format("{}: expected {} value", where, setting.values.empty() ? "a" : "one")};
        if (std::string problem = found->take(setting.values, where); !problem.empty())
            return {Code::kInvalidArgument, std::move(problem)};
        taken.push_back(&*found);
    }
    for (Impl::Settable* each : taken) each->is_applied = true;
    return Status::ok();
}

Status OptionSet::apply_rest(const settings::Settings& settings) {
    for (const auto& take : impl_->on_settings_) TRAINDBG_RETURN_IF_ERROR(take(settings));
    return Status::ok();
}

const std::vector<OptionSet::Group>& OptionSet::groups() const noexcept { return impl_->groups_; }

}  // namespace traindbg::cli

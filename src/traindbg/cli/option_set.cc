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
        groups_.push_back({"Options", {}});
    }

    // `check` looks at one value and gives what is wrong with it, or nothing.
    using Check = std::function<std::string(const std::string&)>;
    void add(Option option, std::function<std::string(const std::vector<std::string>&)> accept) {
        const std::string label =
            option.positional ? option.placeholder : option.spellings().back() + " " + option.placeholder;
        const std::vector<std::string> choices = option.choices;
        CLI::Option* added = app_.add_option(
            option.positional ? "positional_" + std::to_string(positionals_++) : option.names,
            [this, label, choices, accept = std::move(accept)](const CLI::results_t& values) {
                for (const std::string& value : values) {
                    if (choices.empty() || std::find(choices.begin(), choices.end(), value) != choices.end())
                        continue;
                    problem_ = base::format("{}: '{}' is not one of {}{}", label, base::printable(value),
                                            base::join(choices, ", "), base::did_you_mean(value, choices));
                    return true;
                }
                if (std::string problem = accept(values); !problem.empty())
                    problem_ = base::format("{}: {}", label, problem);
                return true;
            });
        added->expected(1);
        if (option.repeatable)
            added->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
                ->expected(1, option.positional ? 1 << 20 : 1)  // `--option a b`: b is not its value
                ->allow_extra_args(option.positional);
        else added->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
        remember(std::move(option), added);
    }

    void add_flag(Option option, bool& target) {
        CLI::Option* added = app_.add_flag(option.names, target);
        remember(std::move(option), added);
    }

    void remember(Option option, CLI::Option* added) {
        if (!option.positional)
            for (std::string& spelling : option.spellings()) known_.emplace_back(std::move(spelling), added);
        groups_.back().options.push_back(std::move(option));
    }

    [[nodiscard]] const Option* find(std::string_view spelling) const {
        for (const Group& group : groups_)
            for (const Option& option : group.options) {
                if (option.positional) continue;
                for (const std::string& name : option.spellings())
                    if (name == spelling) return &option;
            }
        return nullptr;
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
            for (const auto& [spelling, option] : known_) spellings.push_back(spelling);
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
            return usage(verb_, "the command to run is missing, as in: traindbg run -- python train.py");
        return Status::ok();
    }

    std::string verb_;
    CLI::App app_;
    std::vector<Group> groups_;
    std::vector<std::pair<std::string, CLI::Option*>> known_;
    std::vector<std::string>* command_ = nullptr;
    std::string problem_;
    int positionals_ = 0;
};

OptionSet::OptionSet(std::string_view verb) : impl_(std::make_unique<Impl>(verb)) {}
OptionSet::~OptionSet() = default;

void OptionSet::group(std::string_view title) { impl_->groups_.push_back({std::string(title), {}}); }

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

bool OptionSet::was_given(std::string_view spelling) const {
    for (const auto& [name, option] : impl_->known_)
        if (name == spelling) return option->count() > 0;
    return false;
}

const std::vector<OptionSet::Group>& OptionSet::groups() const noexcept { return impl_->groups_; }

}  // namespace traindbg::cli

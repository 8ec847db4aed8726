#include "traindbg/options/option_set.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/options/option_set_impl.h"

namespace traindbg::options {
namespace {

using base::Code;
using base::Status;

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

std::string OptionSet::Impl::Entry::name() const {
    const std::string last = option.spellings().back();
    return last.starts_with("--") ? last.substr(2) : last;
}

void OptionSet::Impl::add(Option option, std::function<std::string(const std::vector<std::string>&)> accept) {
    const auto take = [choices = option.choices, accept = std::move(accept)](
                          const std::vector<std::string>& values, const std::string& where) {
        for (const std::string& value : values) {
            if (choices.empty() || std::find(choices.begin(), choices.end(), value) != choices.end())
                continue;
            return base::format("{}: '{}' is not one of {}{}", where, base::printable(value),
                                base::join(choices, ", "), base::did_you_mean(value, choices));
        }
        const std::string problem = accept(values);
        return problem.empty() ? problem : base::format("{}: {}", where, problem);
    };
    remember({.option = std::move(option), .take = take, .place = {}});
}

void OptionSet::Impl::add_flag(Option option, bool& target) {
    const auto take = [&target](const std::vector<std::string>& values, const std::string& where) {
        const std::string& word = values.back();
        if (word != "true" && word != "false" && word != "1" && word != "0")
            return base::format("{}: '{}' is not true or false", where, base::printable(word));
        target = word == "true" || word == "1";
        return std::string();
    };
    remember({.option = std::move(option), .flag = &target, .take = take, .place = {}});
}

void OptionSet::Impl::remember(Entry entry) {
    const Option& option = entry.option;
    entry.is_settable = groups.back().settable && option.listed && !option.positional &&
                        option.spellings().back().starts_with("--");
    if (option.listed) groups.back().options.push_back(option);
    entries.push_back(std::move(entry));
}

const OptionSet::Impl::Entry* OptionSet::Impl::find(std::string_view spelling) const {
    const auto found = std::find_if(entries.begin(), entries.end(), [spelling](const Entry& entry) {
        const std::vector<std::string> names = entry.option.spellings();
        return !entry.option.positional && std::find(names.begin(), names.end(), spelling) != names.end();
    });
    return found != entries.end() ? &*found : nullptr;
}

OptionSet::Impl::Entry* OptionSet::Impl::find_settable(std::string_view name) {
    const auto found = std::find_if(entries.begin(), entries.end(), [name](const Entry& entry) {
        return entry.is_settable && entry.name() == name;
    });
    return found != entries.end() ? &*found : nullptr;
}

OptionSet::OptionSet(std::string_view verb) : impl_(std::make_unique<Impl>(verb)) {}
OptionSet::~OptionSet() = default;

void OptionSet::group(std::string_view title, bool settable) {
    impl_->groups.push_back({std::string(title), settable, {}});
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

void OptionSet::command(std::vector<std::string>& target) { impl_->command = &target; }
bool OptionSet::takes_command() const noexcept { return impl_->command != nullptr; }

void OptionSet::on_settings(std::function<void(const settings::Settings&)> take) {
    impl_->on_settings.push_back(std::move(take));
}

std::vector<std::string> OptionSet::settable() const {
    std::vector<std::string> names;
    for (const Impl::Entry& each : impl_->entries)
        if (each.is_settable) names.push_back(each.name());
    return names;
}

bool OptionSet::is_of_program(std::string_view name) const {
    const Impl::Entry* const found = impl_->find_settable(name);
    return found != nullptr && found->option.of_program;
}

std::string OptionSet::place_of(std::string_view name) const {
    const Impl::Entry* const found = impl_->find_settable(name);
    return found != nullptr && !found->place.empty() ? found->place : "--" + std::string(name);
}

std::string place_of(const OptionSet* options, std::string_view name) {
    return options != nullptr ? options->place_of(name) : "--" + std::string(name);
}

Status OptionSet::apply(const std::vector<settings::Setting>& settings) {
    std::vector<std::pair<Impl::Entry*, std::string>> taken;
    for (const settings::Setting& setting : settings) {
        Impl::Entry* const found = impl_->find_settable(setting.name);
        if (found == nullptr || found->is_given || !found->place.empty()) continue;
        std::string where = base::format("{}: {}", setting.origin, setting.name);
        if (setting.values.empty() || (setting.values.size() > 1 && !found->option.repeatable))
            return {Code::kInvalidArgument,
                    base::format("{}: expected {} value", where, setting.values.empty() ? "a" : "one")};
        if (std::string problem = found->take(setting.values, where); !problem.empty())
            return {Code::kInvalidArgument, std::move(problem)};
        taken.emplace_back(found, std::move(where));
    }
    for (auto& [entry, place] : taken) entry->place = std::move(place);
    return Status::ok();
}

void OptionSet::apply_rest(const settings::Settings& settings) {
    for (const auto& take : impl_->on_settings) take(settings);
}

const std::vector<OptionSet::Group>& OptionSet::groups() const noexcept { return impl_->groups; }

}  // namespace traindbg::options

// What the parameters of a rule are set to, by name.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "traindbg/base/status.h"
#include "traindbg/model/rule_info.h"

namespace traindbg::rules {

// A rule gets every one of its parameters, of the types that its `RuleInfo` names, defaults filled in. To ask
// for one that it has not, or as another type, is a mistake in the rule: std::out_of_range.
class Parameters {
  public:
    using Map = std::map<std::string, model::ParameterValue, std::less<>>;

    Parameters() = default;
    Parameters(std::initializer_list<Map::value_type> values) : values_(values) {}

    [[nodiscard]] double at(std::string_view name) const;  // a number's
    [[nodiscard]] bool flag(std::string_view name) const;
    [[nodiscard]] const std::string& text(std::string_view name) const;
    [[nodiscard]] std::vector<std::string> texts(std::string_view name) const;  // none where it is nothing
    [[nodiscard]] const model::ParameterValue& value(std::string_view name) const;
    [[nodiscard]] std::vector<double> numbers(std::string_view name) const;  // of kNumbers; as above
    // Whether it is set to anything.
    [[nodiscard]] bool has(std::string_view name) const { return !value(name).is_nothing(); }
    [[nodiscard]] std::optional<double> number_if_any(std::string_view name) const;

    model::ParameterValue& operator[](const std::string& name) { return values_[name]; }
    [[nodiscard]] bool contains(std::string_view name) const { return values_.find(name) != values_.end(); }
    [[nodiscard]] Map::const_iterator begin() const noexcept { return values_.begin(); }
    [[nodiscard]] Map::const_iterator end() const noexcept { return values_.end(); }
    [[nodiscard]] std::size_t size() const noexcept { return values_.size(); }
    [[nodiscard]] bool empty() const noexcept { return values_.empty(); }
    void clear() noexcept { values_.clear(); }

    friend bool operator==(const Parameters&, const Parameters&) = default;

  private:
    Map values_;
};

// The parts of a text of kTexts, without blanks around them and without those that are empty.
[[nodiscard]] std::vector<std::string> split_texts(std::string_view text);

[[nodiscard]] Parameters defaults_of(const model::RuleInfo& info);
// The defaults of `info`, overridden by `given`, where a text may stand for a value of any type, as on a
// command line. kInvalidArgument names an unknown parameter (and the nearest), or a value that is not of its
// type or out of range. `hold`, which every rule has (hold.h), is looked at and left out: it is the engine's.
[[nodiscard]] base::Result<Parameters> complete_parameters(const model::RuleInfo& info,
                                                           const Parameters& given);

}  // namespace traindbg::rules

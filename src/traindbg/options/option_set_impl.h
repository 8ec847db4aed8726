// What is behind an OptionSet: of option_set.cc and command_line.cc.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "traindbg/options/option_set.h"

namespace traindbg::options {

class OptionSet::Impl {
  public:
    // Takes values that stood at `where`; gives what is wrong with them, or nothing.
    using Take = std::function<std::string(const std::vector<std::string>& values, const std::string& where)>;

    struct Entry {
        Option option;
        bool is_settable = false;
        bool* flag = nullptr;  // the target of an option without a value
        Take take;
        bool is_given = false;  // on the command line
        std::string place;      // where its value stands, if it stands elsewhere

        [[nodiscard]] std::string name() const;  // "on-finding"
    };

    explicit Impl(std::string_view of) : verb(of) {}

    // `accept` takes values and gives what is wrong with them, or nothing.
    void add(Option option, std::function<std::string(const std::vector<std::string>&)> accept);
    void add_flag(Option option, bool& target);

    // By one of its spellings, such as "-o".
    [[nodiscard]] const Entry* find(std::string_view spelling) const;
    // By the name that it has elsewhere than on the command line.
    [[nodiscard]] Entry* find_settable(std::string_view name);

    // Of command_line.cc.
    [[nodiscard]] std::size_t length_of_ours(const std::vector<std::string>& arguments) const;
    [[nodiscard]] base::Status check_spellings(const std::vector<std::string>& arguments) const;

    std::string verb;
    std::vector<Group> groups = {{"Options", false, {}}};
    std::vector<Entry> entries;  // in the order in which they were declared
    std::vector<std::function<void(const settings::Settings&)>> on_settings;
    std::vector<std::string>* command = nullptr;

  private:
    void remember(Entry entry);
};

}  // namespace traindbg::options

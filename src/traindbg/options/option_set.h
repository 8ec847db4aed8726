// A set of options: declared once, and from that parsed off a command line, read from settings, explained by
// --help and offered by shell completion.
//
// The parser of command lines is CLI11, which only command_line.cc sees.
//
// Lifetime: the targets of options must outlive the set. Thread-safety: one thread at a time.
// Errors: `parse` never throws; its message names the option and the nearest one that exists.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "traindbg/base/status.h"
#include "traindbg/settings/settings.h"

namespace traindbg::options {

// What a shell should offer as a value.
enum class Completes : std::uint8_t { kNothing, kFile, kDirectory, kRun, kRule, kCollection };

struct Option {
    std::string names{};        // "-o,--output"; of a positional argument: "RUN"
    std::string placeholder{};  // "FILE"; empty: a flag
    std::string help{};
    std::vector<std::string> choices{};  // the only values allowed; empty: any
    Completes completes = Completes::kNothing;
    bool positional = false;
    bool required = false;    // of positional arguments
    bool repeatable = false;  // may be given more than once
    // By --help and shell completion. One that is not is understood, so that its verb can say why it is
    // refused, and stands nowhere else than on the command line.
    bool listed = true;
    // What the program does for a training that it starts. Who watches one without it cannot follow the
    // option.
    bool of_program = false;

    // "-o", "--output"
    [[nodiscard]] std::vector<std::string> spellings() const;
    [[nodiscard]] bool takes_value() const noexcept { return !placeholder.empty(); }
};

class OptionSet {
  public:
    // `verb` is used in messages: "run", "rules list".
    explicit OptionSet(std::string_view verb);
    OptionSet(const OptionSet&) = delete;
    OptionSet& operator=(const OptionSet&) = delete;
    ~OptionSet();

    // A heading for the options declared after it. `settable`: those may also stand in the environment
    // and in a settings file (settings_file.h).
    void group(std::string_view title, bool settable = false);

    void flag(Option option, bool& target);
    void text(Option option, std::string& target);
    // Repeatable. `split`: one value may hold several, separated by commas.
    void texts(Option option, std::vector<std::string>& target, bool split);
    void number(Option option, double& target, double min, double max);
    void count(Option option, std::uint64_t& target, std::uint64_t min = 0);

    // Everything after the options is the command of somebody else: the first argument that is no
    // option (or "--") ends ours.
    void command(std::vector<std::string>& target);
    [[nodiscard]] bool takes_command() const noexcept;

    [[nodiscard]] base::Status parse(const std::vector<std::string>& arguments);
    // Called with a settings file's collections, captures and parameters of rules, where there is one.
    void on_settings(std::function<void(const settings::Settings&)> take);
    // The names of the options that may stand elsewhere, without dashes.
    [[nodiscard]] std::vector<std::string> settable() const;
    // Whether that is one of those, and `Option::of_program`.
    [[nodiscard]] bool is_of_program(std::string_view name) const;
    // What messages call an option: "--every", or "traindbg.toml:3: every" where its value stands there.
    [[nodiscard]] std::string place_of(std::string_view name) const;
    // Values from elsewhere, in the order of precedence: those of options that were given already, here or on
    // the command line, count nothing. To be called after `parse`.
    [[nodiscard]] base::Status apply(const std::vector<settings::Setting>& settings);
    void apply_rest(const settings::Settings& settings);

    struct Group {
        std::string title;
        bool settable = false;
        std::vector<Option> options;
    };
    [[nodiscard]] const std::vector<Group>& groups() const noexcept;

  private:
    class Impl;
    std::unique_ptr<Impl> impl_;
};

// `options->place_of(name)`; of options that were never declared, "--every".
[[nodiscard]] std::string place_of(const OptionSet* options, std::string_view name);

}  // namespace traindbg::options

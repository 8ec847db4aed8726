// A verb of the program: what it is called, which options it has, what it does. One file per verb
// under `verbs/`, one table of all of them: `all_verbs`.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "traindbg/cli/console.h"
#include "traindbg/options/option_set.h"

namespace traindbg::cli {

using options::Completes;
using options::Option;
using options::OptionSet;

class Verb {
  public:
    Verb() = default;
    Verb(const Verb&) = delete;
    Verb& operator=(const Verb&) = delete;
    virtual ~Verb() = default;

    // Options write into members of the verb.
    virtual void declare(OptionSet& options) = 0;
    // Gives the exit code; has said on `console` what went wrong.
    [[nodiscard]] virtual int run(Console& console) = 0;
};

struct VerbEntry {
    std::string_view name;      // "run", "rules list"
    std::string_view summary;   // one line, for the list of verbs
    std::string_view usage;     // what follows the name: "[options] RUN"
    std::string_view about;     // some sentences, for --help
    std::string_view examples;  // whole lines, each indented by two
    std::unique_ptr<Verb> (*make)();
};

// In the order in which --help shows them.
[[nodiscard]] const std::vector<VerbEntry>& all_verbs();

// One definition per file of `verbs/`.
[[nodiscard]] VerbEntry run_verb();
[[nodiscard]] VerbEntry set_verb();
[[nodiscard]] VerbEntry explain_plan_verb();
[[nodiscard]] VerbEntry watch_verb();
[[nodiscard]] VerbEntry check_verb();
[[nodiscard]] VerbEntry report_verb();
[[nodiscard]] VerbEntry ls_verb();
[[nodiscard]] VerbEntry show_verb();
[[nodiscard]] VerbEntry get_verb();
[[nodiscard]] VerbEntry export_verb();
[[nodiscard]] VerbEntry import_verb();
[[nodiscard]] VerbEntry sync_verb();
[[nodiscard]] VerbEntry verify_verb();
[[nodiscard]] VerbEntry compact_verb();
[[nodiscard]] VerbEntry gc_verb();
[[nodiscard]] VerbEntry rules_list_verb();
[[nodiscard]] VerbEntry rules_explain_verb();
[[nodiscard]] VerbEntry rules_new_verb();
[[nodiscard]] VerbEntry rules_test_verb();
[[nodiscard]] VerbEntry doctor_verb();
[[nodiscard]] VerbEntry completion_verb();
[[nodiscard]] VerbEntry version_verb();

// The options that every verb has beside its own.
struct CommonOptions {
    bool help = false;
    std::string color;

    void declare(OptionSet& options);
};

// Says why, and gives the exit code that goes with it.
[[nodiscard]] int fail(const Console& console, const base::Status& status);

// The page of --help.
[[nodiscard]] std::string help_page(const VerbEntry& entry, const OptionSet& options, bool colour);
[[nodiscard]] std::string program_help(bool colour);

}  // namespace traindbg::cli

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/cli/custom_rules.h"
#include "traindbg/cli/exit_code.h"
#include "traindbg/cli/verb.h"
#include "traindbg/engine/scenario.h"
#include "traindbg/options/rule_options.h"
#include "traindbg/storage/file_system.h"

namespace traindbg::cli {
namespace {

constexpr std::size_t kMostBytes = std::size_t{4} << 20;

class RulesTestVerb final : public Verb {
  public:
    void declare(OptionSet& options) override {
        options.texts({.names = "SCENARIO",
                       .placeholder = "SCENARIO...",
                       .help = "Files with trainings as text.",
                       .completes = Completes::kFile,
                       .positional = true,
                       .required = true},
                      scenarios_, false);
        custom_.declare(options);
    }

    int run(Console& console) override {
        if (const base::Status status = load_custom_rules(custom_); !status.is_ok())
            return fail(console, status);
        std::size_t failed = 0;
        for (const std::string& path : scenarios_) {
            const auto wrong = differences(path);
            if (!wrong.is_ok()) return fail(console, wrong.status());
            console.out(
                base::format("{}  {}\n", wrong->empty() ? "ok    " : "FAILED", base::printable(path)));
            for (const std::string& sentence : *wrong) console.out("  " + sentence + "\n");
            failed += wrong->empty() ? 0 : 1;
        }
        if (failed != 0)
            console.warn(
                base::format("{} of {} scenarios did not come out as expected", failed, scenarios_.size()));
        return failed == 0 ? kExitClean : kExitFired;
    }

  private:
    // What did not come out as it should.
    [[nodiscard]] static base::Result<std::vector<std::string>> differences(const std::string& path) {
        TRAINDBG_ASSIGN_OR_RETURN(const auto bytes,
                                  storage::read_whole(storage::posix_file_system(), path, kMostBytes));
        const auto scenario = scenario::parse({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
        if (!scenario.is_ok())
            return base::Status(scenario.status().code(),
                                base::printable(path) + ": " + scenario.status().message());
        TRAINDBG_ASSIGN_OR_RETURN(const model::Verdict verdict, scenario::run(*scenario));
        std::vector<std::string> wrong = scenario::mismatches(*scenario, verdict);
        if (!wrong.empty()) wrong.push_back("what came out:\n" + scenario::describe(verdict));
        return wrong;
    }

    std::vector<std::string> scenarios_;
    options::CustomRuleOptions custom_;
};

}  // namespace

VerbEntry rules_test_verb() {
    return {.name = "rules test",
            .summary = "Test rules of your own by trainings that are written as text.",
            .usage = "[options] SCENARIO...",
            .about =
                "Shows the steps of each scenario to its rules and compares what they find with what the "
                "scenario "
                "expects. Exits with 1 when one came out otherwise.",
            .examples =
                "  traindbg rules test --rule-python my_rule.py scenarios/*.txt\n"
                "  traindbg rules test --rule-plugin build/libmy_rule.so scenarios/*.txt\n",
            .make = []() -> std::unique_ptr<Verb> { return std::make_unique<RulesTestVerb>(); }};
}

}  // namespace traindbg::cli

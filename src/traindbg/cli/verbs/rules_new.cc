#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/cli/exit_code.h"
#include "traindbg/cli/verb.h"
#include "traindbg/extend/scaffold.h"

namespace traindbg::cli {
namespace {

class RulesNewVerb final : public Verb {
  public:
    void declare(OptionSet& options) override {
        options.text({.names = "NAME",
                      .placeholder = "NAME",
                      .help = "What the rule is called, after the fault: stale_batch_norm.",
                      .positional = true,
                      .required = true},
                     name_);
        options.flag({.names = "--python", .help = "A rule in Python (the default)."}, python_);
        options.flag({.names = "--cpp", .help = "A plugin in C++, with its CMakeLists.txt."}, cpp_);
        options.text({.names = "--out",
                      .placeholder = "DIR",
                      .help = "Where its files go: a directory that is new or empty (default: NAME).",
                      .completes = Completes::kDirectory},
                     out_);
    }

    int run(Console& console) override {
        if (python_ && cpp_)
            return fail(console, {base::Code::kInvalidArgument, "--python and --cpp: choose one of them"});
        const std::string directory = out_.empty() ? name_ : out_;
        const auto written = extend::write_new_rule(
            name_, cpp_ ? extend::RuleKind::kCpp : extend::RuleKind::kPython, directory);
        if (!written.is_ok()) return fail(console, written.status());
        const std::string shown = base::printable(directory);
        std::string text;
        for (const std::string& path : *written) text += base::printable(path) + "\n";
        text += cpp_ ? base::format(
                           "\nBuild and test it:\n  cd {0} && cmake -B build && cmake --build build && "
                           "ctest --test-dir build\n",
                           shown)
                     : base::format(
                           "\nTest it:\n  cd {0} && traindbg rules test --rule-python {1}.py "
                           "scenarios/*.txt\n",
                           shown, name_);
        console.out(text);
        return kExitClean;
    }

  private:
    std::string name_;
    bool python_ = false;
    bool cpp_ = false;
    std::string out_;
};

}  // namespace

VerbEntry rules_new_verb() {
    return {
        .name = "rules new",
        .summary = "Begin a rule of your own: one that works, with its tests.",
        .usage = "[options] NAME",
        .about =
            "Writes a rule in Python or a plugin in C++, scenarios that test it, and a README. Nothing is "
            "overwritten. docs/custom-rules.md explains what stands in them.",
        .examples =
            "  traindbg rules new stale_batch_norm\n"
            "  traindbg rules new stale_batch_norm --cpp --out plugins/stale_batch_norm\n",
        .make = []() -> std::unique_ptr<Verb> { return std::make_unique<RulesNewVerb>(); }};
}

}  // namespace traindbg::cli

#include "traindbg/cli/completion.h"
#include "traindbg/base/format.h"
#include "traindbg/cli/exit_code.h"
#include "traindbg/cli/verb.h"

namespace traindbg::cli {
namespace {

class CompletionVerb final : public Verb {
  public:
    void declare(OptionSet& options) override {
        options.text({.names = "SHELL",
                      .placeholder = "SHELL",
                      .help = "bash, zsh or fish.",
                      .choices = {"bash", "zsh", "fish"},
                      .positional = true,
                      .required = true},
                     shell_);
    }
    int run(Console& console) override {
        const CompletionTree tree = completion_tree();
        console.out(shell_ == "bash"  ? bash_completion(tree)
                    : shell_ == "zsh" ? zsh_completion(tree)
                                      : fish_completion(tree));
        return kExitClean;
    }

  private:
    std::string shell_;
};

}  // namespace

VerbEntry completion_verb() {
    return {
        .name = "completion",
        .summary = "Print the script that completes commands in a shell.",
        .usage = "SHELL",
        .about =
            "Prints a script that makes the shell complete commands, options, rules, collections and runs.",
        .examples =
            "  source <(traindbg completion bash)\n"
            "  traindbg completion zsh > \"${fpath[1]}/_traindbg\"\n"
            "  traindbg completion fish > ~/.config/fish/completions/traindbg.fish\n",
        .make = []() -> std::unique_ptr<Verb> { return std::make_unique<CompletionVerb>(); }};
}

}  // namespace traindbg::cli

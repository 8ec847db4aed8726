#include <nlohmann/json.hpp>

#include "traindbg/base/format.h"
#include "traindbg/base/version.h"
#include "traindbg/cli/exit_code.h"
#include "traindbg/cli/verb.h"

namespace traindbg::cli {
namespace {

class VersionVerb final : public Verb {
  public:
    void declare(OptionSet& options) override {
        options.flag({.names = "--json", .help = "Print JSON."}, json_);
    }
    int run(Console& console) override {
        if (json_)
            console.out(nlohmann::ordered_json{{"schema_version", 1}, {"version", base::version()}}.dump(2) +
                        "\n");
        else console.out(base::format("traindbg {}\n", base::version()));
        return kExitClean;
    }

  private:
    bool json_ = false;
};

}  // namespace

VerbEntry version_verb() {
    return {.name = "version",
            .summary = "Print the version.",
            .usage = "[options]",
            .about = "Prints the version of this program.",
            .examples = "  traindbg version\n  traindbg version --json\n",
            .make = []() -> std::unique_ptr<Verb> { return std::make_unique<VersionVerb>(); }};
}

}  // namespace traindbg::cli

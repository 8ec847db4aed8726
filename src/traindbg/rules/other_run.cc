#include "traindbg/rules/other_run.h"

#include <utility>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"

namespace traindbg::rules {
namespace {

OtherRunOpener& opener() {
    static OtherRunOpener current;
    return current;
}

}  // namespace

void set_other_run_opener(OtherRunOpener opens) { opener() = std::move(opens); }

base::Result<std::unique_ptr<model::StepSource>> open_other_run(const std::string& name) {
    if (!opener())
        return base::Status(base::Code::kUnsupported,
                            base::format("{}: other runs cannot be opened here", base::printable(name)));
    return opener()(name);
}

}  // namespace traindbg::rules

// How a rule comes by another run: rules do no I/O, so that whoever uses them says how one is opened.
//
// Lifetime: the opener is kept for the life of the process. Threads: to be set before any rule is shown a
// step; called by the thread that shows it.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "traindbg/base/status.h"
#include "traindbg/model/step_source.h"

namespace traindbg::rules {

// The steps that the run of that name has now, whole tensors included; a source that ends. `name` is what a
// user wrote. Errors begin with it.
using OtherRunOpener =
    std::function<base::Result<std::unique_ptr<model::StepSource>>(const std::string& name)>;

void set_other_run_opener(OtherRunOpener opener);
// kUnsupported: nobody has said how.
[[nodiscard]] base::Result<std::unique_ptr<model::StepSource>> open_other_run(const std::string& name);

}  // namespace traindbg::rules

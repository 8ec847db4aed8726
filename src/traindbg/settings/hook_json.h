// The hook configuration of the SageMaker Debugger client library (`debughookconfig.json`), as requirements.
//
// The same meaning: a collection is saved in each mode at every `save_interval`-th step from `start_step` to
// before `end_step`, and at `save_steps`, wherever those lie; `train.save_interval` and the like hold for
// that mode; what a collection says beats what the hook says. With `reductions` statistics are kept, without
// them whole tensors; the product among them is that of a digest. `losses` are saved beside whatever else is
// named. Its collections `all`, `default` and `relu_output` are made here; patterns of a collection of ours
// make one beside it ("losses.include_regex"), as a built-in one has no patterns. Patterns are searched in
// our names of tensors, and mean in them what they mean in the original's (original_names.h); what they ask
// for that is not captured is said once. Where it says where to write, which workers write, or what
// TensorBoard gets, that is not looked at.
#pragma once

#include <string>
#include <string_view>

#include "traindbg/base/status.h"
#include "traindbg/settings/settings.h"

namespace traindbg::settings {

// `name` is what messages call the file. kInvalidArgument names what is wrong.
[[nodiscard]] base::Result<Settings> parse_hook_json(std::string_view text, const std::string& name);

}  // namespace traindbg::settings

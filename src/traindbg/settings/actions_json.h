// Actions of SageMaker Debugger: what its configuration package puts into a rule's `action_json`, one object
// or a list of
//   {"name": "stoptraining", "training_job_prefix": "night"}
//   {"name": "email", "endpoint": "me@example.org"}
//   {"name": "sms", "endpoint": "+491234567"}
// Quotes may be escaped by backslashes, as that package does. Names are taken in any case; the original
// lowers the case of the whole text, hence so is that of a prefix. An empty prefix is of any training.
//
// What the original logs and skips is an error here.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "traindbg/base/status.h"

namespace traindbg::settings {

enum class ActionKind : std::uint8_t { kStop, kEmail, kSms };

struct RequestedAction {
    ActionKind kind = ActionKind::kStop;
    std::string prefix;    // of kStop, in lower case
    std::string endpoint;  // of the others

    friend bool operator==(const RequestedAction&, const RequestedAction&) = default;
};

// `name` is what messages call the text. A blank text is no action. kInvalidArgument names what is wrong, and
// the nearest word.
[[nodiscard]] base::Result<std::vector<RequestedAction>> parse_actions_json(std::string_view text,
                                                                            const std::string& name);

}  // namespace traindbg::settings

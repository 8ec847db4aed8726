// What the world outside is told about a finding.
#pragma once

#include <cstdint>
#include <string>

#include "traindbg/model/finding.h"
#include "traindbg/model/json.h"

namespace traindbg::actions {

struct Notification {
    // The same for the same finding of the same run, so that a receiver that got it twice can tell.
    std::string id;
    std::string run;        // its name
    std::string directory;  // its path
    std::string host;
    model::Finding finding;
    std::uint64_t withheld = 0;  // how many others this one stands for, where they came too fast
};

// `run_identity`: what tells this run from all others (RunMeta::uuid).
[[nodiscard]] std::string notification_id(const std::string& run_identity, const model::Finding& finding);

// {"schema_version": 1, "event": "finding", "id", "run", "directory", "host", "withheld", "finding": {...}}
[[nodiscard]] model::Json to_json(const Notification& notification);

// For people: "error: exploding_gradient at step 8 in conv2", and what it says with its fix below.
[[nodiscard]] std::string title_of(const Notification& notification);
[[nodiscard]] std::string body_of(const Notification& notification);

}  // namespace traindbg::actions

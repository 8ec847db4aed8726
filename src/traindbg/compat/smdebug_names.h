// What a tensor of the SageMaker Debugger client is, told from its name and its collections.
//
// Its collections come first, because users decide them; then the patterns by which the original names
// things (docs/format/smdebug.md has the table). Thread-safety: plain values, const members from any thread.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "traindbg/compat/name_pattern.h"
#include "traindbg/compat/smdebug_run.h"
#include "traindbg/model/tensor_info.h"

namespace traindbg::compat {

class SmdebugNames {
  public:
    // From what a run knows now: its collections and names. Patterns that cannot be used are left out.
    explicit SmdebugNames(const SmdebugRun& run);

    // The class of the root module, which stands before the name of a parameter: "Net" of
    // "Net_fc.weight". Empty where no name tells.
    [[nodiscard]] const std::string& root() const noexcept { return root_; }
    // Role, module, activation and the user's collections. No id, shape and layer.
    [[nodiscard]] model::TensorInfo describe(std::string_view name) const;

  private:
    struct Collection {
        std::string name;
        std::set<std::string, std::less<>> tensors;
        std::vector<NamePattern> patterns;
    };

    std::vector<Collection> collections_;
    std::string root_;
};

}  // namespace traindbg::compat

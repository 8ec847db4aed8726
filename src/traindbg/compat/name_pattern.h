// The regular expressions of a collection, which are Python's and come with a run that anybody may have
// made, searched in names of tensors.
//
// RE2 underneath, linear in time. It has no look-around; the patterns with look-around that the SageMaker
// Debugger client itself writes into every run are therefore known here by heart. Any other is kUnsupported.
// Thread-safety: const members from any thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "traindbg/base/status.h"

namespace traindbg::compat {

class NamePattern {
  public:
    [[nodiscard]] static base::Result<NamePattern> make(const std::string& pattern);
    NamePattern(NamePattern&& other) noexcept;
    NamePattern& operator=(NamePattern&& other) noexcept;
    ~NamePattern();

    [[nodiscard]] bool matches(std::string_view name) const;

  private:
    class Impl;
    explicit NamePattern(std::unique_ptr<Impl> impl) noexcept;
    std::unique_ptr<Impl> impl_;
};

}  // namespace traindbg::compat

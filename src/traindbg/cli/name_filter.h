// Regular expressions over names of tensors (`--match`), searched, not matched from the start.
//
// RE2 underneath: linear in time whatever the pattern. Look-around and back-references are therefore
// not understood, and the error says so. Thread-safety: const members from any thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "traindbg/base/status.h"

namespace traindbg::cli {

class NameFilter {
  public:
    // An empty pattern lets every name through.
    [[nodiscard]] static base::Result<NameFilter> make(const std::string& pattern);
    NameFilter(NameFilter&& other) noexcept;
    NameFilter& operator=(NameFilter&& other) noexcept;
    ~NameFilter();

    [[nodiscard]] bool matches(std::string_view name) const;

  private:
    class Impl;
    explicit NameFilter(std::unique_ptr<Impl> impl) noexcept;
    std::unique_ptr<Impl> impl_;
};

}  // namespace traindbg::cli

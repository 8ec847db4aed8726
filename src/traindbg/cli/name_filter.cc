#include "traindbg/cli/name_filter.h"

#include <re2/re2.h>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"

namespace traindbg::cli {
namespace {

RE2::Options quiet() {
    RE2::Options options;
    options.set_log_errors(false);
    return options;
}

base::Status wrong(const std::string& pattern, const RE2& compiled) {
    const bool python_only = compiled.error_code() == RE2::ErrorBadPerlOp;
    return {python_only ? base::Code::kUnsupported : base::Code::kInvalidArgument,
            base::format("'{}' is not a regular expression that can be used here: {}{}",
                         base::printable(pattern), base::printable(compiled.error()),
                         python_only ? " (look-around and back-references are not available)" : "")};
}

}  // namespace

class NameFilter::Impl {
  public:
    explicit Impl(const std::string& pattern) : compiled(pattern, quiet()) {}
    RE2 compiled;
};

NameFilter::NameFilter(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
NameFilter::NameFilter(NameFilter&& other) noexcept = default;
NameFilter& NameFilter::operator=(NameFilter&& other) noexcept = default;
NameFilter::~NameFilter() = default;

base::Result<NameFilter> NameFilter::make(const std::string& pattern) {
    auto impl = std::make_unique<Impl>(pattern);
    if (!impl->compiled.ok()) return wrong(pattern, impl->compiled);
    return NameFilter(std::move(impl));
}

bool NameFilter::matches(std::string_view name) const {
    return RE2::PartialMatch(re2::StringPiece(name.data(), name.size()), impl_->compiled);
}

}  // namespace traindbg::cli

#include "traindbg/actions/target_options.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "traindbg/aws/sign.h"
#include "traindbg/base/file_descriptor.h"
#include "traindbg/base/format.h"
#include "traindbg/base/text.h"

namespace traindbg::actions {
namespace {

using base::Code;
using base::Result;
using base::Status;

constexpr std::size_t kMostTargetBytes = 4096;

Result<std::string> first_line(const std::string& path) {
    const base::FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (file.get() < 0) return Status::from_errno(path, errno);
    std::string text(kMostTargetBytes, '\0');
    const ssize_t got = ::read(file.get(), text.data(), text.size());
    if (got < 0) return Status::from_errno(path, errno);
    text.resize(static_cast<std::size_t>(got));
    std::string line(trimmed(std::string_view(text).substr(0, text.find('\n'))));
    if (line.empty())
        return Status(Code::kInvalidArgument, base::printable(path) + ": its first line is empty");
    return line;
}

}  // namespace

std::string_view trimmed(std::string_view text) {
    constexpr std::string_view kBlank = " \t\r\n";
    const std::size_t begin = text.find_first_not_of(kBlank);
    if (begin == std::string_view::npos) return {};
    return text.substr(begin, text.find_last_not_of(kBlank) - begin + 1);
}

std::string Target::option(std::string_view wanted) const {
    const auto it = options.find(wanted);
    return it == options.end() ? std::string() : it->second;
}

bool percent_decoded(std::string_view text, std::string& out) {
    std::string without_plus;  // which stays one
    for (const char letter : text) {
        if (letter == '+') without_plus += "%2B";
        else without_plus += letter;
    }
    return aws::percent_decode(without_plus, out) && out.find('\0') == std::string::npos;
}

Result<Target> parse_target(std::string_view text, std::span<const std::string> known) {
    Target target;
    const std::size_t mark = text.find('?');
    target.name = text.substr(0, mark);
    std::string_view rest = mark == std::string_view::npos ? std::string_view() : text.substr(mark + 1);
    while (!rest.empty()) {
        const std::string_view one = rest.substr(0, rest.find('&'));
        rest.remove_prefix(std::min(rest.size(), one.size() + 1));
        const std::size_t equals = one.find('=');
        std::string name;
        std::string value;
        if (equals == std::string_view::npos || !percent_decoded(one.substr(0, equals), name) ||
            !percent_decoded(one.substr(equals + 1), value))
            return Status(Code::kInvalidArgument, "what stands behind '?' is NAME=VALUE&NAME=VALUE");
        if (std::find(known.begin(), known.end(), name) == known.end())
            return Status(Code::kInvalidArgument,
                          base::format("no option '{}'{}", base::printable(name.substr(0, 40)),
                                       base::did_you_mean(name, known)));
        if (!target.options.emplace(name, value).second)
            return Status(Code::kInvalidArgument, base::format("{}: is given twice", name));
    }
    return target;
}

bool is_reference(std::string_view text) noexcept {
    return text.starts_with("env:") || text.starts_with('@');
}

Result<std::string> dereference(std::string_view text) {
    if (text.starts_with('@')) return first_line(std::string(text.substr(1)));
    const std::string name(text.substr(text.find(':') + 1));
    const char* value = std::getenv(name.c_str());
    const std::string_view set = trimmed(value == nullptr ? "" : value);
    if (set.empty())
        return Status(Code::kInvalidArgument,
                      base::printable(text) + ": this environment variable is not set");
    return std::string(set);
}

}  // namespace traindbg::actions

#include "traindbg/base/status.h"

#include <cerrno>
#include <system_error>

namespace traindbg::base {

std::string_view to_string(Code code) noexcept {
    switch (code) {
        case Code::kOk: return "ok";
        case Code::kInvalidArgument: return "invalid_argument";
        case Code::kNotFound: return "not_found";
        case Code::kAlreadyExists: return "already_exists";
        case Code::kPermissionDenied: return "permission_denied";
        case Code::kResourceExhausted: return "resource_exhausted";
        case Code::kDataLoss: return "data_loss";
        case Code::kUnavailable: return "unavailable";
        case Code::kUnsupported: return "unsupported";
        case Code::kInternal: return "internal";
    }
    return "unknown";
}

Status Status::from_errno(std::string_view what, int error) {
    Code code = Code::kUnavailable;
    switch (error) {
        case ENOENT:
        case ESTALE:  // removed by another machine that has the file system mounted
        case ENOTDIR: code = Code::kNotFound; break;
        case EEXIST:
        case ENOTEMPTY: code = Code::kAlreadyExists; break;
        case EACCES:
        case EPERM:
        case EROFS: code = Code::kPermissionDenied; break;
        case ENOSPC:
        case EDQUOT:
        case EMFILE:
        case ENFILE:
        case ENOMEM:
        case EFBIG: code = Code::kResourceExhausted; break;
        case EINVAL:
        case ENAMETOOLONG:
        case EISDIR: code = Code::kInvalidArgument; break;
        case EIO: code = Code::kDataLoss; break;
        default: break;
    }
    std::string message(what);
    message += ": ";
    message += std::generic_category().message(error);
    return {code, std::move(message)};
}

std::string Status::to_string() const {
    if (is_ok()) return "ok";
    std::string text(base::to_string(code_));
    text += ": ";
    text += message_;
    return text;
}

}  // namespace traindbg::base

#include "traindbg/options/configuration_file.h"

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/settings/settings.h"
#include "traindbg/storage/file_system.h"

namespace traindbg::options {

using base::Code;
using base::Result;
using base::Status;

Result<std::string> read_configuration(std::string_view option, const std::string& path) {
    const auto bytes = storage::read_whole(storage::posix_file_system(), path, settings::kMostBytes);
    if (bytes.status().code() == Code::kNotFound)
        return Status(Code::kNotFound,
                      base::format("{}: {}: there is no such file", option, base::printable(path)));
    if (!bytes.is_ok())
        return Status(Code::kInvalidArgument, base::format("{}: {}", option, bytes.status().message()));
    return std::string(reinterpret_cast<const char*>(bytes->data()), bytes->size());
}

}  // namespace traindbg::options

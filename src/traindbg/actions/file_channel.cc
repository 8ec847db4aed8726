// Adds a line of JSON to a file for each finding.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <nlohmann/json.hpp>
#include <utility>

#include "traindbg/actions/channel.h"
#include "traindbg/base/file_descriptor.h"
#include "traindbg/base/text.h"

namespace traindbg::actions {
namespace {

class FileChannel final : public Channel {
  public:
    explicit FileChannel(std::string path) : path_(std::move(path)) {}

    [[nodiscard]] std::string_view name() const noexcept override { return "file"; }
    [[nodiscard]] std::string intention() const override { return "add a line to " + base::printable(path_); }

    // One write of a whole line, so that lines of several runs do not mix.
    [[nodiscard]] base::Status deliver(const Notification& notification, const storage::Patience&) override {
        const std::string line =
            to_json(notification).dump(-1, ' ', false, model::Json::error_handler_t::replace) + "\n";
        const base::FileDescriptor file(
            ::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0600));
        if (file.get() < 0) return base::Status::from_errno(path_, errno);
        const ssize_t written = ::write(file.get(), line.data(), line.size());
        if (written < 0) return base::Status::from_errno(path_, errno);
        if (written != static_cast<ssize_t>(line.size())) return base::Status::from_errno(path_, ENOSPC);
        return base::Status::ok();
    }

  private:
    std::string path_;
};

}  // namespace

std::unique_ptr<Channel> make_file_channel(std::string path) {
    return std::make_unique<FileChannel>(std::move(path));
}

}  // namespace traindbg::actions

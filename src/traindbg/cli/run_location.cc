#include "traindbg/cli/run_location.h"

#include <charconv>
#include <cstdlib>
#include <optional>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"

namespace traindbg::cli {
namespace {

using base::Code;
using base::Result;
using base::Status;

Result<std::uint64_t> cache_bytes() {
    constexpr std::uint64_t kUsualMiB = 1024;
    constexpr std::uint64_t kMostMiB = 1 << 20;
    std::uint64_t mib = kUsualMiB;
    const std::string setting = aws::process_environment("TRAINDBG_CACHE_MIB");
    if (!setting.empty()) {
        const auto [end, error] = std::from_chars(setting.data(), setting.data() + setting.size(), mib);
        if (error != std::errc() || end != setting.data() + setting.size() || mib > kMostMiB)
            return Status(Code::kInvalidArgument,
                          base::format("TRAINDBG_CACHE_MIB: '{}' is no number of MiB from 0 to {}",
                                       base::printable(setting), kMostMiB));
    }
    return mib << 20;
}

}  // namespace

bool is_remote(std::string_view path) noexcept { return s3::is_s3_url(path); }

Result<RunLocation> RunLocation::of(const std::string& argument, const std::string& root) {
    RunLocation location;
    // What has a "/" and is no URL is a path of this machine.
    if (!is_remote(argument) && argument.find('/') != std::string::npos) return location;
    const std::string& remote = is_remote(argument) ? argument : root;
    if (!is_remote(remote)) return location;
    TRAINDBG_ASSIGN_OR_RETURN(const s3::S3Url url, s3::parse_s3_url(remote));
    location.transport_ = http::make_curl_transport();
    s3::S3Options options;
    options.bucket = url.bucket;
    options.retry.in_all = std::chrono::seconds(30);  // somebody sits and waits
    TRAINDBG_ASSIGN_OR_RETURN(
        location.store_,
        s3::open_s3(options, *location.transport_, &aws::process_environment, storage::posix_file_system()));
    TRAINDBG_ASSIGN_OR_RETURN(const std::uint64_t bytes, cache_bytes());
    location.cache_ = std::make_unique<storage::BlockCache>(
        bytes == 0 ? std::string() : storage::default_cache_directory(), bytes);
    storage::ObjectFileSystemOptions where;
    where.root = "s3://" + url.bucket;
    where.identity = location.store_->endpoint() + "\n" + url.bucket;
    location.remote_ =
        std::make_unique<storage::ObjectFileSystem>(*location.store_, *location.cache_, std::move(where));
    return location;
}

Result<UploadTarget> open_upload_target(const std::string& url, const std::string& run_name,
                                        const std::string& endpoint_url) {
    TRAINDBG_ASSIGN_OR_RETURN(const s3::S3Url parsed, s3::parse_s3_url(url));
    UploadTarget target;
    target.prefix = parsed.key;
    if (url.ends_with('/')) target.prefix += (parsed.key.empty() ? "" : "/") + run_name;
    if (target.prefix.empty())
        return Status(Code::kInvalidArgument,
                      base::format("{}: names a whole bucket; write {}/ to put the run under its name",
                                   base::printable(url), base::printable(url)));
    target.url = "s3://" + parsed.bucket + "/" + target.prefix;
    target.transport = http::make_curl_transport();
    s3::S3Options options;
    options.bucket = parsed.bucket;
    options.endpoint_url = endpoint_url;
    TRAINDBG_ASSIGN_OR_RETURN(target.store, s3::open_s3(options, *target.transport, &aws::process_environment,
                                                        storage::posix_file_system()));
    return target;
}

}  // namespace traindbg::cli

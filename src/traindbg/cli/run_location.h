// Where runs lie: on this machine, or in a bucket (s3://bucket/prefix). The verbs that read take the file
// system from here and are otherwise the same.
//
// Credentials, region and endpoint come by the usual chain (s3/credentials.h). Blocks that were fetched are
// kept under $XDG_CACHE_HOME/traindbg, 1 GiB at most; TRAINDBG_CACHE_MIB sets another bound, 0 keeps none.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "traindbg/base/status.h"
#include "traindbg/http/http.h"
#include "traindbg/s3/s3_object_store.h"
#include "traindbg/storage/block_cache.h"
#include "traindbg/storage/file_system.h"
#include "traindbg/storage/object_file_system.h"

namespace traindbg::cli {

// Begins with "s3://".
[[nodiscard]] bool is_remote(std::string_view path) noexcept;

class RunLocation {
  public:
    // For the run `argument` under `root` (either may be an s3:// URL; both "" is this machine). No request
    // is made yet.
    [[nodiscard]] static base::Result<RunLocation> of(const std::string& argument, const std::string& root);

    [[nodiscard]] storage::FileSystem& files() const noexcept {
        return remote_ ? *remote_ : storage::posix_file_system();
    }

  private:
    // In the order in which one uses the other.
    std::unique_ptr<http::HttpTransport> transport_;
    std::unique_ptr<s3::S3ObjectStore> store_;
    std::unique_ptr<storage::BlockCache> cache_;
    std::unique_ptr<storage::ObjectFileSystem> remote_;
};

// A place to upload a run to.
struct UploadTarget {
    std::string url;     // s3://bucket/prefix of the run itself
    std::string prefix;  // of its objects
    std::unique_ptr<http::HttpTransport> transport;
    std::unique_ptr<s3::S3ObjectStore> store;
};
// `url` names the run's prefix; one that ends with "/" gets the run's name behind it.
[[nodiscard]] base::Result<UploadTarget> open_upload_target(const std::string& url,
                                                            const std::string& run_name,
                                                            const std::string& endpoint_url);

}  // namespace traindbg::cli

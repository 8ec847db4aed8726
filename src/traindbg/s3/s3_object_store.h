// An S3 bucket, or that of any server that speaks like one, as an `ObjectStore`.
//
// What fails for a reason that passes (500, 502, 503, 504, 429, SlowDown, RequestTimeout, a connection
// that breaks, an answer that is cut off) is tried again, after a random wait of up to 0.1 s, 0.2 s,
// 0.4 s ... 5 s, 8 times and 2 minutes at most. 403 and 404 are final; expired credentials are
// fetched anew once. What is larger than 16 MiB goes up in parts of 8 MiB, and is aborted when it fails.
//
// Memory: one part. Thread-safety, errors: as `ObjectStore`; messages begin with s3://bucket/key and
// hold no secret.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "traindbg/aws/credentials.h"
#include "traindbg/http/http.h"
#include "traindbg/storage/object_store.h"

namespace traindbg::s3 {

struct S3Url {
    std::string bucket;
    std::string key;  // without a "/" at the end; empty: the whole bucket
};
[[nodiscard]] bool is_s3_url(std::string_view text) noexcept;  // begins with "s3://"
// kInvalidArgument for a bucket's name that cannot be one.
[[nodiscard]] base::Result<S3Url> parse_s3_url(std::string_view text);

struct RetryLimits {
    int attempts = 8;
    std::chrono::milliseconds first_wait{100};
    std::chrono::milliseconds longest_wait{5000};
    std::chrono::milliseconds in_all{120000};
};

// Counted since the store was made; one attempt is one request.
struct S3Counts {
    std::atomic<std::uint64_t> puts{0};  // PUT, POST and LIST, which cost the same
    std::atomic<std::uint64_t> gets{0};  // GET and HEAD
    std::atomic<std::uint64_t> deletes{0};
    std::atomic<std::uint64_t> retries{0};
};

class S3ObjectStore : public storage::ObjectStore {
  public:
    // The number of requests so far.
    [[nodiscard]] virtual const S3Counts& counts() const noexcept = 0;
    // Where the bucket is: "http://127.0.0.1:9000", "AWS".
    [[nodiscard]] virtual std::string endpoint() const = 0;
};

struct S3Options {
    std::string bucket;
    std::string endpoint_url;  // empty: as the environment and the profile say
    RetryLimits retry;
};

// `transport` must outlive the store. No request is made here.
[[nodiscard]] base::Result<std::unique_ptr<S3ObjectStore>> open_s3(const S3Options& options,
                                                                   http::HttpTransport& transport,
                                                                   const aws::Environment& environment,
                                                                   storage::FileSystem& files);

enum class Addressing : std::uint8_t { kAuto, kPath, kVirtual };

namespace internal {
// TRAINDBG_S3_ADDRESSING, then the profile's.
[[nodiscard]] base::Result<Addressing> load_addressing(const aws::Environment& environment,
                                                       const aws::Profile& profile);
// A list's answer. Of a truncated one `next` is the token to go on with.
[[nodiscard]] base::Result<storage::ObjectPage> parse_list(std::string_view document);

struct ErrorAnswer {
    std::string code;
    std::string message;
    std::string region;
    std::string server_time;
};
// Empty fields where the document is none.
[[nodiscard]] ErrorAnswer parse_error(std::string_view document);
[[nodiscard]] bool is_passing(int status, std::string_view code) noexcept;
}  // namespace internal

}  // namespace traindbg::s3

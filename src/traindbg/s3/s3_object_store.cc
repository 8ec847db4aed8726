#include "traindbg/s3/s3_object_store.h"

#include <algorithm>
#include <charconv>
#include <ctime>
#include <functional>
#include <mutex>
#include <random>
#include <thread>

#include "traindbg/aws/endpoint.h"
#include "traindbg/aws/sign.h"
#include "traindbg/aws/xml.h"
#include "traindbg/base/clock.h"
#include "traindbg/base/format.h"
#include "traindbg/base/text.h"

namespace traindbg::s3 {

using aws::CredentialChain;
using aws::Credentials;
using aws::Environment;
using aws::Profile;
using aws::RequestTarget;
using aws::scan_xml;
using aws::XmlEvent;
using base::ByteBuffer;
using base::ByteSpan;
using base::Code;
using base::Result;
using base::Status;
using storage::ListRequest;
using storage::ObjectInfo;
using storage::ObjectPage;
using storage::Patience;

namespace {

constexpr std::uint64_t kMiB = 1ULL << 20;
constexpr std::uint64_t kLargestPut = 16 * kMiB;
constexpr std::uint64_t kPartBytes = 8 * kMiB;
constexpr std::uint64_t kMostParts = 9000;  // of the 10 000 that S3 allows
constexpr std::int64_t kMilli = 1'000'000;

bool parse_number(std::string_view text, std::uint64_t& value) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() && end == text.data() + text.size() && !text.empty();
}

// Seconds since 1970 of "Sat, 21 Nov 2026 14:52:00 GMT"; nothing for anything else.
std::optional<std::int64_t> http_date(std::string_view text) {
    std::tm parts{};
    if (::strptime(std::string(text).c_str(), "%a, %d %b %Y %H:%M:%S", &parts) == nullptr)
        return std::nullopt;
    return static_cast<std::int64_t>(::timegm(&parts));
}

class Store final : public S3ObjectStore {
  public:
    Store(S3Options options, std::string region, Addressing addressing, Environment environment,
          Profile profile, http::HttpTransport& transport, aws::Endpoint endpoint, bool is_aws)
        : options_(std::move(options)),
          addressing_(addressing),
          transport_(transport),
          credentials_(std::move(environment), std::move(profile), transport),
          endpoint_(std::move(endpoint)),
          is_aws_(is_aws),
          region_(std::move(region)),
          random_(std::random_device{}()) {}

    Status put(const std::string& key, ByteSpan bytes, const Patience& patience) override {
        return put_object(key, bytes, false, patience);
    }

    Status put_if_absent(const std::string& key, ByteSpan bytes, const Patience& patience) override {
        Status status = put_object(key, bytes, true, patience);
        if (status.code() == Code::kUnsupported) {
            // A server that knows no conditions: looked for, then put. Two who do so at once are not told
            // apart.
            Status there = head(key, patience).status();
            if (there.code() == Code::kNotFound) return put_object(key, bytes, false, patience);
            if (!there.is_ok()) return there;
            status = Status(Code::kAlreadyExists, name_of(key) + ": there is another object of that key");
        }
        if (status.code() != Code::kAlreadyExists) return status;
        // It may have been an attempt of our own whose answer was lost.
        const auto there = get_range(key, 0, bytes.size() + 1, std::string(), patience);
        if (there.is_ok() && std::equal(there->begin(), there->end(), bytes.begin(), bytes.end()))
            return Status::ok();
        return status;
    }

    Status put_file(const std::string& key, storage::ReadFile& source, std::uint64_t size,
                    const Patience& patience) override {
        TRAINDBG_RETURN_IF_ERROR(storage::check_key(key));
        if (size <= kLargestPut) {
            TRAINDBG_ASSIGN_OR_RETURN(const ByteBuffer bytes, read_piece(source, 0, size, key));
            return put(key, bytes, patience);
        }
        const std::uint64_t part_bytes =
            std::max(kPartBytes, ((size + kMostParts - 1) / kMostParts + kMiB - 1) / kMiB * kMiB);
        Request begin{"POST", key, {{"uploads", ""}}};
        TRAINDBG_ASSIGN_OR_RETURN(const http::HttpResponse begun, send(begin, patience));
        std::string upload;
        TRAINDBG_RETURN_IF_ERROR(scan_xml(begun.text(), [&](const XmlEvent& event) {
            if (!event.is_begin && event.path == "InitiateMultipartUploadResult/UploadId")
                upload = event.text;
        }));
        if (upload.empty()) return {Code::kDataLoss, name_of(key) + ": the server began no upload"};
        Status status = put_parts(key, source, size, part_bytes, upload, patience);
        if (!status.is_ok()) {
            // The parts cost money until somebody removes them. The caller's time may be over.
            Patience few_seconds{base::monotonic_nanos() + 5'000 * kMilli};
            Request abort{"DELETE", key, {{"uploadId", upload}}};
            send(abort, few_seconds).status().ignore();
        }
        return status;
    }

    Result<ByteBuffer> get_range(const std::string& key, std::uint64_t offset, std::size_t size,
                                 const std::string& etag, const Patience& patience) override {
        TRAINDBG_RETURN_IF_ERROR(storage::check_key(key));
        if (size == 0) return ByteBuffer();
        if (offset > UINT64_MAX - size) return ByteBuffer();
        Request request{"GET", key, {}};
        request.headers.emplace_back("range", base::format("bytes={}-{}", offset, offset + size - 1));
        if (!etag.empty()) request.headers.emplace_back("if-match", etag);
        request.most_bytes = std::max<std::size_t>(size, 64 << 10);
        request.check = [&](const http::HttpResponse& answer) {
            return check_range(key, answer, offset, size);
        };
        Result<http::HttpResponse> answer = send(request, patience);
        if (!answer.is_ok()) return answer.status();
        if (answer->status == 416) return ByteBuffer();
        if (answer->status == 200) {  // the whole object, from a server that knows no ranges
            ByteBuffer& body = answer->body;
            if (offset >= body.size()) return ByteBuffer();
            body.erase(body.begin(), body.begin() + static_cast<std::ptrdiff_t>(offset));
            if (body.size() > size) body.resize(size);
        }
        return std::move(answer->body);
    }

    Result<ObjectInfo> head(const std::string& key, const Patience& patience) override {
        TRAINDBG_RETURN_IF_ERROR(storage::check_key(key));
        Request request{"HEAD", key, {}};
        TRAINDBG_ASSIGN_OR_RETURN(const http::HttpResponse answer, send(request, patience));
        ObjectInfo info;
        info.key = key;
        info.etag = answer.header("etag");
        if (!parse_number(answer.header("content-length"), info.size))
            return Status(Code::kDataLoss, name_of(key) + ": the server told no size");
        return info;
    }

    Result<ObjectPage> list(const ListRequest& asked, const Patience& patience) override {
        Request request{"GET", "", {{"list-type", "2"}, {"encoding-type", "url"}}};
        request.is_list = true;
        request.query.emplace_back("max-keys", std::to_string(std::clamp<std::size_t>(asked.limit, 1, 1000)));
        if (!asked.prefix.empty()) request.query.emplace_back("prefix", asked.prefix);
        if (!asked.page.empty()) request.query.emplace_back("continuation-token", asked.page);
        else if (!asked.after.empty()) request.query.emplace_back("start-after", asked.after);
        if (asked.shallow) request.query.emplace_back("delimiter", "/");
        request.most_bytes = 16 * kMiB;
        ObjectPage page;
        request.check = [&](const http::HttpResponse& answer) {
            auto parsed = internal::parse_list(answer.text());
            if (!parsed.is_ok()) return parsed.status();
            // Callers cut the prefix off, and ask for the next page as long as there is one.
            const auto is_foreign = [&](const std::string& key) { return !key.starts_with(asked.prefix); };
            for (const storage::ObjectInfo& object : parsed->objects)
                if (is_foreign(object.key))
                    return Status(Code::kDataLoss, "the server's list holds other keys");
            if (std::any_of(parsed->directories.begin(), parsed->directories.end(), is_foreign) ||
                (!parsed->next.empty() && parsed->next == asked.page))
                return Status(Code::kDataLoss, "the server's list is not what was asked for");
            page = std::move(parsed).value();
            return Status::ok();
        };
        TRAINDBG_RETURN_IF_ERROR(send(request, patience).status());
        return page;
    }

    Status remove(const std::string& key, const Patience& patience) override {
        TRAINDBG_RETURN_IF_ERROR(storage::check_key(key));
        Request request{"DELETE", key, {}};
        const Status status = send(request, patience).status();
        return status.code() == Code::kNotFound ? Status::ok() : status;
    }

    [[nodiscard]] const S3Counts& counts() const noexcept override { return counts_; }
    [[nodiscard]] std::string endpoint() const override {
        return is_aws_ ? "AWS" : endpoint_.scheme + "://" + endpoint_.host + endpoint_.path;
    }

  private:
    struct Request {
        std::string method;
        std::string key;
        std::vector<std::pair<std::string, std::string>> query;
        http::HeaderList headers{};
        ByteSpan body{};
        std::size_t most_bytes = std::size_t{1} << 20;
        bool is_list = false;
        std::chrono::milliseconds stall_timeout{10000};
        // Of an answer with a status below 300: an error makes it one to be tried again.
        std::function<Status(const http::HttpResponse&)> check{};
    };

    [[nodiscard]] std::string name_of(const std::string& key) const {
        return "s3://" + options_.bucket + (key.empty() ? "" : "/" + base::printable(key));
    }

    Status put_object(const std::string& key, ByteSpan bytes, bool if_absent, const Patience& patience) {
        TRAINDBG_RETURN_IF_ERROR(storage::check_key(key));
        Request request{"PUT", key, {}};
        request.body = bytes;
        if (if_absent) request.headers.emplace_back("if-none-match", "*");
        return send(request, patience).status();
    }

    Result<ByteBuffer> read_piece(storage::ReadFile& source, std::uint64_t offset, std::uint64_t size,
                                  const std::string& key) const {
        TRAINDBG_ASSIGN_OR_RETURN(ByteBuffer bytes, source.read_at(offset, static_cast<std::size_t>(size)));
        if (bytes.size() != size)
            return Status(Code::kDataLoss, base::format("{}: its file has only {} of {} bytes at {}",
                                                        name_of(key), bytes.size(), size, offset));
        return bytes;
    }

    Status put_parts(const std::string& key, storage::ReadFile& source, std::uint64_t size,
                     std::uint64_t part_bytes, const std::string& upload, const Patience& patience) {
        std::string done = "<CompleteMultipartUpload>";
        std::uint64_t offset = 0;
        for (int number = 1; offset < size; ++number) {
            const std::uint64_t wanted = std::min(part_bytes, size - offset);
            TRAINDBG_ASSIGN_OR_RETURN(const ByteBuffer bytes, read_piece(source, offset, wanted, key));
            Request part{"PUT", key, {{"partNumber", std::to_string(number)}, {"uploadId", upload}}};
            part.body = bytes;
            part.check = [](const http::HttpResponse& answer) {
                return answer.header("etag").empty() ? Status(Code::kDataLoss, "a part without an ETag")
                                                     : Status::ok();
            };
            TRAINDBG_ASSIGN_OR_RETURN(const http::HttpResponse answer, send(part, patience));
            done += base::format("<Part><PartNumber>{}</PartNumber><ETag>{}</ETag></Part>", number,
                                 aws::xml_escape(answer.header("etag")));
            offset += wanted;
        }
        done += "</CompleteMultipartUpload>";
        Request complete{"POST", key, {{"uploadId", upload}}};
        complete.body = base::as_bytes(done);
        complete.stall_timeout = std::chrono::milliseconds(60000);
        complete.headers.emplace_back("content-type", "application/xml");
        // S3 may say 200 before it knows, and tell the error in the body.
        complete.check = [](const http::HttpResponse& answer) {
            bool is_done = false;
            TRAINDBG_RETURN_IF_ERROR(scan_xml(answer.text(), [&](const XmlEvent& event) {
                is_done = is_done || event.path == "CompleteMultipartUploadResult";
            }));
            if (is_done) return Status::ok();
            const internal::ErrorAnswer error = internal::parse_error(answer.text());
            return Status(Code::kDataLoss, "the parts were not put together: " + base::printable(error.code));
        };
        Status status = send(complete, patience).status();
        if (status.code() != Code::kNotFound) return status;
        // The upload is gone: an attempt whose answer was lost may have done it.
        const auto info = head(key, patience);
        return info.is_ok() && info->size == size ? Status::ok() : status;
    }

    Status check_range(const std::string& key, const http::HttpResponse& answer, std::uint64_t offset,
                       std::size_t size) const {
        if (answer.status != 206) return Status::ok();
        // "bytes 0-9/100": what came must be what was asked for.
        std::string_view range = answer.header("content-range");
        const std::size_t dash = range.find('-');
        const std::size_t slash = range.find('/');
        std::uint64_t first = 0;
        std::uint64_t last = 0;
        std::uint64_t whole = 0;
        const bool is_whole = range.starts_with("bytes ") && dash != std::string_view::npos &&
                              slash != std::string_view::npos && dash < slash && dash >= 6 &&
                              parse_number(range.substr(6, dash - 6), first) &&
                              parse_number(range.substr(dash + 1, slash - dash - 1), last) &&
                              parse_number(range.substr(slash + 1), whole);
        const bool fits = is_whole && first == offset && last >= first && last < whole &&
                          last - first + 1 == std::min<std::uint64_t>(size, whole - first) &&
                          answer.body.size() == last - first + 1;
        return fits ? Status::ok()
                    : Status(Code::kDataLoss, name_of(key) + ": another range came than was asked for");
    }

    [[nodiscard]] RequestTarget target_of(const Request& request, const std::string& region) const {
        RequestTarget target;
        target.scheme = endpoint_.scheme;
        target.query = request.query;
        const bool is_virtual = addressing_ == Addressing::kVirtual;
        if (is_aws_) {
            target.host = aws::amazon_host("s3", region);
        } else {
            target.host = endpoint_.host;
        }
        if (is_virtual) target.host = options_.bucket + "." + target.host;
        target.path = endpoint_.path + "/" + (is_virtual ? "" : options_.bucket);
        if (!request.key.empty()) target.path += (is_virtual ? "" : "/") + request.key;
        return target;
    }

    void count(const Request& request, bool is_retry) {
        if (is_retry) ++counts_.retries;
        if (request.method == "DELETE") ++counts_.deletes;
        else if (request.method == "HEAD" || (request.method == "GET" && !request.is_list)) ++counts_.gets;
        else ++counts_.puts;
    }

    [[nodiscard]] std::string region() {
        const std::lock_guard lock(mutex_);
        return region_;
    }

    // Sleeps before attempt `number` (from 1); false: the time is over before.
    bool wait(int number, const Patience& patience) {
        std::int64_t most = options_.retry.first_wait.count() * kMilli;
        for (int i = 1; i < number && most < options_.retry.longest_wait.count() * kMilli; ++i) most *= 2;
        most = std::min(most, options_.retry.longest_wait.count() * kMilli);
        std::int64_t rest = 0;
        {
            const std::lock_guard lock(mutex_);
            rest = std::uniform_int_distribution<std::int64_t>(0, most)(random_);
        }
        const std::int64_t until = base::monotonic_nanos() + rest;
        if (until >= patience.deadline_nanos) return false;
        while (!patience.is_over()) {
            const std::int64_t left = until - base::monotonic_nanos();
            if (left <= 0) return true;
            std::this_thread::sleep_for(std::chrono::nanoseconds(std::min<std::int64_t>(left, 50 * kMilli)));
        }
        return false;
    }

    // One request and its answer, however many attempts it takes.
    Result<http::HttpResponse> send(const Request& request, const Patience& caller) {
        Patience patience = caller;
        patience.deadline_nanos =
            std::min(caller.deadline_nanos, base::monotonic_nanos() + options_.retry.in_all.count() * kMilli);
        bool renewed_credentials = false;
        bool followed_region = false;
        Status last(Code::kUnavailable, "there was no time left");
        int attempt = 0;
        while (attempt < options_.retry.attempts) {
            if (attempt != 0 && !wait(attempt, patience)) break;
            ++attempt;
            if (patience.is_over()) break;
            auto credentials = credentials_.get(patience);
            if (!credentials.is_ok()) {
                last = credentials.status();
                if (last.code() != Code::kUnavailable)
                    return Status(last.code(), name_of(request.key) + ": " + last.message());
                continue;
            }
            const std::string in_region = region();
            const RequestTarget target = target_of(request, in_region);
            http::HttpRequest http;
            http.method = request.method;
            http.url = aws::url_of(target);
            http.headers = request.headers;
            http.body = request.body;
            http.most_bytes = request.most_bytes;
            http.stall_timeout = request.stall_timeout;
            aws::sign_request(request.method, target, http.headers, request.body, *credentials, in_region,
                              "s3", base::wall_nanos());
            count(request, attempt > 1);
            auto answer = transport_.perform(http, patience);
            if (!answer.is_ok()) {
                last = answer.status();
                if (last.code() != Code::kUnavailable && last.code() != Code::kDataLoss)
                    return Status(last.code(), name_of(request.key) + ": " + last.message());
                continue;
            }
            if (answer->status >= 200 && answer->status < 300) {
                last = request.check ? request.check(*answer) : Status::ok();
                if (last.is_ok()) return answer;
                continue;
            }
            if (answer->status == 416 && request.method == "GET") return answer;
            internal::ErrorAnswer error = internal::parse_error(answer->text());
            if (internal::is_passing(answer->status, error.code)) {
                last = Status(Code::kUnavailable, base::format("the server answered {} {}", answer->status,
                                                               base::printable(error.code)));
                continue;
            }
            if (!renewed_credentials &&
                (error.code == "ExpiredToken" || error.code == "TokenRefreshRequired")) {
                renewed_credentials = true;
                credentials_.forget();
                --attempt;
                continue;
            }
            std::string elsewhere(answer->header("x-amz-bucket-region"));
            // It becomes part of a host's name.
            if (elsewhere.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") != std::string::npos)
                elsewhere.clear();
            const std::string& there = error.region.empty() ? elsewhere : error.region;
            if (!followed_region && !there.empty() && there != in_region &&
                (answer->status == 301 || answer->status == 307 || answer->status == 400)) {
                followed_region = true;
                const std::lock_guard lock(mutex_);
                region_ = there;
                --attempt;
                continue;
            }
            return refusal(request, *answer, error, *credentials);
        }
        return Status(Code::kUnavailable, base::format("{}: {} {} failed {} time{}: {}", name_of(request.key),
                                                       request.is_list ? "LIST" : request.method, where(),
                                                       attempt, attempt == 1 ? "" : "s", last.message()));
    }

    [[nodiscard]] std::string where() const {
        return is_aws_ ? "at AWS" : "at " + endpoint_.scheme + "://" + endpoint_.host;
    }

    // A final answer in words.
    Status refusal(const Request& request, const http::HttpResponse& answer,
                   const internal::ErrorAnswer& error, const Credentials& credentials) {
        const std::string name = name_of(request.key);
        const std::string code = base::printable(error.code);
        if (answer.status == 404) {
            if (error.code == "NoSuchBucket") {
                return {Code::kInvalidArgument,
                        base::format("s3://{}: there is no such bucket {}; traindbg makes none: make it, or "
                                     "check its name and the endpoint",
                                     options_.bucket, where())};
            }
            return {Code::kNotFound, name + ": no such object"};
        }
        if (answer.status == 412) {
            if (request.method == "GET")
                return {Code::kDataLoss, name + ": the object was replaced while it was read"};
            return {Code::kAlreadyExists, name + ": there is another object of that key"};
        }
        if (error.code == "RequestTimeTooSkewed") {
            std::string skew;
            if (const auto server = http_date(answer.header("date"))) {
                const std::int64_t ours = base::wall_nanos() / 1'000'000'000;
                skew = base::format(" by {} s", ours > *server ? ours - *server : *server - ours);
            }
            return {Code::kPermissionDenied,
                    base::format("{}: this machine's clock and the server's differ{} (RequestTimeTooSkewed); "
                                 "set the clock",
                                 name, skew)};
        }
        if (answer.status == 401 || answer.status == 403 || error.code == "ExpiredToken" ||
            error.code == "InvalidToken") {
            std::string why = "the server refuses it";
            if (error.code == "SignatureDoesNotMatch") why = "the secret key is wrong";
            else if (error.code == "InvalidAccessKeyId") why = "the access key is not known";
            else if (error.code == "ExpiredToken" || error.code == "TokenRefreshRequired")
                why = "the credentials have expired";
            else if (error.code == "InvalidToken") why = "the session token is wrong";
            else if (error.code == "AccessDenied" || error.code.empty())
                why = "these credentials do not allow it";
            return {Code::kPermissionDenied,
                    base::format("{}: {} {}: {} ({}{}credentials of {})", name,
                                 request.is_list ? "LIST" : request.method, answer.status, why, code,
                                 code.empty() ? "" : ", ", credentials.source)};
        }
        return {answer.status == 501 ? Code::kUnsupported : Code::kInvalidArgument,
                base::format("{}: {} {}: the server answered {} {} {}", name,
                             request.is_list ? "LIST" : request.method, where(), answer.status, code,
                             base::printable(error.message.substr(0, 200)))};
    }

    const S3Options options_;
    const Addressing addressing_;
    http::HttpTransport& transport_;
    CredentialChain credentials_;
    const aws::Endpoint endpoint_;
    const bool is_aws_;
    S3Counts counts_;
    std::mutex mutex_;
    std::string region_;
    std::mt19937_64 random_;
};

// Whether "<bucket>.s3.amazonaws.com" is a host that the wildcard certificate covers.
bool is_host_label(std::string_view bucket) {
    return bucket.find('.') == std::string_view::npos && bucket.find('_') == std::string_view::npos;
}

}  // namespace

bool is_s3_url(std::string_view text) noexcept { return text.starts_with("s3://"); }

Result<S3Url> parse_s3_url(std::string_view text) {
    const auto wrong = [&](std::string_view why) {
        return Status(Code::kInvalidArgument,
                      base::format("{}: {}; write s3://bucket/prefix", base::printable(text), why));
    };
    if (!is_s3_url(text)) return wrong("is no S3 URL");
    std::string_view rest = text.substr(5);
    S3Url url;
    url.bucket = rest.substr(0, rest.find('/'));
    rest.remove_prefix(url.bucket.size());
    if (url.bucket.size() < 3 || url.bucket.size() > 63) return wrong("a bucket's name has 3 to 63 letters");
    for (const char letter : url.bucket)
        if (!((letter >= 'a' && letter <= 'z') || (letter >= '0' && letter <= '9') || letter == '-' ||
              letter == '.'))
            return wrong("a bucket's name has small letters, digits, '-' and '.' only");
    if (url.bucket.front() == '.' || url.bucket.front() == '-' || url.bucket.find("..") != std::string::npos)
        return wrong("that cannot be a bucket's name");
    while (rest.starts_with('/')) rest.remove_prefix(1);
    while (rest.ends_with('/')) rest.remove_suffix(1);
    url.key = rest;
    if (!url.key.empty()) {
        if (const Status status = storage::check_key(url.key); !status.is_ok()) return status;
    }
    return url;
}

Result<std::unique_ptr<S3ObjectStore>> open_s3(const S3Options& options, http::HttpTransport& transport,
                                               const Environment& environment, storage::FileSystem& files) {
    TRAINDBG_RETURN_IF_ERROR(parse_s3_url("s3://" + options.bucket).status());
    TRAINDBG_ASSIGN_OR_RETURN(Profile profile, aws::load_profile(environment, files));
    TRAINDBG_ASSIGN_OR_RETURN(aws::Settings settings, aws::load_settings(environment, profile, "S3"));
    TRAINDBG_ASSIGN_OR_RETURN(Addressing addressing, internal::load_addressing(environment, profile));
    if (!options.endpoint_url.empty()) settings.endpoint_url = options.endpoint_url;
    const bool is_aws = settings.endpoint_url.empty();
    if (addressing == Addressing::kAuto)
        addressing = is_aws && is_host_label(options.bucket) ? Addressing::kVirtual : Addressing::kPath;
    aws::Endpoint endpoint;
    if (!is_aws) {
        TRAINDBG_ASSIGN_OR_RETURN(endpoint, aws::parse_endpoint(settings.endpoint_url));
    }
    return std::unique_ptr<S3ObjectStore>(std::make_unique<Store>(options, std::move(settings.region),
                                                                  addressing, environment, std::move(profile),
                                                                  transport, std::move(endpoint), is_aws));
}

namespace internal {

Result<Addressing> load_addressing(const Environment& environment, const Profile& profile) {
    std::string style = environment("TRAINDBG_S3_ADDRESSING");
    if (style.empty()) style = aws::value_of(profile.config, "s3.addressing_style");
    if (style == "path") return Addressing::kPath;
    if (style == "virtual") return Addressing::kVirtual;
    if (style.empty() || style == "auto") return Addressing::kAuto;
    return Status(Code::kInvalidArgument,
                  base::format("TRAINDBG_S3_ADDRESSING: '{}' is not one of path, virtual, auto",
                               base::printable(style)));
}

Result<ObjectPage> parse_list(std::string_view document) {
    ObjectPage page;
    ObjectInfo object;
    bool is_truncated = false;
    bool is_encoded = false;
    bool is_bad = false;
    std::string token;
    const Status status = scan_xml(document, [&](const XmlEvent& event) {
        const std::string_view path = event.path;
        if (path == "ListBucketResult/Contents") {
            if (!event.is_begin) page.objects.push_back(std::move(object));
            object = ObjectInfo();
            return;
        }
        if (event.is_begin) return;
        if (path == "ListBucketResult/Contents/Key") object.key = event.text;
        else if (path == "ListBucketResult/Contents/ETag") object.etag = event.text;
        else if (path == "ListBucketResult/Contents/Size")
            is_bad = !parse_number(event.text, object.size) || is_bad;
        else if (path == "ListBucketResult/CommonPrefixes/Prefix") page.directories.emplace_back(event.text);
        else if (path == "ListBucketResult/IsTruncated") is_truncated = event.text == "true";
        else if (path == "ListBucketResult/EncodingType") is_encoded = event.text == "url";
        else if (path == "ListBucketResult/NextContinuationToken") token = event.text;
    });
    TRAINDBG_RETURN_IF_ERROR(status);
    if (!document.starts_with("<") || is_bad || (is_truncated && token.empty()))
        return Status(Code::kDataLoss, "the server's list is not whole");
    const auto decode = [&](std::string& text) {
        std::string decoded;
        if (is_encoded && !aws::percent_decode(text, decoded)) return false;
        if (is_encoded) text = std::move(decoded);
        return storage::check_key(text).is_ok();
    };
    for (ObjectInfo& listed : page.objects)
        if (!decode(listed.key)) return Status(Code::kDataLoss, "the server's list holds a key that is none");
    for (std::string& directory : page.directories)
        if (!decode(directory)) return Status(Code::kDataLoss, "the server's list holds a key that is none");
    if (is_truncated) page.next = std::move(token);
    return page;
}

ErrorAnswer parse_error(std::string_view document) {
    ErrorAnswer error;
    // What of it is whole counts; the status says the rest.
    scan_xml(document, [&](const XmlEvent& event) {
        if (event.is_begin) return;
        if (event.path == "Error/Code") error.code = event.text;
        else if (event.path == "Error/Message") error.message = event.text;
        else if (event.path == "Error/Region") error.region = event.text;
        else if (event.path == "Error/ServerTime") error.server_time = event.text;
    }).ignore();
    for (const char letter : error.region)
        if (!((letter >= 'a' && letter <= 'z') || (letter >= '0' && letter <= '9') || letter == '-')) {
            error.region.clear();  // it would become part of a host's name
            break;
        }
    return error;
}

bool is_passing(int status, std::string_view code) noexcept {
    if (status == 429 || status == 408) return true;
    if (status >= 500 && status != 501 && status != 505) return true;
    return code == "SlowDown" || code == "RequestTimeout" || code == "InternalError" ||
           code == "ServiceUnavailable" || code == "ConditionalRequestConflict" ||
           code == "OperationAborted" || code == "Throttling" || code == "ThrottlingException" ||
           code == "RequestLimitExceeded";
}

}  // namespace internal

}  // namespace traindbg::s3

#include <algorithm>
#include <array>
#include <cstdlib>
#include <mutex>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/base/version.h"
#include "traindbg/http/curl_call.h"
#include "traindbg/http/http.h"
#include "traindbg/http/libcurl.h"

namespace traindbg::http {

std::string_view HttpResponse::header(std::string_view name) const noexcept {
    for (const auto& [key, value] : headers)
        if (key == name) return value;
    return {};
}

namespace {

using base::Code;
using base::Result;
using base::Status;
using internal::Curl;
using internal::CurlHandle;
using storage::Patience;

// What the callbacks of one transfer see. They are called from C: nothing may be thrown through it.
struct Transfer {
    const HttpRequest& request;
    internal::CurlDeadline deadline;
    HttpResponse response;
    std::size_t header_bytes = 0;
    bool is_too_long = false;
};

// NOLINTNEXTLINE(readability-non-const-parameter): libcurl calls a function of this type
std::size_t take_body(char* data, std::size_t size, std::size_t count, void* context) noexcept {
    auto& transfer = *static_cast<Transfer*>(context);
    const std::size_t bytes = size * count;
    base::ByteBuffer& body = transfer.response.body;
    if (bytes > transfer.request.most_bytes - std::min(transfer.request.most_bytes, body.size())) {
        transfer.is_too_long = true;
        return 0;
    }
    const auto* begin = reinterpret_cast<const std::byte*>(data);
    try {
        body.insert(body.end(), begin, begin + bytes);
    } catch (const std::bad_alloc&) {
        return 0;
    }
    return bytes;
}

std::size_t take_header(char* data, std::size_t size, std::size_t count, void* context) noexcept {
    auto& transfer = *static_cast<Transfer*>(context);
    const std::size_t bytes = size * count;
    std::string_view line(data, bytes);
    constexpr std::size_t kMostHeaderBytes = 64 << 10;
    transfer.header_bytes += bytes;
    if (transfer.header_bytes > kMostHeaderBytes) {
        transfer.is_too_long = true;
        return 0;
    }
    try {
        if (line.starts_with("HTTP/")) transfer.response.headers.clear();  // after a 100 Continue
        const std::size_t colon = line.find(':');
        if (colon == std::string_view::npos) return bytes;
        std::string name(line.substr(0, colon));
        for (char& letter : name)
            if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
        line.remove_prefix(colon + 1);
        while (!line.empty() && (line.front() == ' ' || line.front() == '\t')) line.remove_prefix(1);
        while (!line.empty() && static_cast<unsigned char>(line.back()) <= ' ') line.remove_suffix(1);
        transfer.response.headers.emplace_back(std::move(name), line);
    } catch (const std::bad_alloc&) {
        return 0;
    }
    return bytes;
}

class CurlTransport final : public HttpTransport {
  public:
    ~CurlTransport() override {
        const internal::NoBrokenPipe quiet;
        for (CurlHandle* handle : idle_) curl_->easy_cleanup(handle);
    }

    Result<HttpResponse> perform(const HttpRequest& request, const Patience& patience) override {
        if (patience.is_over()) return Status(Code::kUnavailable, "there was no time left");
        TRAINDBG_ASSIGN_OR_RETURN(const Curl* curl, internal::load_curl());
        CurlHandle* handle = take_handle(*curl);
        if (handle == nullptr) return Status(Code::kResourceExhausted, "libcurl: no memory for a request");
        Result<HttpResponse> answer = perform_on(*curl, handle, request, patience);
        const std::lock_guard lock(mutex_);
        idle_.push_back(handle);
        return answer;
    }

  private:
    // A handle keeps its connections, so that most requests need no new one.
    CurlHandle* take_handle(const Curl& curl) {
        {
            const std::lock_guard lock(mutex_);
            curl_ = &curl;
            if (!idle_.empty()) {
                CurlHandle* handle = idle_.back();
                idle_.pop_back();
                return handle;
            }
        }
        return curl.easy_init();
    }

    static Result<HttpResponse> perform_on(const Curl& curl, CurlHandle* handle, const HttpRequest& request,
                                           const Patience& patience) {
        Transfer transfer{request, {patience}, {}};
        std::array<char, internal::kCurlErrorBytes> why{};
        const std::string agent = "traindbg/" + std::string(base::version());
        internal::CurlList* headers = nullptr;
        const auto add_header = [&](const std::string& line) {
            internal::CurlList* longer = curl.slist_append(headers, line.c_str());
            if (longer != nullptr) headers = longer;
            return longer != nullptr;
        };
        bool has_all = add_header("Expect:");  // no pause before a body
        bool has_type = false;
        for (const auto& [name, value] : request.headers) {
            // A header without a value is left out by libcurl unless it ends with a semicolon.
            has_all = add_header(value.empty() ? name + ";" : name + ": " + value) && has_all;
            has_type = has_type || name == "content-type";
        }
        if (!has_type) has_all = add_header("Content-Type:") && has_all;

        curl.easy_reset(handle);
        const auto set = [&](internal::CurlOption option, auto value) {
            static_cast<void>(curl.easy_setopt(handle, option, value));
        };
        set(internal::kCurlUrl, request.url.c_str());
        set(internal::kCurlPathAsIs, 1L);  // keys may hold "..", which means nothing in a bucket
        set(internal::kCurlProtocols, internal::kCurlProtoHttpAndHttps);
        set(internal::kCurlHttpVersion, internal::kCurlHttp11);
        set(internal::kCurlUserAgent, agent.c_str());
        set(internal::kCurlErrorBuffer, why.data());
        set(internal::kCurlHttpHeader, headers);
        set(internal::kCurlWriteFunction, &take_body);
        set(internal::kCurlWriteData, static_cast<void*>(&transfer));
        set(internal::kCurlHeaderFunction, &take_header);
        set(internal::kCurlHeaderData, static_cast<void*>(&transfer));
        internal::keep_deadline(curl, handle, transfer.deadline, request.connect_timeout,
                                request.stall_timeout);
        if (!request.uses_proxy) set(internal::kCurlNoProxy, "*");
        if (const char* bundle = std::getenv("AWS_CA_BUNDLE"); bundle != nullptr && *bundle != '\0')
            set(internal::kCurlCaInfo, bundle);
        if (request.method == "HEAD") {
            set(internal::kCurlNoBody, 1L);
        } else if (request.method != "GET") {
            if (request.method != "DELETE" || !request.body.empty()) {
                const void* body = request.body.empty() ? "" : static_cast<const void*>(request.body.data());
                set(internal::kCurlPostFieldSizeLarge, static_cast<long long>(request.body.size()));
                set(internal::kCurlPostFields, body);
            }
            set(internal::kCurlCustomRequest, request.method.c_str());
        }
        int code = internal::kCurlOk;
        if (has_all) {
            const internal::NoBrokenPipe quiet;
            code = curl.easy_perform(handle);
        }
        long status = 0;
        static_cast<void>(curl.easy_getinfo(handle, internal::kCurlResponseCode, &status));
        curl.easy_reset(handle);  // it must not point at what is about to go
        curl.slist_free_all(headers);
        if (!has_all) return Status(Code::kResourceExhausted, "libcurl: no memory for a request");
        if (code != internal::kCurlOk) return explain(curl, code, why.data(), transfer);
        transfer.response.status = static_cast<int>(status);
        return std::move(transfer.response);
    }

    static Status explain(const Curl& curl, int code, const char* why, const Transfer& transfer) {
        if (transfer.deadline.is_over) return {Code::kUnavailable, "there was no time left"};
        if (transfer.is_too_long)
            return {Code::kDataLoss, base::format("the server's answer is longer than the {} bytes asked for",
                                                  transfer.request.most_bytes)};
        const std::string text = base::printable(*why != '\0' ? why : curl.easy_strerror(code));
        switch (code) {
            case internal::kCurlUnsupportedProtocol:
            case internal::kCurlUrlMalformat: return {Code::kInvalidArgument, text};
            case internal::kCurlPeerFailedVerification:
            case internal::kCurlSslCaCertBadFile:
                return {Code::kPermissionDenied,
                        text +
                            "; the server's certificate is not trusted: AWS_CA_BUNDLE names another file of "
                            "authorities"};
            default: return {Code::kUnavailable, text};
        }
    }

    std::mutex mutex_;
    const Curl* curl_ = nullptr;
    std::vector<CurlHandle*> idle_;
};

}  // namespace

std::unique_ptr<HttpTransport> make_curl_transport() { return std::make_unique<CurlTransport>(); }

}  // namespace traindbg::http

// One HTTP request and its answer: the seam between those who talk to a server and libcurl.
//
// Thread-safety: a transport may be used from any thread. Errors: kUnavailable (the network: may work
// later), kPermissionDenied (the server's certificate is not trusted), kUnsupported (there is no
// libcurl on this machine), kInvalidArgument (the URL). A status like 403 or 503 is an answer, no error.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "traindbg/base/bytes.h"
#include "traindbg/base/status.h"
#include "traindbg/storage/object_store.h"

namespace traindbg::http {

using HeaderList = std::vector<std::pair<std::string, std::string>>;

struct HttpRequest {
    std::string method = "GET";  // GET, HEAD, PUT, POST, DELETE
    std::string url;
    HeaderList headers;
    base::ByteSpan body;                            // of PUT and POST; borrowed for the call
    std::size_t most_bytes = std::size_t{1} << 20;  // a longer answer is an error
    std::chrono::milliseconds connect_timeout{5000};
    std::chrono::milliseconds stall_timeout{10000};  // nothing moved in either direction
    bool uses_proxy = true;                          // the one that the environment names, if any
};

struct HttpResponse {
    int status = 0;
    HeaderList headers;  // names in lower case
    base::ByteBuffer body;

    // Empty: there is none.
    [[nodiscard]] std::string_view header(std::string_view name) const noexcept;
    [[nodiscard]] std::string_view text() const noexcept {
        return {reinterpret_cast<const char*>(body.data()), body.size()};
    }
};

class HttpTransport {
  public:
    HttpTransport() = default;
    HttpTransport(const HttpTransport&) = delete;
    HttpTransport& operator=(const HttpTransport&) = delete;
    virtual ~HttpTransport() = default;

    [[nodiscard]] virtual base::Result<HttpResponse> perform(const HttpRequest& request,
                                                             const storage::Patience& patience) = 0;
};

// libcurl, loaded when the first request is made: a program that never talks to a network needs none.
// Certificates are checked against the system's, or AWS_CA_BUNDLE.
[[nodiscard]] std::unique_ptr<HttpTransport> make_curl_transport();

}  // namespace traindbg::http

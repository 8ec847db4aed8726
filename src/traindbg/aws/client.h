// Signed requests to one service of AWS, or to a server that speaks like one.
//
// A call is one attempt; who makes it tries again. Credentials that have expired are fetched anew once.
//
// Thread-safety: one thread at a time. Errors: kUnavailable (the network, 5xx, throttling: may work later),
// kPermissionDenied (the service refuses these credentials), kInvalidArgument (it does not understand, or
// there is nothing of that name), and those of the credentials. Messages hold no secret.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "traindbg/aws/credentials.h"
#include "traindbg/aws/endpoint.h"
#include "traindbg/base/status.h"
#include "traindbg/http/http.h"
#include "traindbg/storage/file_system.h"

namespace traindbg::aws {

struct ClientOptions {
    std::string service;       // in signatures and in Amazon's hosts: "sns", "monitoring"
    std::string variable;      // AWS_ENDPOINT_URL_<variable>: "SNS", "CLOUDWATCH"
    std::string region;        // empty: as the environment and the profile say
    std::string endpoint_url;  // likewise
};

struct Call {
    std::string path = "/";    // not encoded
    http::HeaderList headers;  // names in lower case
    std::string body;
};

using Form = std::vector<std::pair<std::string, std::string>>;
// The body of a call by AWS' query protocol, and its content type.
[[nodiscard]] Call query_call(std::string_view action, std::string_view version, const Form& form);

class Client {
  public:
    // Makes no request.
    [[nodiscard]] static base::Result<std::unique_ptr<Client>> open(
        const ClientOptions& options, std::unique_ptr<http::HttpTransport> transport,
        const Environment& environment, storage::FileSystem& files);

    // By POST. An answer of 2xx.
    [[nodiscard]] base::Result<http::HttpResponse> post(const Call& call, const storage::Patience& patience);
    [[nodiscard]] const std::string& region() const noexcept { return region_; }
    // "AWS eu-west-1", "http://127.0.0.1:5000"
    [[nodiscard]] std::string where() const;

  private:
    Client(std::unique_ptr<http::HttpTransport> transport, Environment environment, Profile profile)
        : transport_(std::move(transport)),
          credentials_(std::move(environment), std::move(profile), *transport_) {}

    std::unique_ptr<http::HttpTransport> transport_;
    CredentialChain credentials_;  // uses the transport
    std::string service_;
    std::string region_;
    Endpoint endpoint_;
    bool is_amazon_ = true;
};

namespace internal {
// What an answer that is no success says, as XML or JSON. Empty where it is neither.
struct ServiceError {
    std::string code;  // "ThrottlingException"
    std::string message;
};
[[nodiscard]] ServiceError parse_service_error(std::string_view document);
}  // namespace internal

}  // namespace traindbg::aws

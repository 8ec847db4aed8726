#include "traindbg/aws/client.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string_view>

#include "traindbg/aws/sign.h"
#include "traindbg/aws/xml.h"
#include "traindbg/base/clock.h"
#include "traindbg/base/format.h"
#include "traindbg/base/text.h"

namespace traindbg::aws {

using base::Code;
using base::Result;
using base::Status;

namespace {

bool is_passing(int status, std::string_view code) {
    if (status == 408 || status == 429 || status >= 500) return true;
    constexpr std::array<std::string_view, 6> kCodes = {
        "Throttl",         "TooManyRequests", "RequestLimitExceeded", "ServiceUnavailable",
        "InternalFailure", "RequestTimeout"};
    return std::any_of(kCodes.begin(), kCodes.end(),
                       [&](std::string_view part) { return code.find(part) != std::string_view::npos; });
}

bool has_expired(std::string_view code) {
    return code.starts_with("ExpiredToken") || code == "RequestExpired";
}

}  // namespace

Call query_call(std::string_view action, std::string_view version, const Form& form) {
    Call call;
    call.headers = {{"content-type", "application/x-www-form-urlencoded; charset=utf-8"}};
    call.body = base::format("Action={}&Version={}", action, version);
    for (const auto& [name, value] : form)
        call.body += "&" + percent_encode(name, false) + "=" + percent_encode(value, false);
    return call;
}

Result<std::unique_ptr<Client>> Client::open(const ClientOptions& options,
                                             std::unique_ptr<http::HttpTransport> transport,
                                             const Environment& environment, storage::FileSystem& files) {
    TRAINDBG_ASSIGN_OR_RETURN(Profile profile, load_profile(environment, files));
    TRAINDBG_ASSIGN_OR_RETURN(Settings settings, load_settings(environment, profile, options.variable));
    if (!options.region.empty()) settings.region = options.region;
    if (!is_region_name(settings.region))
        return Status(Code::kInvalidArgument,
                      base::format("'{}' cannot be a region's name", base::printable(settings.region)));
    if (!options.endpoint_url.empty()) settings.endpoint_url = options.endpoint_url;
    std::unique_ptr<Client> client(new Client(std::move(transport), environment, std::move(profile)));
    client->service_ = options.service;
    client->region_ = settings.region;
    client->is_amazon_ = settings.endpoint_url.empty();
    if (client->is_amazon_) {
        client->endpoint_.host = amazon_host(options.service, settings.region);
    } else {
        TRAINDBG_ASSIGN_OR_RETURN(client->endpoint_, parse_endpoint(settings.endpoint_url));
    }
    return client;
}

std::string Client::where() const {
    return is_amazon_ ? "AWS " + region_ : endpoint_.scheme + "://" + base::printable(endpoint_.host);
}

Result<http::HttpResponse> Client::post(const Call& call, const storage::Patience& patience) {
    for (bool has_renewed = false;; has_renewed = true) {
        TRAINDBG_ASSIGN_OR_RETURN(const Credentials credentials, credentials_.get(patience));
        RequestTarget target;
        target.scheme = endpoint_.scheme;
        target.host = endpoint_.host;
        target.path = endpoint_.path + call.path;
        http::HttpRequest request;
        request.method = "POST";
        request.url = url_of(target);
        request.headers = call.headers;
        request.body = base::as_bytes(call.body);
        sign_request(request.method, target, request.headers, request.body, credentials, region_, service_,
                     base::wall_nanos());
        TRAINDBG_ASSIGN_OR_RETURN(http::HttpResponse answer, transport_->perform(request, patience));
        if (answer.status >= 200 && answer.status < 300) return answer;
        const internal::ServiceError error = internal::parse_service_error(answer.text());
        if (!has_renewed && has_expired(error.code)) {
            credentials_.forget();
            continue;
        }
        const std::string said = base::format(
            "{} answered {} {}{}", where(), answer.status, base::printable(error.code.substr(0, 80)),
            error.message.empty() ? "" : " (" + base::printable(error.message.substr(0, 200)) + ")");
        if (is_passing(answer.status, error.code)) return Status(Code::kUnavailable, said);
        if (answer.status == 401 || answer.status == 403 || has_expired(error.code))
            return Status(Code::kPermissionDenied,
                          base::format("{}; credentials of {}", said, credentials.source));
        return Status(Code::kInvalidArgument, said);
    }
}

namespace internal {

ServiceError parse_service_error(std::string_view document) {
    ServiceError error;
    const auto json = nlohmann::json::parse(document, nullptr, /*allow_exceptions=*/false);
    if (json.is_object()) {
        const auto text_at = [&json](const char* key) {
            const auto it = json.find(key);
            return it != json.end() && it->is_string() ? it->get<std::string>() : std::string();
        };
        error.code = text_at("__type");
        if (error.code.empty()) error.code = text_at("code");
        error.code.erase(0, error.code.find('#') + 1);
        error.message = text_at("message");
        if (error.message.empty()) error.message = text_at("Message");
        return error;
    }
    // What was understood before the document turned out to be none is as good as the rest.
    scan_xml(document, [&](const XmlEvent& event) {
        if (event.is_begin) return;
        if (event.path.ends_with("Error/Code")) error.code = event.text;
        if (event.path.ends_with("Error/Message")) error.message = event.text;
    }).ignore();
    return error;
}

}  // namespace internal

}  // namespace traindbg::aws

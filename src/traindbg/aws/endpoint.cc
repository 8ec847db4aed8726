#include "traindbg/aws/endpoint.h"

#include <algorithm>
#include <initializer_list>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"

namespace traindbg::aws {

using base::Code;
using base::Result;
using base::Status;

// It becomes part of a host's name.
bool is_region_name(std::string_view text) noexcept {
    return !text.empty() && std::all_of(text.begin(), text.end(), [](char letter) {
        return (letter >= 'a' && letter <= 'z') || (letter >= '0' && letter <= '9') || letter == '-';
    });
}

Result<Settings> load_settings(const Environment& environment, const Profile& profile,
                               const std::string& service) {
    Settings settings;
    const auto first_of = [](std::initializer_list<std::string> values) {
        for (const std::string& value : values)
            if (!value.empty()) return value;
        return std::string();
    };
    const std::string region =
        first_of({environment("AWS_REGION"), environment("AWS_DEFAULT_REGION"),
                  value_of(profile.config, "region"), value_of(profile.credentials, "region")});
    if (!region.empty()) settings.region = region;
    if (!is_region_name(settings.region))
        return Status(Code::kInvalidArgument,
                      base::format("'{}' cannot be a region's name", base::printable(settings.region)));
    if (environment("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS") != "true")
        settings.endpoint_url = first_of(
            {environment(("AWS_ENDPOINT_URL_" + service).c_str()), environment("AWS_ENDPOINT_URL"),
             value_of(profile.config, "endpoint_url"), value_of(profile.credentials, "endpoint_url")});
    return settings;
}

Result<Endpoint> parse_endpoint(std::string_view url) {
    const auto wrong = [](std::string_view why) {
        return Status(Code::kInvalidArgument,
                      base::format("the endpoint URL {}; write http://host:port or https://host", why));
    };
    Endpoint endpoint;
    if (url.starts_with("https://")) {
        url.remove_prefix(8);
    } else if (url.starts_with("http://")) {
        url.remove_prefix(7);
        endpoint.scheme = "http";
    } else {
        return wrong("begins with neither http:// nor https://");
    }
    if (url.find_first_of("?#\\") != std::string_view::npos) return wrong("holds a query");
    std::string& host = endpoint.host;
    host = url.substr(0, url.find('/'));
    endpoint.path = url.substr(host.size());
    while (endpoint.path.ends_with('/')) endpoint.path.pop_back();
    if (host.find('@') != std::string::npos) return wrong("holds a user name or password");
    if (host.empty() || host.find_first_of(" \t\r\n") != std::string::npos) return wrong("names no host");
    if (endpoint.scheme == "http" && host.ends_with(":80")) host.resize(host.size() - 3);
    if (endpoint.scheme == "https" && host.ends_with(":443")) host.resize(host.size() - 4);
    return endpoint;
}

std::string amazon_host(std::string_view service, std::string_view region) {
    return base::format("{}.{}.amazonaws.com{}", service, region, region.starts_with("cn-") ? ".cn" : "");
}

}  // namespace traindbg::aws

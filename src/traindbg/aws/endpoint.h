// Where a service is: its region and its server, which need not be Amazon's.
//
// Thread-safety: plain values and free functions. Errors: kInvalidArgument, in words that do not quote an
// endpoint's URL, which may hold a secret.
#pragma once

#include <string>
#include <string_view>

#include "traindbg/aws/credentials.h"
#include "traindbg/base/status.h"

namespace traindbg::aws {

// What is not secret: from the environment, then the profile.
struct Settings {
    std::string region = "us-east-1";
    std::string endpoint_url;  // empty: Amazon's own
};
// `service`: as in AWS_ENDPOINT_URL_<service>, which counts before AWS_ENDPOINT_URL: "S3", "SNS".
[[nodiscard]] base::Result<Settings> load_settings(const Environment& environment, const Profile& profile,
                                                   const std::string& service);

[[nodiscard]] bool is_region_name(std::string_view text) noexcept;

struct Endpoint {
    std::string scheme = "https";
    std::string host;  // with ":port" where it is not the usual one
    std::string path;  // without a "/" at the end
};
[[nodiscard]] base::Result<Endpoint> parse_endpoint(std::string_view url);
// Amazon's: "sns", "eu-west-1" -> https://sns.eu-west-1.amazonaws.com
[[nodiscard]] std::string amazon_host(std::string_view service, std::string_view region);

}  // namespace traindbg::aws

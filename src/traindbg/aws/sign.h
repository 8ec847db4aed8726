// Signatures of requests, AWS version 4 (docs.aws.amazon.com, "Authenticating Requests: Using the
// Authorization Header (AWS Signature Version 4)").
//
// Done here and not by libcurl's CURLOPT_AWS_SIGV4, because libcurl is the machine's own and its
// versions differ in what they sign: 7.75 to 7.86 know no x-amz-content-sha256, 7.88 takes the query as
// it is written, 8 sorts and encodes it anew. A request that is signed here is right with all of them.
//
// Thread-safety: plain values and free functions. Cost: one SHA-256 of the body.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "traindbg/base/bytes.h"
#include "traindbg/http/http.h"

namespace traindbg::aws {

// Never formatted into a message, never written anywhere.
struct Credentials {
    std::string access_key;
    std::string secret_key;
    std::string session_token;       // empty: there is none
    std::int64_t expires_nanos = 0;  // wall clock; 0: never
    std::string source;              // where they came from, for people
};

// What is signed, in parts, because both the URL and the signature are made of them.
struct RequestTarget {
    std::string scheme = "https";
    std::string host;                                          // with ":port" where it is not the usual one
    std::string path = "/";                                    // not encoded
    std::vector<std::pair<std::string, std::string>> query{};  // not encoded, in any order
};

// Everything but letters, digits and "-._~" as %XX; "/" stays where `keeps_slash`.
[[nodiscard]] std::string percent_encode(std::string_view text, bool keeps_slash);
// Nothing when it is not well-formed.
[[nodiscard]] bool percent_decode(std::string_view text, std::string& out);
[[nodiscard]] std::string url_of(const RequestTarget& target);

// Adds x-amz-date, x-amz-content-sha256, x-amz-security-token and authorization to `headers`. All of
// `headers`, with the host, are signed. Of other services than S3 the path is signed as encoded a second
// time, as they want it.
void sign_request(const std::string& method, const RequestTarget& target, http::HeaderList& headers,
                  base::ByteSpan body, const Credentials& credentials, const std::string& region,
                  const std::string& service, std::int64_t wall_nanos);

}  // namespace traindbg::aws

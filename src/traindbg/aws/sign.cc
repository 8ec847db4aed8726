#include "traindbg/aws/sign.h"

#include <algorithm>
#include <ctime>

#include "traindbg/base/format.h"
#include "traindbg/base/sha256.h"

namespace traindbg::aws {
namespace {

bool is_unreserved(char letter) noexcept {
    return (letter >= 'A' && letter <= 'Z') || (letter >= 'a' && letter <= 'z') ||
           (letter >= '0' && letter <= '9') || letter == '-' || letter == '.' || letter == '_' ||
           letter == '~';
}

int hex_digit(char letter) noexcept {
    if (letter >= '0' && letter <= '9') return letter - '0';
    if (letter >= 'a' && letter <= 'f') return letter - 'a' + 10;
    if (letter >= 'A' && letter <= 'F') return letter - 'A' + 10;
    return -1;
}

std::string query_of(const RequestTarget& target) {
    std::vector<std::pair<std::string, std::string>> encoded;
    encoded.reserve(target.query.size());
    for (const auto& [name, value] : target.query)
        encoded.emplace_back(percent_encode(name, false), percent_encode(value, false));
    std::sort(encoded.begin(), encoded.end());
    std::string query;
    for (const auto& [name, value] : encoded) {
        if (!query.empty()) query += '&';
        query += name;
        query += '=';
        query += value;
    }
    return query;
}

// One blank for many, none at the ends.
std::string with_single_blanks(std::string_view value) {
    std::string text;
    for (const char letter : value) {
        if (letter == ' ' && (text.empty() || text.back() == ' ')) continue;
        text += letter;
    }
    while (!text.empty() && text.back() == ' ') text.pop_back();
    return text;
}

}  // namespace

std::string percent_encode(std::string_view text, bool keeps_slash) {
    constexpr std::string_view kDigits = "0123456789ABCDEF";
    std::string encoded;
    encoded.reserve(text.size());
    for (const char letter : text) {
        if (is_unreserved(letter) || (keeps_slash && letter == '/')) {
            encoded += letter;
        } else {
            const auto byte = static_cast<unsigned char>(letter);
            encoded += '%';
            encoded += kDigits[byte >> 4];
            encoded += kDigits[byte & 15U];
        }
    }
    return encoded;
}

bool percent_decode(std::string_view text, std::string& out) {
    out.clear();
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '+') {  // what servers write for a blank; a plus comes as %2B
            out += ' ';
        } else if (text[i] != '%') {
            out += text[i];
        } else {
            if (text.size() - i < 3) return false;
            const int high = hex_digit(text[i + 1]);
            const int low = hex_digit(text[i + 2]);
            if (high < 0 || low < 0) return false;
            out += static_cast<char>(high * 16 + low);
            i += 2;
        }
    }
    return true;
}

std::string url_of(const RequestTarget& target) {
    std::string url = target.scheme + "://" + target.host + percent_encode(target.path, true);
    if (const std::string query = query_of(target); !query.empty()) url += "?" + query;
    return url;
}

void sign_request(const std::string& method, const RequestTarget& target, http::HeaderList& headers,
                  base::ByteSpan body, const Credentials& credentials, const std::string& region,
                  const std::string& service, std::int64_t wall_nanos) {
    const auto seconds = static_cast<std::time_t>(wall_nanos / 1'000'000'000);
    std::tm parts{};
    gmtime_r(&seconds, &parts);
    const std::string day =
        base::format("{:04}{:02}{:02}", parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday);
    const std::string moment =
        base::format("{}T{:02}{:02}{:02}Z", day, parts.tm_hour, parts.tm_min, parts.tm_sec);
    const std::string body_hash = base::hex(base::sha256(body));

    headers.emplace_back("x-amz-date", moment);
    headers.emplace_back("x-amz-content-sha256", body_hash);
    if (!credentials.session_token.empty())
        headers.emplace_back("x-amz-security-token", credentials.session_token);

    http::HeaderList sorted = headers;
    sorted.emplace_back("host", target.host);
    std::sort(sorted.begin(), sorted.end());
    std::string path = percent_encode(target.path, true);
    if (service != "s3") path = percent_encode(path, true);
    std::string canonical = method + "\n" + path + "\n" + query_of(target) + "\n";
    std::string names;
    for (const auto& [name, value] : sorted) {
        canonical += name + ":" + with_single_blanks(value) + "\n";
        names += (names.empty() ? "" : ";") + name;
    }
    canonical += "\n" + names + "\n" + body_hash;

    const std::string scope = day + "/" + region + "/" + service + "/aws4_request";
    const std::string to_sign = "AWS4-HMAC-SHA256\n" + moment + "\n" + scope + "\n" +
                                base::hex(base::sha256(base::as_bytes(canonical)));
    base::Sha256Digest key =
        base::hmac_sha256(base::as_bytes("AWS4" + credentials.secret_key), base::as_bytes(day));
    for (const std::string_view part : {std::string_view(region), std::string_view(service),
                                        std::string_view("aws4_request"), std::string_view(to_sign)})
        key = base::hmac_sha256(key, base::as_bytes(part));
    headers.emplace_back("authorization",
                         base::format("AWS4-HMAC-SHA256 Credential={}/{}, SignedHeaders={}, Signature={}",
                                      credentials.access_key, scope, names, base::hex(key)));
}

}  // namespace traindbg::aws

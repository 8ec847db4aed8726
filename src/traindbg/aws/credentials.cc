#include "traindbg/aws/credentials.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <ctime>
#include <nlohmann/json.hpp>

#include "traindbg/base/clock.h"
#include "traindbg/base/format.h"
#include "traindbg/base/text.h"

namespace traindbg::aws {
namespace {

using base::Code;
using base::Result;
using base::Status;
using storage::Patience;

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::int64_t kRefreshBefore = 300 * kSecond;

// A word that goes into a header: whatever else it holds would make another header of it.
bool is_header_safe(const std::string& text) {
    return std::all_of(text.begin(), text.end(), [](char letter) {
        return static_cast<unsigned char>(letter) > ' ' && letter != 0x7F;
    });
}

Result<IniFile> load_file(const std::string& path, bool must_exist, storage::FileSystem& files) {
    if (path.empty()) return IniFile();
    const auto bytes = storage::read_whole(files, path, std::uint64_t{1} << 20);
    if (!bytes.is_ok()) {
        if (bytes.status().code() == Code::kNotFound && !must_exist) return IniFile();
        return bytes.status();
    }
    return parse_ini({reinterpret_cast<const char*>(bytes->data()), bytes->size()}, path);
}

std::string home_file(const Environment& environment, const char* setting, const char* name) {
    if (std::string path = environment(setting); !path.empty()) return path;
    const std::string home = environment("HOME");
    return home.empty() ? std::string() : home + "/.aws/" + name;
}

Result<Credentials> checked(Credentials credentials) {
    if (is_header_safe(credentials.access_key) && is_header_safe(credentials.secret_key) &&
        is_header_safe(credentials.session_token) && !credentials.access_key.empty() &&
        !credentials.secret_key.empty())
        return credentials;
    return Status(Code::kPermissionDenied,
                  credentials.source + ": a key is empty or holds blanks or control characters");
}

// What a profile may ask for and we do not do; empty: nothing.
std::string unsupported_way(const Profile& profile) {
    constexpr std::array<std::string_view, 6> kWays = {"role_arn",           "sso_session",
                                                       "sso_start_url",      "sso_account_id",
                                                       "credential_process", "web_identity_token_file"};
    for (const IniSection* section : {&profile.credentials, &profile.config})
        for (const std::string_view way : kWays)
            if (section->contains(std::string(way))) return std::string(way);
    return {};
}

Result<Credentials> ask(http::HttpTransport& transport, const http::HttpRequest& request,
                        const std::string& source, const Patience& patience) {
    const auto answer = transport.perform(request, patience);
    if (!answer.is_ok()) return Status(answer.status().code(), source + ": " + answer.status().message());
    if (answer->status != 200)
        return Status(Code::kPermissionDenied, base::format("{}: answered {}", source, answer->status));
    return internal::credentials_from_json(answer->text(), source);
}

Result<Credentials> container_credentials(const Environment& environment, http::HttpTransport& transport,
                                          const Patience& patience) {
    const std::string relative = environment("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
    const std::string full = environment("AWS_CONTAINER_CREDENTIALS_FULL_URI");
    http::HttpRequest request;
    request.connect_timeout = std::chrono::milliseconds(2000);
    request.stall_timeout = std::chrono::milliseconds(5000);
    request.uses_proxy = false;
    if (!relative.empty()) {
        if (relative.front() != '/' || !is_header_safe(relative))
            return Status(Code::kInvalidArgument,
                          "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI: must be a path that begins with '/'");
        request.url = "http://169.254.170.2" + relative;
    } else {
        if (!internal::is_trusted_container_url(full))
            return Status(Code::kPermissionDenied,
                          "AWS_CONTAINER_CREDENTIALS_FULL_URI: must be https, or loopback, 169.254.170.2 or "
                          "169.254.170.23");
        request.url = full;
    }
    std::string token = environment("AWS_CONTAINER_AUTHORIZATION_TOKEN");
    if (const std::string path = environment("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"); !path.empty()) {
        const auto bytes = storage::read_whole(storage::posix_file_system(), path, 64 << 10);
        if (!bytes.is_ok()) return bytes.status();
        token.assign(reinterpret_cast<const char*>(bytes->data()), bytes->size());
        while (!token.empty() && static_cast<unsigned char>(token.back()) <= ' ') token.pop_back();
    }
    for (const char letter : token)
        if (letter == '\r' || letter == '\n')
            return Status(Code::kInvalidArgument, "AWS_CONTAINER_AUTHORIZATION_TOKEN: holds a line end");
    if (!token.empty()) request.headers.emplace_back("authorization", token);
    return ask(transport, request, "the container's credentials", patience);
}

// Nothing: this is no EC2 machine, or it has no role.
Result<std::optional<Credentials>> machine_credentials(const Environment& environment,
                                                       http::HttpTransport& transport,
                                                       const Patience& patience) {
    std::string endpoint = environment("AWS_EC2_METADATA_SERVICE_ENDPOINT");
    if (endpoint.empty()) endpoint = "http://169.254.169.254";
    while (endpoint.ends_with('/')) endpoint.pop_back();
    const auto request_for = [&](const char* method, const std::string& path) {
        http::HttpRequest request;
        request.method = method;
        request.url = endpoint + path;
        request.connect_timeout = std::chrono::milliseconds(1000);
        request.stall_timeout = std::chrono::milliseconds(1000);
        request.uses_proxy = false;
        request.most_bytes = 64 << 10;
        return request;
    };
    http::HttpRequest token_request = request_for("PUT", "/latest/api/token");
    token_request.headers.emplace_back("x-aws-ec2-metadata-token-ttl-seconds", "21600");
    const auto token = transport.perform(token_request, patience);
    if (!token.is_ok() && token.status().code() == Code::kUnsupported) return token.status();
    if (!token.is_ok() || token->status != 200) return std::optional<Credentials>();
    const std::string token_text(token->text());
    if (!is_header_safe(token_text) || token_text.empty()) return std::optional<Credentials>();
    const std::string path = "/latest/meta-data/iam/security-credentials/";
    http::HttpRequest role_request = request_for("GET", path);
    role_request.headers.emplace_back("x-aws-ec2-metadata-token", token_text);
    const auto role = transport.perform(role_request, patience);
    if (!role.is_ok() || role->status != 200) return std::optional<Credentials>();
    const std::string_view first_line = role->text().substr(0, role->text().find('\n'));
    http::HttpRequest request = request_for("GET", path + percent_encode(first_line, false));
    request.headers.emplace_back("x-aws-ec2-metadata-token", token_text);
    TRAINDBG_ASSIGN_OR_RETURN(Credentials credentials,
                              ask(transport, request, "the machine's role", patience));
    return std::optional(std::move(credentials));
}

}  // namespace

std::string process_environment(const char* name) {
    const char* value = std::getenv(name);
    return value == nullptr ? std::string() : value;
}

Result<Profile> load_profile(const Environment& environment, storage::FileSystem& files) {
    Profile profile;
    const std::string chosen = environment("AWS_PROFILE");
    profile.name = chosen.empty() ? "default" : chosen;
    TRAINDBG_ASSIGN_OR_RETURN(
        const IniFile credentials,
        load_file(home_file(environment, "AWS_SHARED_CREDENTIALS_FILE", "credentials"), false, files));
    TRAINDBG_ASSIGN_OR_RETURN(const IniFile config,
                              load_file(home_file(environment, "AWS_CONFIG_FILE", "config"), false, files));
    if (const auto it = credentials.find(profile.name); it != credentials.end()) {
        profile.credentials = it->second;
        profile.exists = true;
    }
    auto it = config.find("profile " + profile.name);
    if (it == config.end() && profile.name == "default") it = config.find("default");
    if (it != config.end()) {
        profile.config = it->second;
        profile.exists = true;
    }
    if (!profile.exists && !chosen.empty())
        return Status(
            Code::kInvalidArgument,
            base::format("AWS_PROFILE: there is no profile '{}' in the shared config and credentials "
                         "files",
                         base::printable(chosen)));
    return profile;
}

Result<Credentials> find_credentials(const Environment& environment, const Profile& profile,
                                     http::HttpTransport& transport, const Patience& patience) {
    Credentials credentials;
    credentials.access_key = environment("AWS_ACCESS_KEY_ID");
    credentials.secret_key = environment("AWS_SECRET_ACCESS_KEY");
    if (!credentials.access_key.empty() || !credentials.secret_key.empty()) {
        if (credentials.access_key.empty() || credentials.secret_key.empty())
            return Status(
                Code::kPermissionDenied,
                base::format("{}: is not set, and the other half of the key is",
                             credentials.access_key.empty() ? "AWS_ACCESS_KEY_ID" : "AWS_SECRET_ACCESS_KEY"));
        credentials.session_token = environment("AWS_SESSION_TOKEN");
        credentials.source = "AWS_ACCESS_KEY_ID";
        return checked(std::move(credentials));
    }
    if (!environment("AWS_WEB_IDENTITY_TOKEN_FILE").empty())
        return Status(
            Code::kUnsupported,
            "AWS_WEB_IDENTITY_TOKEN_FILE: web identities are not supported; export credentials with "
            "'aws configure export-credentials --format env'");
    for (const IniSection* section : {&profile.credentials, &profile.config}) {
        credentials.access_key = value_of(*section, "aws_access_key_id");
        if (credentials.access_key.empty()) continue;
        credentials.secret_key = value_of(*section, "aws_secret_access_key");
        credentials.session_token = value_of(*section, "aws_session_token");
        credentials.source = "profile " + base::printable(profile.name);
        return checked(std::move(credentials));
    }
    if (const std::string way = unsupported_way(profile); !way.empty())
        return Status(Code::kUnsupported,
                      base::format("profile {}: {} is not supported; export credentials with 'aws configure "
                                   "export-credentials --profile {} --format env'",
                                   base::printable(profile.name), way, base::printable(profile.name)));
    if (!environment("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI").empty() ||
        !environment("AWS_CONTAINER_CREDENTIALS_FULL_URI").empty())
        return container_credentials(environment, transport, patience);
    const std::string disabled = environment("AWS_EC2_METADATA_DISABLED");
    const bool asks_machine = disabled != "true" && disabled != "TRUE" && disabled != "True";
    if (asks_machine) {
        TRAINDBG_ASSIGN_OR_RETURN(auto found, machine_credentials(environment, transport, patience));
        if (found) return checked(std::move(*found));
    }
    return Status(
        Code::kPermissionDenied,
        base::format(
            "there are no AWS credentials: AWS_ACCESS_KEY_ID is not set, profile {} has "
            "none in ~/.aws, no container and {} hands them out; set AWS_ACCESS_KEY_ID and "
            "AWS_SECRET_ACCESS_KEY, or AWS_PROFILE",
            base::printable(profile.name),
            asks_machine ? "no EC2 metadata service" : "(AWS_EC2_METADATA_DISABLED) no EC2 machine"));
}

Result<Credentials> CredentialChain::get(const Patience& patience) {
    {
        const std::lock_guard lock(mutex_);
        if (kept_ &&
            (kept_->expires_nanos == 0 || base::wall_nanos() < kept_->expires_nanos - kRefreshBefore))
            return *kept_;
    }
    Result<Credentials> found = find_credentials(environment_, profile_, transport_, patience);
    const std::lock_guard lock(mutex_);
    if (found.is_ok()) {
        kept_ = *found;
    } else if (kept_ && base::wall_nanos() < kept_->expires_nanos) {
        return *kept_;  // their source does not answer; they still hold for some minutes
    }
    return found;
}

void CredentialChain::forget() {
    const std::lock_guard lock(mutex_);
    kept_.reset();
}

namespace internal {

bool is_trusted_container_url(const std::string& url) {
    // Programs do not agree on what a backslash in a URL means.
    if (!is_header_safe(url) || url.find('\\') != std::string::npos) return false;
    if (url.starts_with("https://")) return true;
    if (!url.starts_with("http://")) return false;
    std::string_view rest = std::string_view(url).substr(7);
    rest = rest.substr(0, rest.find_first_of("/?#"));
    if (rest.find('@') != std::string_view::npos) return false;
    std::string_view host = rest;
    if (rest.starts_with('[')) host = rest.substr(0, rest.find(']') + 1);
    else host = rest.substr(0, rest.find(':'));
    constexpr std::array<std::string_view, 6> kHosts = {"localhost",     "127.0.0.1",      "[::1]",
                                                        "169.254.170.2", "169.254.170.23", "[fd00:ec2::23]"};
    return std::find(kHosts.begin(), kHosts.end(), host) != kHosts.end();
}

Result<Credentials> credentials_from_json(std::string_view text, const std::string& source) {
    const auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
    const auto text_at = [&json](const char* key) {
        if (!json.is_object()) return std::string();
        const auto it = json.find(key);
        return it != json.end() && it->is_string() ? it->get<std::string>() : std::string();
    };
    Credentials credentials;
    credentials.source = source;
    credentials.access_key = text_at("AccessKeyId");
    credentials.secret_key = text_at("SecretAccessKey");
    credentials.session_token = text_at("Token");
    if (credentials.access_key.empty() || credentials.secret_key.empty())
        return Status(Code::kPermissionDenied, source + ": the answer holds no credentials");
    if (const std::string expiration = text_at("Expiration"); !expiration.empty()) {
        std::tm parts{};
        if (::strptime(expiration.c_str(), "%Y-%m-%dT%H:%M:%S", &parts) == nullptr)
            return Status(Code::kPermissionDenied, source + ": the answer's Expiration is no time");
        // From 1970, where 0 would mean never, to 2199: what lies outside does not fit into nanoseconds.
        constexpr std::int64_t kLatestSecond = 7'258'118'400;
        credentials.expires_nanos = std::clamp<std::int64_t>(::timegm(&parts), 1, kLatestSecond) * kSecond;
    }
    return checked(std::move(credentials));
}

}  // namespace internal

}  // namespace traindbg::aws

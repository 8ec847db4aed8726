// Where the credentials for AWS come from, in the usual order:
//
//   1. AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN
//   2. the profile (AWS_PROFILE, or "default") of ~/.aws/credentials, then of ~/.aws/config
//      (AWS_SHARED_CREDENTIALS_FILE and AWS_CONFIG_FILE name other files)
//   3. the container's: AWS_CONTAINER_CREDENTIALS_RELATIVE_URI or ..._FULL_URI. The latter only by https,
//      or at loopback and the link-local addresses of ECS and EKS.
//   4. the machine's, on EC2 (IMDSv2), unless AWS_EC2_METADATA_DISABLED is "true"
//
// A source that is set and broken ends the search: nothing is signed with other credentials than those
// that were meant. Roles to assume, SSO, web identities and credential_process are named as what they
// are: not supported, with what to do instead.
//
// Secrets are in `Credentials` only; no message holds one. Thread-safety: `CredentialChain` from any
// thread. Errors: kPermissionDenied with what was tried; kUnavailable when a source did not answer.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "traindbg/aws/ini_file.h"
#include "traindbg/aws/sign.h"
#include "traindbg/base/status.h"
#include "traindbg/http/http.h"
#include "traindbg/storage/file_system.h"

namespace traindbg::aws {

// The environment as a function, so that tests need not change their own. Empty: not set.
using Environment = std::function<std::string(const char* name)>;
[[nodiscard]] std::string process_environment(const char* name);

// The profile's settings of both shared files.
struct Profile {
    std::string name;
    bool exists = false;
    IniSection config;       // [profile name] of the config file
    IniSection credentials;  // [name] of the credentials file
};
// kInvalidArgument when a file is there and cannot be understood, or when AWS_PROFILE names a profile
// that is in neither.
[[nodiscard]] base::Result<Profile> load_profile(const Environment& environment, storage::FileSystem& files);

// One look through the chain.
[[nodiscard]] base::Result<Credentials> find_credentials(const Environment& environment,
                                                         const Profile& profile,
                                                         http::HttpTransport& transport,
                                                         const storage::Patience& patience);

// The chain's answer, kept until it is about to expire.
class CredentialChain {
  public:
    CredentialChain(Environment environment, Profile profile, http::HttpTransport& transport)
        : environment_(std::move(environment)), profile_(std::move(profile)), transport_(transport) {}

    [[nodiscard]] base::Result<Credentials> get(const storage::Patience& patience);
    // The server refused them as expired: the next `get` looks anew. Files are read again by whoever
    // made the profile; this is for the sources that hand out new ones.
    void forget();

  private:
    Environment environment_;
    Profile profile_;
    http::HttpTransport& transport_;
    std::mutex mutex_;
    std::optional<Credentials> kept_;
};

namespace internal {
// Whether credentials may be asked for at this URL.
[[nodiscard]] bool is_trusted_container_url(const std::string& url);
// Of {"AccessKeyId": ..., "SecretAccessKey": ..., "Token": ..., "Expiration": ...}.
[[nodiscard]] base::Result<Credentials> credentials_from_json(std::string_view text,
                                                              const std::string& source);
}  // namespace internal

}  // namespace traindbg::aws

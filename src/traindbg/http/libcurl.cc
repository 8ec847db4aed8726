#include "traindbg/http/libcurl.h"

#include <dlfcn.h>

#include <array>

namespace traindbg::http::internal {
namespace {

using base::Code;
using base::Result;
using base::Status;

template <typename Function>
bool find(void* library, const char* name, Function*& function) {
    function = reinterpret_cast<Function*>(::dlsym(library, name));
    return function != nullptr;
}

Result<Curl> load() {
    // The one with OpenSSL, then the one that Debian builds with GnuTLS.
    constexpr std::array kNames = {"libcurl.so.4", "libcurl-gnutls.so.4"};
    void* library = nullptr;
    for (const char* name : kNames) {
        library = ::dlopen(name, RTLD_NOW | RTLD_LOCAL);
        if (library != nullptr) break;
    }
    if (library == nullptr)
        return Status(Code::kUnsupported,
                      "libcurl.so.4: not found; talking to a server needs it: install libcurl4 (Debian, "
                      "Ubuntu) or libcurl "
                      "(Fedora, Alpine)");
    Curl curl;
    const bool whole = find(library, "curl_global_init", curl.global_init) &&
                       find(library, "curl_easy_init", curl.easy_init) &&
                       find(library, "curl_easy_cleanup", curl.easy_cleanup) &&
                       find(library, "curl_easy_reset", curl.easy_reset) &&
                       find(library, "curl_easy_setopt", curl.easy_setopt) &&
                       find(library, "curl_easy_perform", curl.easy_perform) &&
                       find(library, "curl_easy_getinfo", curl.easy_getinfo) &&
                       find(library, "curl_easy_strerror", curl.easy_strerror) &&
                       find(library, "curl_slist_append", curl.slist_append) &&
                       find(library, "curl_slist_free_all", curl.slist_free_all);
    if (!whole) return Status(Code::kUnsupported, "libcurl.so.4: is not libcurl");
    if (curl.global_init(kCurlGlobalDefault) != kCurlOk)
        return Status(Code::kUnsupported, "libcurl.so.4: could not be initialised");
    return curl;
}

}  // namespace

Result<const Curl*> load_curl() {
    static const Result<Curl> curl = load();
    if (!curl.is_ok()) return curl.status();
    return &curl.value();
}

}  // namespace traindbg::http::internal

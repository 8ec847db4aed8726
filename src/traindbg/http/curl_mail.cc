#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/http/curl_call.h"
#include "traindbg/http/libcurl.h"
#include "traindbg/http/mail.h"

namespace traindbg::http {
namespace {

using base::Code;
using base::Status;
using internal::Curl;
using internal::CurlHandle;

// Called from C: nothing may be thrown through it.
std::size_t give_text(char* data, std::size_t size, std::size_t count, void* context) noexcept {
    auto& rest = *static_cast<std::string_view*>(context);
    const std::size_t bytes = std::min(size * count, rest.size());
    std::memcpy(data, rest.data(), bytes);
    rest.remove_prefix(bytes);
    return bytes;
}

// What the server says to a log-in or a greeting is of no use here, and nobody's standard output.
// NOLINTNEXTLINE(readability-non-const-parameter): libcurl calls a function of this type
std::size_t drop(char* /*data*/, std::size_t size, std::size_t count, void* /*context*/) noexcept {
    return size * count;
}

Status explain(const Curl& curl, int code, const char* why, long answered, const Mail& mail) {
    const std::string text = base::printable(*why != '\0' ? why : curl.easy_strerror(code));
    switch (code) {
        case internal::kCurlUnsupportedProtocol:
            return {Code::kUnsupported, "this machine's libcurl has no SMTP: " + text};
        case internal::kCurlUrlMalformat: return {Code::kInvalidArgument, text};
        case internal::kCurlUseSslFailed:
            return {Code::kPermissionDenied, "the server offers no TLS (STARTTLS); nothing was sent"};
        case internal::kCurlPeerFailedVerification:
        case internal::kCurlSslCaCertBadFile:
            return {Code::kPermissionDenied,
                    base::format("{}; the server's certificate is not trusted: ca=FILE names {} authorities",
                                 text, mail.authorities.empty() ? "other" : "its")};
        case internal::kCurlLoginDenied:
            // 4xx is not the password's fault.
            if (answered >= 400 && answered < 500) break;
            return {Code::kPermissionDenied, "the server refuses the user or the password"};
        default: break;
    }
    const Code of_answer = answered >= 500 && answered < 600 ? Code::kPermissionDenied : Code::kUnavailable;
    return {of_answer, answered >= 400 ? base::format("the server answered {}: {}", answered, text) : text};
}

}  // namespace

Status send_mail(const Mail& mail, const storage::Patience& patience) {
    if (patience.is_over()) return {Code::kUnavailable, "there was no time left"};
    TRAINDBG_ASSIGN_OR_RETURN(const Curl* loaded, internal::load_curl());
    const Curl& curl = *loaded;
    const internal::NoBrokenPipe quiet;
    CurlHandle* handle = curl.easy_init();
    if (handle == nullptr) return {Code::kResourceExhausted, "libcurl: no memory for a mail"};
    internal::CurlList* recipients = nullptr;
    bool has_all = true;
    for (const std::string& recipient : mail.recipients) {
        internal::CurlList* longer = curl.slist_append(recipients, ("<" + recipient + ">").c_str());
        if (longer != nullptr) recipients = longer;
        has_all = has_all && longer != nullptr;
    }
    const std::string sender = "<" + mail.sender + ">";
    std::array<char, internal::kCurlErrorBytes> why{};
    std::string_view rest = mail.text;
    internal::CurlDeadline deadline{patience};
    const auto set = [&](internal::CurlOption option, auto value) {
        static_cast<void>(curl.easy_setopt(handle, option, value));
    };
    set(internal::kCurlUrl, mail.url.c_str());
    set(internal::kCurlProtocols, internal::kCurlProtoSmtpAndSmtps);
    set(internal::kCurlErrorBuffer, why.data());
    internal::keep_deadline(curl, handle, deadline, mail.connect_timeout, mail.stall_timeout);
    if (mail.needs_tls) set(internal::kCurlUseSsl, internal::kCurlUseSslAll);
    else set(internal::kCurlNoProxy, "*");  // what is in clear goes nowhere else
    if (!mail.authorities.empty()) set(internal::kCurlCaInfo, mail.authorities.c_str());
    if (!mail.user.empty()) {
        set(internal::kCurlUserName, mail.user.c_str());
        set(internal::kCurlPassword, mail.password.c_str());
    }
    set(internal::kCurlMailFrom, sender.c_str());
    set(internal::kCurlMailRecipients, recipients);
    set(internal::kCurlUpload, 1L);
    set(internal::kCurlInFileSizeLarge, static_cast<long long>(mail.text.size()));
    set(internal::kCurlReadFunction, &give_text);
    set(internal::kCurlReadData, static_cast<void*>(&rest));
    set(internal::kCurlWriteFunction, &drop);
    const int code = has_all ? curl.easy_perform(handle) : internal::kCurlOk;
    long answered = 0;
    static_cast<void>(curl.easy_getinfo(handle, internal::kCurlResponseCode, &answered));
    curl.easy_cleanup(handle);
    curl.slist_free_all(recipients);
    if (!has_all) return {Code::kResourceExhausted, "libcurl: no memory for a mail"};
    if (code == internal::kCurlOk) return Status::ok();
    if (deadline.is_over) return {Code::kUnavailable, "there was no time left"};
    return explain(curl, code, why.data(), answered, mail);
}

}  // namespace traindbg::http

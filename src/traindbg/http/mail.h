// One mail handed to a server, by SMTP.
//
// Thread-safety: may be called from any thread. Errors: kUnavailable (the network, or a server that says
// "later": 4xx), kPermissionDenied (the server refuses: 5xx, the password, the certificate, or it has no TLS
// where that is needed), kInvalidArgument (the URL), kUnsupported (no libcurl here, or one without SMTP).
// No message holds the password.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "traindbg/base/status.h"
#include "traindbg/storage/object_store.h"

namespace traindbg::http {

struct Mail {
    std::string url;  // smtp://host:port, or smtps:// where TLS begins with the first byte
    std::string user;
    std::string password;  // both empty: nobody logs in
    std::string sender;    // name@host
    std::vector<std::string> recipients;
    std::string text;         // all of it, headers first; lines end with CR LF
    bool needs_tls = true;    // of smtp://: nothing is said before TLS has begun (STARTTLS)
    std::string authorities;  // file of certificates to trust; empty: the system's
    // Until the log-in is over: mail servers answer a stranger, and a wrong password, slowly on purpose.
    std::chrono::milliseconds connect_timeout{25000};
    std::chrono::milliseconds stall_timeout{25000};
};

[[nodiscard]] base::Status send_mail(const Mail& mail, const storage::Patience& patience);

}  // namespace traindbg::http

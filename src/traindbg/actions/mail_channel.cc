// Sends findings by mail.
//
// A mail that is sent again after a failure has the same Message-ID, so that most receivers show one.
// Sources: RFC 5322 (headers), RFC 2047 (other letters than ASCII in them), RFC 3834 (Auto-Submitted).
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <ctime>
#include <utility>
#include <vector>

#include "traindbg/actions/channel.h"
#include "traindbg/actions/target_options.h"
#include "traindbg/base/clock.h"
#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/base/version.h"

namespace traindbg::actions {
namespace {

using base::Code;
using base::Result;
using base::Status;

std::string base64(std::string_view bytes) {
    constexpr std::string_view kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string out;
    for (std::size_t i = 0; i < bytes.size(); i += 3) {
        std::uint32_t group = 0;
        const std::size_t here = std::min<std::size_t>(3, bytes.size() - i);
        for (std::size_t k = 0; k < 3; ++k)
            group = group << 8 | (k < here ? static_cast<unsigned char>(bytes[i + k]) : 0U);
        for (std::size_t k = 0; k < 4; ++k) out += k <= here ? kLetters[group >> (18 - 6 * k) & 63U] : '=';
    }
    return out;
}

bool is_ascii(std::string_view text) {
    return std::all_of(text.begin(), text.end(), [](char letter) { return letter >= ' ' && letter <= '~'; });
}

// The text of a header, folded so that no line is longer than 76 bytes.
std::string header_text(std::string_view text) {
    constexpr std::size_t kMostBytes = 42;  // as base64, in "=?utf-8?B?...?=", below the 75 that are allowed
    if (is_ascii(text) && text.size() <= 60) return std::string(text);
    std::string out;
    while (!text.empty()) {
        std::size_t end = std::min(kMostBytes, text.size());
        // Between letters.
        while (end > 0 && end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
        if (!out.empty()) out += "\r\n ";
        out += "=?utf-8?B?" + base64(text.substr(0, end)) + "?=";
        text.remove_prefix(end);
    }
    return out;
}

std::string mail_date(std::int64_t wall_nanos) {
    constexpr std::array kDays = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
    constexpr std::array kMonths = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                    "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    const auto seconds = static_cast<std::time_t>(wall_nanos / 1'000'000'000);
    std::tm parts{};
    ::gmtime_r(&seconds, &parts);
    return base::format("{}, {} {} {} {:02}:{:02}:{:02} +0000",
                        kDays[static_cast<std::size_t>(parts.tm_wday)], parts.tm_mday,
                        kMonths[static_cast<std::size_t>(parts.tm_mon)], parts.tm_year + 1900, parts.tm_hour,
                        parts.tm_min, parts.tm_sec);
}

// name@host, without what would end a header, a command of SMTP, or a list.
bool is_address(std::string_view text) {
    const std::size_t at = text.rfind('@');
    return text.size() <= 254 && at != std::string_view::npos && at > 0 && at + 1 < text.size() &&
           is_ascii(text) && text.find_first_of(" <>,;\"\\()") == std::string_view::npos &&
           text.find('@') == at;
}

bool is_host(std::string_view text) {
    return !text.empty() && text.front() != '-' && std::all_of(text.begin(), text.end(), [](char letter) {
        return (letter >= '0' && letter <= '9') || (letter >= 'a' && letter <= 'z') ||
               (letter >= 'A' && letter <= 'Z') || letter == '.' || letter == '-' || letter == ':' ||
               letter == '[' || letter == ']';
    });
}

// Where a password may be sent as it is: it leaves this machine nowhere.
bool is_loopback(std::string_view authority) {
    return authority == "localhost" || authority.starts_with("localhost:") || authority == "[::1]" ||
           authority.starts_with("[::1]:") || authority == "127.0.0.1" || authority.starts_with("127.0.0.1:");
}

std::string local_sender() {
    std::array<char, 256> name{};
    std::string host = ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
    if (!is_host(host)) host = "localhost";
    return "traindbg@" + host;
}

std::vector<std::string> addresses(std::string_view list) {
    std::vector<std::string> out;
    while (!list.empty()) {
        const std::string_view one = list.substr(0, list.find(','));
        list.remove_prefix(std::min(list.size(), one.size() + 1));
        if (!one.empty()) out.emplace_back(one);
    }
    return out;
}

class MailChannel final : public Channel {
  public:
    explicit MailChannel(http::Mail mail) : mail_(std::move(mail)) {}

    [[nodiscard]] std::string_view name() const noexcept override { return "mail"; }
    [[nodiscard]] std::string intention() const override {
        return base::format("mail to {} by {}", base::join(mail_.recipients, ", "), mail_.url);
    }

    [[nodiscard]] Status deliver(const Notification& notification,
                                 const storage::Patience& patience) override {
        http::Mail mail = mail_;
        mail.text = mail_text(notification, mail.sender, mail.recipients, base::wall_nanos());
        const Status sent = http::send_mail(mail, patience);
        return sent.is_ok() ? sent : Status(sent.code(), intention() + ": " + sent.message());
    }

  private:
    const http::Mail mail_;
};

}  // namespace

std::string mail_text(const Notification& notification, const std::string& sender,
                      const std::vector<std::string>& recipients, std::int64_t wall_nanos) {
    const std::string subject =
        base::format("[traindbg] {} ({})", title_of(notification), base::printable(notification.run));
    std::string text = base::format(
        "Date: {}\r\nFrom: traindbg <{}>\r\nTo: {}\r\nMessage-ID: <{}@{}>\r\nSubject: {}\r\n"
        "Auto-Submitted: auto-generated\r\nX-Mailer: traindbg {}\r\nMIME-Version: 1.0\r\n"
        "Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: base64\r\n\r\n",
        mail_date(wall_nanos), sender, base::join(recipients, ",\r\n "), notification.id,
        sender.substr(sender.rfind('@') + 1), header_text(subject), base::version());
    const std::string body =
        base64(title_of(notification) + "\n\n" + body_of(notification) + "\n" +
               (notification.directory.empty() ? "" : base::printable(notification.directory) + "\n"));
    constexpr std::size_t kLine = 76;
    for (std::size_t at = 0; at < body.size(); at += kLine) text += body.substr(at, kLine) + "\r\n";
    return text;
}

Result<http::Mail> parse_mail_target(std::string_view url, bool is_hidden) {
    static const std::vector<std::string> kOptions = {"to", "from", "password", "tls", "ca"};
    const auto wrong = [](std::string_view what) {
        return Status(Code::kInvalidArgument, std::string(what));
    };
    TRAINDBG_ASSIGN_OR_RETURN(const Target target, parse_target(url, kOptions));
    http::Mail mail;
    std::string_view rest = target.name;
    const bool is_tls_from_start = rest.starts_with("smtps://");
    rest.remove_prefix(rest.find("://") + 3);
    if (const std::size_t at = rest.rfind('@'); at != std::string_view::npos) {
        std::string_view user = rest.substr(0, at);
        rest.remove_prefix(at + 1);
        if (const std::size_t colon = user.find(':'); colon != std::string_view::npos) {
            if (!is_hidden)
                return wrong(
                    "a password does not belong on a command line or into a settings file, where others see "
                    "it; "
                    "give password=env:NAME or password=@FILE behind '?'");
            if (!percent_decoded(user.substr(colon + 1), mail.password))
                return wrong("the password is not percent-encoded");
            user = user.substr(0, colon);
        }
        if (!percent_decoded(user, mail.user) || mail.user.empty())
            return wrong("the user before '@' is empty or not percent-encoded");
    }
    while (rest.ends_with('/')) rest.remove_suffix(1);
    if (!is_host(rest))
        return wrong("names no mail server, as in smtp://me@mail.example.org?to=you@example.org");
    const bool has_port = rest.find(':', rest.starts_with('[') ? std::min(rest.find(']'), rest.size()) : 0) !=
                          std::string_view::npos;
    // Where mail is handed in (RFC 6409, RFC 8314); libcurl's own default is where servers talk to each
    // other.
    mail.url = base::format("{}://{}{}", is_tls_from_start ? "smtps" : "smtp", rest,
                            has_port            ? ""
                            : is_tls_from_start ? ":465"
                                                : ":587");
    if (const std::string password = target.option("password"); !password.empty()) {
        if (!is_reference(password) && !is_hidden)
            return wrong("password: give env:NAME or @FILE, not the password itself");
        if (is_reference(password)) {
            TRAINDBG_ASSIGN_OR_RETURN(mail.password, dereference(password));
        } else {
            mail.password = password;
        }
        if (mail.user.empty()) return wrong("password: is given, and no user: smtp://USER@HOST");
    }
    if (!mail.user.empty() && mail.password.empty())
        return wrong("a user is given, and no password: add password=env:NAME or password=@FILE");
    const std::string tls = target.option("tls");
    if (!tls.empty() && tls != "required" && tls != "off") return wrong("tls: is one of required, off");
    if (tls == "off" && is_tls_from_start) return wrong("tls=off: smtps:// is TLS; smtp:// is without");
    mail.needs_tls = tls != "off";
    if (!mail.needs_tls && !mail.password.empty() && !is_loopback(rest))
        return wrong("tls=off: would send the password to another machine for everybody to read");
    mail.authorities = target.option("ca");
    mail.recipients = addresses(target.option("to"));
    if (mail.recipients.empty()) return wrong("to: is missing: who is told, as in ?to=me@example.org");
    mail.sender = target.option("from");
    if (mail.sender.empty()) mail.sender = is_address(mail.user) ? mail.user : local_sender();
    for (const std::string& address : mail.recipients)
        if (!is_address(address))
            return wrong(base::format("to: '{}' is no address", base::printable(address)));
    if (!is_address(mail.sender))
        return wrong(base::format("from: '{}' is no address", base::printable(mail.sender)));
    return mail;
}

std::unique_ptr<Channel> make_mail_channel(http::Mail mail) {
    return std::make_unique<MailChannel>(std::move(mail));
}

}  // namespace traindbg::actions

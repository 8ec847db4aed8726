// Ways in which findings are told to the world outside: a command, a webhook, a file, a mail, services.
//
// A target is one word of the user's:
//   command:notify.sh            a command, run by /bin/sh with the finding on its standard input
//   file:findings.jsonl          a file, to which a line of JSON is added
//   https://example.org/hook     a webhook, which gets JSON
//   slack:https://...            the same in the form of Slack, Discord or Teams; where the host is theirs,
//   discord:..., teams:...       the word in front is not needed
//   smtp://me@host?to=a@b.org    a mail, with TLS unless ?tls=off says otherwise; smtps:// likewise
//   sns:ARN, sns:+49..., sns:a@b.org, cloudwatch:NAMESPACE, events:BUS, lambda:FUNCTION
//                                services of AWS: aws_channel.cc
//   env:NAME, @FILE              any of these from an environment variable or a file: what is secret (the URL
//                                of a webhook is) then stands on no command line and in no settings file
//
// Thread-safety: one thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "traindbg/actions/notification.h"
#include "traindbg/aws/credentials.h"
#include "traindbg/base/status.h"
#include "traindbg/http/http.h"
#include "traindbg/http/mail.h"
#include "traindbg/storage/file_system.h"
#include "traindbg/storage/object_store.h"

namespace traindbg::actions {

class Channel {
  public:
    Channel() = default;
    Channel(const Channel&) = delete;
    Channel& operator=(const Channel&) = delete;
    virtual ~Channel() = default;

    // One word for the journal: "webhook".
    [[nodiscard]] virtual std::string_view name() const noexcept = 0;
    // What it does, for people, without what is secret: "post to https://hooks.slack.com".
    [[nodiscard]] virtual std::string intention() const = 0;
    // kUnavailable: it may work later. Anything else than ok: it never will. Ends soon after `patience`.
    [[nodiscard]] virtual base::Status deliver(const Notification& notification,
                                               const storage::Patience& patience) = 0;
};

// kInvalidArgument says what is wrong with the target, without quoting what may be secret.
[[nodiscard]] base::Result<std::unique_ptr<Channel>> make_channel(std::string_view target);

// One each.
[[nodiscard]] std::unique_ptr<Channel> make_command_channel(std::string command);
[[nodiscard]] std::unique_ptr<Channel> make_file_channel(std::string path);

enum class WebhookForm : std::uint8_t { kJson, kSlack, kDiscord, kTeams };
[[nodiscard]] std::unique_ptr<Channel> make_webhook_channel(std::string url, WebhookForm form,
                                                            std::unique_ptr<http::HttpTransport> transport);
// The body of the request.
[[nodiscard]] std::string webhook_body(const Notification& notification, WebhookForm form);

// smtp://user@host:port?to=...&from=...&password=env:NAME&tls=off&ca=FILE. `is_hidden`: it stood where nobody
// else reads it, so that a password may be part of it.
[[nodiscard]] base::Result<http::Mail> parse_mail_target(std::string_view url, bool is_hidden);
[[nodiscard]] std::unique_ptr<Channel> make_mail_channel(http::Mail mail);
// sns:, cloudwatch:, events: or lambda:, with ?region=, ?endpoint= and, of sns:, ?topic= behind.
[[nodiscard]] bool is_aws_target(std::string_view target) noexcept;
[[nodiscard]] base::Result<std::unique_ptr<Channel>> make_aws_channel(
    std::string_view target, const aws::Environment& environment, storage::FileSystem& files,
    std::unique_ptr<http::HttpTransport> transport);

// The whole mail, headers first.
[[nodiscard]] std::string mail_text(const Notification& notification, const std::string& sender,
                                    const std::vector<std::string>& recipients, std::int64_t wall_nanos);

}  // namespace traindbg::actions

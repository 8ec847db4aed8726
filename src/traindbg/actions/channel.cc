// From a user's word to a channel.
#include "traindbg/actions/channel.h"

#include <array>
#include <utility>

#include "traindbg/actions/target_options.h"
#include "traindbg/base/format.h"
#include "traindbg/base/text.h"

namespace traindbg::actions {
namespace {

using base::Code;
using base::Result;
using base::Status;

constexpr std::string_view kForms =
    "give command:..., file:PATH, https://..., slack:https://..., discord:https://..., teams:https://..., "
    "smtp://..., smtps://..., sns:..., cloudwatch:NAMESPACE, events:BUS, lambda:FUNCTION, prometheus:PORT, "
    "prometheus-file:PATH, env:NAME or @FILE";
std::string_view host_of(std::string_view url) {
    const std::size_t begin = url.find("://");
    if (begin == std::string_view::npos) return {};
    std::string_view host = url.substr(begin + 3);
    host = host.substr(0, host.find_first_of("/?#"));
    if (const std::size_t at = host.rfind('@'); at != std::string_view::npos) host.remove_prefix(at + 1);
    return host.substr(0, host.find(':'));
}

WebhookForm form_of(std::string_view url) {
    const std::string_view host = host_of(url);
    if (host == "hooks.slack.com") return WebhookForm::kSlack;
    if (host == "discord.com" || host == "discordapp.com") return WebhookForm::kDiscord;
    if (host.ends_with(".webhook.office.com") || host.ends_with(".logic.azure.com") ||
        host.ends_with(".api.powerplatform.com"))
        return WebhookForm::kTeams;
    return WebhookForm::kJson;
}

Result<std::unique_ptr<Channel>> webhook(std::string_view url, WebhookForm form) {
    if (!url.starts_with("https://") && !url.starts_with("http://"))
        return Status(Code::kInvalidArgument, "a webhook's URL begins with https:// or http://");
    if (host_of(url).empty()) return Status(Code::kInvalidArgument, "a webhook's URL names a host");
    return make_webhook_channel(std::string(url), form, http::make_curl_transport());
}

// `is_hidden`: it stood where nobody else reads it.
Result<std::unique_ptr<Channel>> from_text(std::string_view target, bool is_hidden) {
    if (target.starts_with("smtp://") || target.starts_with("smtps://")) {
        TRAINDBG_ASSIGN_OR_RETURN(http::Mail mail, parse_mail_target(target, is_hidden));
        return make_mail_channel(std::move(mail));
    }
    if (is_aws_target(target))
        return make_aws_channel(target, &aws::process_environment, storage::posix_file_system(),
                                http::make_curl_transport());
    if (target.starts_with("https://") || target.starts_with("http://"))
        return webhook(target, form_of(target));
    const std::size_t colon = target.find(':');
    const std::string_view word = target.substr(0, colon);
    const std::string_view rest = colon == std::string_view::npos ? "" : target.substr(colon + 1);
    constexpr std::array kWords = {std::pair{std::string_view("slack"), WebhookForm::kSlack},
                                   std::pair{std::string_view("discord"), WebhookForm::kDiscord},
                                   std::pair{std::string_view("teams"), WebhookForm::kTeams},
                                   std::pair{std::string_view("json"), WebhookForm::kJson}};
    for (const auto& [name, form] : kWords)
        if (word == name) return webhook(rest, form);
    if ((word == "command" || word == "file") && trimmed(rest).empty())
        return Status(Code::kInvalidArgument, base::format("'{}:' is followed by nothing; {}", word, kForms));
    if (word == "command") return make_command_channel(std::string(rest));
    if (word == "file") return make_file_channel(std::string(rest));
    return Status(Code::kInvalidArgument, base::format("is no way to notify; {}", kForms));
}

Status with_place(std::string_view place, const Status& status) {
    return {status.code(), base::format("{}: {}", place, status.message())};
}

}  // namespace

Result<std::unique_ptr<Channel>> make_channel(std::string_view target) {
    target = trimmed(target);
    if (is_reference(target)) {
        TRAINDBG_ASSIGN_OR_RETURN(const std::string text, dereference(target));
        auto channel = from_text(text, /*is_hidden=*/true);
        if (channel.is_ok()) return channel;
        return with_place(base::printable(target.starts_with('@') ? target.substr(1) : target),
                          channel.status());
    }
    auto channel = from_text(target, /*is_hidden=*/false);
    if (channel.is_ok()) return channel;
    // What stands behind the first word may be secret.
    const std::string_view shown = target.substr(0, std::min(target.find(':'), std::size_t{40}));
    return with_place("'" + base::printable(shown) + "'", channel.status());
}

}  // namespace traindbg::actions

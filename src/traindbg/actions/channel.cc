// From a user's word to a channel.
#include "traindbg/actions/channel.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <utility>

#include "traindbg/base/file_descriptor.h"
#include "traindbg/base/format.h"
#include "traindbg/base/text.h"

namespace traindbg::actions {
namespace {

using base::Code;
using base::Result;
using base::Status;

constexpr std::string_view kForms =
    "give command:..., file:PATH, https://..., slack:https://..., discord:https://..., teams:https://..., "
    "env:NAME or @FILE";
constexpr std::size_t kMostTargetBytes = 4096;

std::string_view trimmed(std::string_view text) {
    constexpr std::string_view kBlank = " \t\r\n";
    const std::size_t begin = text.find_first_not_of(kBlank);
    if (begin == std::string_view::npos) return {};
    return text.substr(begin, text.find_last_not_of(kBlank) - begin + 1);
}

// The first line of a file that a target stands in.
Result<std::string> read_target(const std::string& path) {
    const base::FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (file.get() < 0) return Status::from_errno(path, errno);
    std::string text(kMostTargetBytes, '\0');
    const ssize_t got = ::read(file.get(), text.data(), text.size());
    if (got < 0) return Status::from_errno(path, errno);
    text.resize(static_cast<std::size_t>(got));
    const std::string line(trimmed(std::string_view(text).substr(0, text.find('\n'))));
    if (line.empty())
        return Status(Code::kInvalidArgument, base::printable(path) + ": its first line names no target");
    return line;
}

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

Result<std::unique_ptr<Channel>> from_text(std::string_view target) {
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
    if (target.starts_with('@')) {
        const std::string path(target.substr(1));
        TRAINDBG_ASSIGN_OR_RETURN(const std::string text, read_target(path));
        auto channel = from_text(text);
        return channel.is_ok() ? std::move(channel) : with_place(base::printable(path), channel.status());
    }
    if (target.starts_with("env:")) {
        const std::string name(target.substr(4));
        const char* value = std::getenv(name.c_str());
        if (value == nullptr || *value == '\0')
            return Status(Code::kInvalidArgument,
                          base::printable(target) + ": this environment variable is not set");
        auto channel = from_text(trimmed(value));
        return channel.is_ok() ? std::move(channel) : with_place(base::printable(target), channel.status());
    }
    auto channel = from_text(target);
    if (channel.is_ok()) return channel;
    // What stands behind the first word may be secret.
    const std::string_view shown = target.substr(0, std::min(target.find(':'), std::size_t{40}));
    return with_place("'" + base::printable(shown) + "'", channel.status());
}

}  // namespace traindbg::actions

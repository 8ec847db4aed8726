// Posts findings to a URL, as JSON or in the form that a chat's webhooks want.
//
// Sources: "Sending messages using incoming webhooks" (Slack), "Execute Webhook" (Discord), "Create incoming
// webhooks with Workflows for Microsoft Teams" (an Adaptive Card in a message).
#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "traindbg/actions/channel.h"
#include "traindbg/base/format.h"
#include "traindbg/base/text.h"

namespace traindbg::actions {
namespace {

using base::Code;
using base::Status;
using model::Json;

// Slack's own markup begins with these.
std::string escaped_for_slack(std::string_view text) {
    std::string out;
    for (const char letter : text) {
        if (letter == '&') out += "&amp;";
        else if (letter == '<') out += "&lt;";
        else if (letter == '>') out += "&gt;";
        else out += letter;
    }
    return out;
}

// Text of a training must not become a mention or formatting.
std::string escaped_for_discord(std::string_view text) {
    std::string out;
    for (const char letter : text) {
        if (std::string_view("\\*_~`|>@<#[]()").find(letter) != std::string_view::npos) out += '\\';
        out += letter;
    }
    return out;
}

// At most so many bytes, cut between characters.
std::string shortened(std::string text, std::size_t most) {
    if (text.size() <= most) return text;
    std::size_t end = most - 3;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
    text.resize(end);
    return text + "...";
}

class WebhookChannel final : public Channel {
  public:
    WebhookChannel(std::string url, WebhookForm form, std::unique_ptr<http::HttpTransport> transport)
        : url_(std::move(url)), form_(form), transport_(std::move(transport)) {}

    [[nodiscard]] std::string_view name() const noexcept override { return "webhook"; }
    // What stands behind the host is often a secret, and so is what stands before an '@'.
    [[nodiscard]] std::string intention() const override {
        const std::size_t begin = url_.find("://") + 3;
        std::string_view host = std::string_view(url_).substr(begin);
        host = host.substr(0, host.find_first_of("/?#"));
        if (const std::size_t at = host.rfind('@'); at != std::string_view::npos) host.remove_prefix(at + 1);
        return base::format("post to {}{}", url_.substr(0, begin), base::printable(host));
    }

    [[nodiscard]] Status deliver(const Notification& notification,
                                 const storage::Patience& patience) override {
        const std::string body = webhook_body(notification, form_);
        http::HttpRequest request;
        request.method = "POST";
        request.url = url_;
        request.headers = {{"content-type", "application/json"}, {"idempotency-key", notification.id}};
        request.body = std::as_bytes(std::span(body));
        const auto answer = transport_->perform(request, patience);
        if (!answer.is_ok()) return {answer.status().code(), intention() + ": " + answer.status().message()};
        if (answer->status >= 200 && answer->status < 300) return Status::ok();
        const bool may_pass = answer->status == 408 || answer->status == 429 || answer->status >= 500;
        const std::string said = shortened(base::printable(answer->text()), 200);
        return {may_pass ? Code::kUnavailable : Code::kPermissionDenied,
                base::format("{}: the server answered {}{}", intention(), answer->status,
                             said.empty() ? "" : " (" + said + ")")};
    }

  private:
    std::string url_;
    WebhookForm form_;
    std::unique_ptr<http::HttpTransport> transport_;
};

}  // namespace

std::string webhook_body(const Notification& notification, WebhookForm form) {
    const std::string title = title_of(notification);
    const std::string body = body_of(notification);
    Json json;
    switch (form) {
        case WebhookForm::kJson: json = to_json(notification); break;
        case WebhookForm::kSlack:
            json = {
                {"text", shortened("*" + escaped_for_slack(title) + "*\n" + escaped_for_slack(body), 3000)}};
            break;
        case WebhookForm::kDiscord:
            json = {{"content",
                     shortened("**" + escaped_for_discord(title) + "**\n" + escaped_for_discord(body), 2000)},
                    {"allowed_mentions", {{"parse", Json::array()}}}};
            break;
        case WebhookForm::kTeams: {
            const auto block = [](const std::string& text, const char* weight) {
                return Json{{"type", "TextBlock"}, {"text", text}, {"weight", weight}, {"wrap", true}};
            };
            const Json card = {
                {"type", "AdaptiveCard"},
                {"$schema", "http://adaptivecards.io/schemas/adaptive-card.json"},
                {"version", "1.4"},
                {"body", Json::array({block(title, "Bolder"), block(shortened(body, 10000), "Default")})}};
            json = {{"type", "message"},
                    {"attachments", Json::array({{{"contentType", "application/vnd.microsoft.card.adaptive"},
                                                  {"content", card}}})}};
            break;
        }
    }
    return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::unique_ptr<Channel> make_webhook_channel(std::string url, WebhookForm form,
                                              std::unique_ptr<http::HttpTransport> transport) {
    return std::make_unique<WebhookChannel>(std::move(url), form, std::move(transport));
}

}  // namespace traindbg::actions

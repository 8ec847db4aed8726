#include "traindbg/settings/actions_json.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/settings/json_problem.h"

namespace traindbg::settings {
namespace {

using base::Code;
using base::Result;
using base::Status;
using nlohmann::json;

std::string lower(std::string text) {
    for (char& letter : text)
        if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
    return text;
}

std::string without_escaped_quotes(std::string_view text) {
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i)
        if (text[i] != '\\' || i + 1 == text.size() || text[i + 1] != '"') out += text[i];
    return out;
}

// As on an envelope; who sends to it looks closer.
bool is_address(std::string_view text) {
    const std::size_t at = text.find('@');
    return at != std::string_view::npos && at > 0 && at + 1 < text.size() && at == text.rfind('@') &&
           std::all_of(text.begin(), text.end(), [](char letter) { return letter > ' ' && letter <= '~'; }) &&
           text.find_first_of("?&<>,;\"\\()") == std::string_view::npos;
}

bool is_number(std::string_view text) {
    return text.size() >= 2 && text.size() <= 16 && text.front() == '+' &&
           std::all_of(text.begin() + 1, text.end(), [](char digit) { return digit >= '0' && digit <= '9'; });
}

bool is_prefix(std::string_view text) {
    return std::all_of(text.begin(), text.end(), [](char letter) {
        return (letter >= '0' && letter <= '9') || (letter >= 'a' && letter <= 'z') || letter == '-';
    });
}

Result<RequestedAction> action_of(const json& item, const std::string& where) {
    static const std::vector<std::string> kNames = {"stoptraining", "email", "sms"};
    const auto wrong = [&](std::string_view what) {
        return Status(Code::kInvalidArgument, base::format("{}: {}", where, what));
    };
    if (!item.is_object()) return wrong("expected an object, as {\"name\": \"stoptraining\"}");
    const auto text_at = [&](const std::string& key) -> Result<std::string> {
        for (const auto& [each, value] : item.items()) {
            if (lower(each) != key) continue;
            if (value.is_null()) return std::string();
            if (!value.is_string())
                return Status(Code::kInvalidArgument, base::format("{}: {}: expected a text", where, key));
            return value.get<std::string>();
        }
        return std::string();
    };
    TRAINDBG_ASSIGN_OR_RETURN(std::string name, text_at("name"));
    name = lower(name);
    if (name.empty()) return wrong("has no name; there are stoptraining, email, sms");
    if (std::find(kNames.begin(), kNames.end(), name) == kNames.end())
        return wrong(base::format("no action '{}'{}; there are {}", base::printable(name),
                                  base::did_you_mean(name, kNames), base::join(kNames, ", ")));
    RequestedAction action;
    action.kind = name == "email" ? ActionKind::kEmail : name == "sms" ? ActionKind::kSms : ActionKind::kStop;
    const std::string argument = action.kind == ActionKind::kStop ? "training_job_prefix" : "endpoint";
    const std::vector<std::string> keys = {"name", argument};
    for (const auto& [key, value] : item.items())
        if (std::find(keys.begin(), keys.end(), lower(key)) == keys.end())
            return wrong(base::format("{} has no key '{}'{}; it has {}", name, base::printable(key),
                                      base::did_you_mean(lower(key), keys), base::join(keys, ", ")));
    TRAINDBG_ASSIGN_OR_RETURN(const std::string value, text_at(argument));
    switch (action.kind) {
        case ActionKind::kStop:
            action.prefix = lower(value);
            if (!is_prefix(action.prefix))
                return wrong(base::format("training_job_prefix: '{}' has more than letters, digits and '-'",
                                          base::printable(value)));
            break;
        case ActionKind::kEmail:
            if (!is_address(value))
                return wrong(base::format("endpoint: '{}' is no address", base::printable(value)));
            action.endpoint = value;
            break;
        case ActionKind::kSms:
            if (!is_number(value))
                return wrong(
                    base::format("endpoint: '{}' is no phone number, as +491234567", base::printable(value)));
            action.endpoint = value;
            break;
    }
    return action;
}

}  // namespace

Result<std::vector<RequestedAction>> parse_actions_json(std::string_view text, const std::string& name) {
    std::vector<RequestedAction> actions;
    if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) return actions;
    json given = json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
    if (given.is_discarded())
        given = json::parse(without_escaped_quotes(text), nullptr, /*allow_exceptions=*/false);
    if (given.is_discarded())
        return Status(Code::kInvalidArgument,
                      base::format("{}: {}", name, json_problem(without_escaped_quotes(text))));
    if (given.is_string()) return parse_actions_json(given.get<std::string>(), name);
    if (given.is_null()) return actions;
    if (!given.is_array()) given = json::array({given});
    for (const json& item : given) {
        TRAINDBG_ASSIGN_OR_RETURN(RequestedAction action,
                                  action_of(item, base::format("{}: action {}", name, actions.size() + 1)));
        actions.push_back(std::move(action));
    }
    return actions;
}

}  // namespace traindbg::settings

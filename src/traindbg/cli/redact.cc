#include "traindbg/cli/redact.h"

#include <algorithm>
#include <array>

namespace traindbg::cli {
namespace {

char lower_letter(char letter) noexcept {
    return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
}

// The user part of every URL: "https://me:key@host" -> "https://[redacted]@host".
std::string without_user_parts(std::string_view text) {
    std::string out;
    while (true) {
        const std::size_t scheme = text.find("://");
        if (scheme == std::string_view::npos) break;
        out += text.substr(0, scheme + 3);
        text.remove_prefix(scheme + 3);
        const std::string_view authority = text.substr(0, text.find_first_of("/?# \t\n\"'"));
        if (const std::size_t at = authority.rfind('@'); at != std::string_view::npos) {
            out += kRedacted;
            text.remove_prefix(at);
        }
    }
    return out.append(text);
}

// AWS access key ids: AKIA or ASIA and 16 capital letters or digits.
std::string without_key_ids(std::string text) {
    constexpr std::size_t kLength = 20;
    const auto is_key_letter = [](char letter) {
        return (letter >= 'A' && letter <= 'Z') || (letter >= '0' && letter <= '9');
    };
    for (std::size_t i = 0; i + kLength <= text.size(); ++i) {
        const std::string_view part = std::string_view(text).substr(i, kLength);
        if (!part.starts_with("AKIA") && !part.starts_with("ASIA")) continue;
        if (!std::all_of(part.begin(), part.end(), is_key_letter)) continue;
        text.replace(i, kLength, kRedacted);
    }
    return text;
}

std::string cleaned(std::string_view text) { return without_key_ids(without_user_parts(text)); }

}  // namespace

bool names_a_secret(std::string_view name) {
    std::string word;
    for (const char letter : name)
        if (letter != '-' && letter != '_' && letter != '.') word += lower_letter(letter);
    // A tokenizer is no secret, and a user wants to see which one it was.
    for (std::size_t at = word.find("tokeniz"); at != std::string::npos; at = word.find("tokeniz"))
        word.erase(at, 7);
    constexpr std::array<std::string_view, 6> kWords = {"secret",     "token",  "passw",
                                                        "credential", "apikey", "session"};
    return std::any_of(kWords.begin(), kWords.end(),
                       [&](std::string_view part) { return word.find(part) != std::string::npos; });
}

std::vector<std::string> redacted(const std::vector<std::string>& command) {
    std::vector<std::string> out;
    out.reserve(command.size());
    bool value_is_secret = false;
    for (std::size_t i = 0; i < command.size(); ++i) {
        const std::string& argument = command[i];
        const bool is_option = argument.size() > 1 && argument[0] == '-';
        if (value_is_secret && !argument.starts_with("--")) {
            out.emplace_back(kRedacted);
            value_is_secret = false;
            continue;
        }
        value_is_secret = false;
        const std::size_t equals = argument.find('=');
        if (i > 0 && equals != std::string::npos &&
            names_a_secret(std::string_view(argument).substr(0, equals))) {
            out.push_back(argument.substr(0, equals + 1) + std::string(kRedacted));
            continue;
        }
        value_is_secret = i > 0 && is_option && equals == std::string::npos && names_a_secret(argument);
        out.push_back(cleaned(argument));
    }
    return out;
}

}  // namespace traindbg::cli

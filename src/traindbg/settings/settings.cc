#include "traindbg/settings/settings.h"

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <utility>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/model/due_steps.h"
#include "traindbg/model/what_words.h"

// toml++ 3.3 asserts things of its input (that a key follows "[") which a file may not have, and without
// assertions its code relies on them. Here they are errors like the others.
namespace traindbg::settings {
constexpr void expect_of_input(bool is_so) {
    if (!is_so) throw std::invalid_argument("something else was expected");
}
}  // namespace traindbg::settings
#undef NDEBUG
#define TOML_ASSERT(condition) ::traindbg::settings::expect_of_input(static_cast<bool>(condition))
#include <toml++/toml.h>

namespace traindbg::settings {
namespace {

using base::Code;
using base::Result;
using base::Status;

class Reader {
  public:
    explicit Reader(std::string name) : name_(std::move(name)) { out_.name = name_; }

    Result<Settings> read(const toml::table& table) {
        for (const auto& [key, value] : table) {
            const std::string word(key.str());
            if (word == "rule") read_rules(value);
            else if (word == "collection") read_collections(value);
            else if (word == "capture") read_captures(value);
            else read_option(word, value);
            if (!status_.is_ok()) return status_;
        }
        return std::move(out_);
    }

  private:
    [[nodiscard]] std::string place(const toml::node& node) const {
        return base::format("{}:{}", name_, node.source().begin.line);
    }
    void fail(const toml::node& node, std::string_view key, std::string_view what) {
        if (status_.is_ok())
            status_ = {Code::kInvalidArgument,
                       base::format("{}: {}: {}", place(node), base::printable(key), what)};
    }

    // As it would stand on the command line.
    std::optional<std::string> text_of(const toml::node& node, std::string_view key) {
        if (const auto* text = node.as_string()) return text->get();
        if (const auto* number = node.as_integer()) return base::format("{}", number->get());
        if (const auto* number = node.as_floating_point()) return base::format("{}", number->get());
        if (const auto* truth = node.as_boolean()) return truth->get() ? "true" : "false";
        fail(node, key, "expected a text, a number, true or false");
        return std::nullopt;
    }
    std::vector<std::string> texts_of(const toml::node& node, std::string_view key) {
        std::vector<std::string> texts;
        if (const toml::array* list = node.as_array()) {
            for (const toml::node& item : *list)
                if (auto text = text_of(item, key)) texts.push_back(std::move(*text));
        } else if (auto text = text_of(node, key)) {
            texts.push_back(std::move(*text));
        }
        return texts;
    }
    std::vector<std::string> patterns_of(const toml::node& node, std::string_view key) {
        const auto is_text = [](const toml::node& each) { return each.is_string(); };
        const toml::array* list = node.as_array();
        if (list == nullptr ? !node.is_string() : !std::all_of(list->begin(), list->end(), is_text)) {
            fail(node, key, "expected a regular expression, or a list of them");
            return {};
        }
        return texts_of(node, key);
    }
    void read_number(const toml::node& node, std::string_view key, std::uint64_t& out) {
        const auto* number = node.as_integer();
        if (number == nullptr || number->get() < 0)
            return fail(node, key, "expected a whole number from 0 up");
        out = static_cast<std::uint64_t>(number->get());
    }

    void read_option(const std::string& word, const toml::node& node) {
        Setting setting;
        setting.name = word;
        std::replace(setting.name.begin(), setting.name.end(), '_', '-');
        setting.values = texts_of(node, word);
        setting.origin = place(node);
        out_.options.push_back(std::move(setting));
    }

    void read_rules(const toml::node& node) {
        const toml::table* rules = node.as_table();
        if (rules == nullptr) return fail(node, "rule", "expected tables, as [rule.vanishing_gradient]");
        for (const auto& [rule, settings] : *rules) {
            const std::string name(rule.str());
            const toml::table* parameters = settings.as_table();
            if (parameters == nullptr)
                return fail(settings, "rule." + name, "expected a table of the rule's parameters");
            if (parameters->empty()) out_.rule_settings.push_back(name);  // with its defaults
            for (const auto& [parameter, value] : *parameters) {
                const std::string where = "rule." + name + "." + std::string(parameter.str());
                if (value.is_table()) return fail(value, where, "expected a value, or a list of them");
                out_.rule_settings.push_back(
                    base::format("{}.{}={}", name, parameter.str(), base::join(texts_of(value, where), ",")));
            }
        }
    }

    void read_collections(const toml::node& node) {
        const toml::table* collections = node.as_table();
        if (collections == nullptr)
            return fail(node, "collection", "expected a table, as [collection] and heads = \"attention\"");
        for (const auto& [key, value] : *collections) {
            model::CollectionSpec spec;
            spec.name = key.str();
            const std::string where = "collection." + spec.name;
            if (const toml::table* parts = value.as_table()) {
                for (const auto& [part, patterns] : *parts) {
                    const std::string word(part.str());
                    if (word == "include") spec.include = patterns_of(patterns, where + ".include");
                    else if (word == "exclude") spec.exclude = patterns_of(patterns, where + ".exclude");
                    else return unknown(patterns, where, word, {"include", "exclude"});
                }
            } else {
                spec.include = patterns_of(value, where);
            }
            if (spec.include.empty()) fail(value, where, "has no pattern to include");
            out_.collections.push_back(std::move(spec));
        }
    }

    void unknown(const toml::node& node, std::string_view where, const std::string& word,
                 const std::vector<std::string>& known) {
        fail(node, where,
             base::format("unknown key '{}'{}; there are {}", base::printable(word),
                          base::did_you_mean(word, known), base::join(known, ", ")));
    }

    void read_captures(const toml::node& node) {
        const toml::array* list = node.as_array();
        const bool are_tables =
            list != nullptr &&
            std::all_of(list->begin(), list->end(), [](const auto& each) { return each.is_table(); });
        if (!are_tables) return fail(node, "capture", "expected tables, each begun with [[capture]]");
        for (const toml::node& item : *list) read_capture(*item.as_table());
    }

    void read_capture(const toml::table& table) {
        static const std::vector<std::string> kKeys = {"collection", "what", "mode",  "every",
                                                       "start",      "end",  "steps", "seconds"};
        model::Requirement requirement;
        requirement.asked_by = "user";
        std::vector<std::string> collections;
        bool has_interval = false;
        bool has_other_schedule = false;
        for (const auto& [key, value] : table) {
            const std::string word(key.str());
            if (word == "collection") {
                collections = texts_of(value, "capture.collection");
            } else if (word == "what") {
                requirement.what = model::What::kStatistics;
                for (const std::string& what : texts_of(value, "capture.what"))
                    read_what(value, what, requirement.what);
            } else if (word == "mode") {
                const std::string mode = text_of(value, "capture.mode").value_or("");
                if (mode == "every") requirement.mode = model::Mode::kGlobal;
                else if (mode == "train" || mode == "eval") requirement.mode = *model::parse_mode(mode);
                else fail(value, "capture.mode", "expected train, eval or every");
            } else if (word == "every") {
                read_number(value, "capture.every", requirement.schedule.every);
                if (requirement.schedule.every == 0)
                    fail(value, "capture.every", "expected a number from 1 up");
                has_interval = true;
            } else if (word == "start") {
                read_number(value, "capture.start", requirement.schedule.start);
            } else if (word == "end") {
                read_number(value, "capture.end", requirement.schedule.end);
            } else if (word == "steps") {
                read_steps(value, requirement.steps);
                has_other_schedule = true;
            } else if (word == "seconds") {
                read_seconds(value, requirement.every_ms);
                has_other_schedule = true;
            } else {
                return unknown(value, "capture", word, kKeys);
            }
        }
        if (collections.empty()) return fail(table, "capture", "'collection' is missing");
        if (requirement.schedule.end <= requirement.schedule.start)
            fail(table, "capture.end", "is not after the start");
        // Steps that are named, or a time, alone mean these and no others.
        if (!has_interval) requirement.schedule.every = has_other_schedule ? 0 : 1;
        if (!model::next_due(requirement, 0)) {
            const model::Schedule& schedule = requirement.schedule;
            std::string given = base::format("start {}", schedule.start);
            if (schedule.end != UINT64_MAX) given += base::format(", end {}", schedule.end);
            if (schedule.every != 0) given += base::format(", every {}", schedule.every);
            if (has_other_schedule) given += base::format(", {} in 'steps'", requirement.steps.size());
            fail(table, "capture", base::format("no step is due by {}; change one of them", given));
        }
        for (std::string& collection : collections) {
            requirement.collection = std::move(collection);
            out_.captures.push_back(requirement);
        }
    }

    void read_what(const toml::node& node, const std::string& word, model::What& what) {
        std::vector<std::string> known;
        for (const model::WhatWord& row : model::kWhatWords) {
            if (!row.is_for_users) continue;
            if (word == row.word) {
                what |= row.bit;
                return;
            }
            known.emplace_back(row.word);
        }
        fail(node, "capture.what",
             base::format("'{}' is not one of {}", base::printable(word), base::join(known, ", ")));
    }
    void read_steps(const toml::node& node, std::vector<model::StepIndex>& steps) {
        const toml::array* list = node.as_array();
        if (list == nullptr) return fail(node, "capture.steps", "expected a list of steps, as [0, 10, 100]");
        for (const toml::node& item : *list) read_number(item, "capture.steps", steps.emplace_back());
        std::sort(steps.begin(), steps.end());
    }
    void read_seconds(const toml::node& node, std::uint64_t& every_ms) {
        const std::optional<double> seconds = node.value<double>();
        if (!seconds || !(*seconds >= 0.001) || *seconds > 1e9)
            return fail(node, "capture.seconds", "expected a number of seconds, as 60 or 0.5");
        every_ms = static_cast<std::uint64_t>(*seconds * 1000.0);
    }

    std::string name_;
    Settings out_;
    Status status_;
};

// The line of the first byte beyond ASCII that is in no text and no comment, where TOML has none and
// toml++ 3.3 reads outside of its tables; 0: there is none.
std::size_t line_of_stray_byte(std::string_view text) {
    if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
    constexpr std::string_view kEnds = " \t\r\n=,.[]{}\"'";  // of a bare word
    constexpr std::string_view kBegins = "[{\"'";
    std::size_t line = 1;
    // Where a bracket or a quote stands in a word, nothing after it is text: toml++ takes it for the word's.
    bool is_word = false, is_broken = false;
    for (std::size_t at = 0; at < text.size(); ++at) {
        const char byte = text[at];
        if (byte == '\n') ++line;
        if (static_cast<unsigned char>(byte) >= 0x80) return line;
        if (is_word && kBegins.find(byte) != std::string_view::npos) is_broken = true;
        is_word = kEnds.find(byte) == std::string_view::npos;
        if (is_broken) continue;
        if (byte == '#') {
            at = std::min(text.find('\n', at), text.size()) - 1;
        } else if (byte == '"' || byte == '\'') {
            const std::string_view three = text.substr(at, 3);
            const bool is_long = three == "\"\"\"" || three == "'''";
            const std::size_t quotes = is_long ? 3 : 1;
            for (at += quotes; at < text.size(); ++at) {
                if (text[at] == '\n') ++line;
                if (text[at] == '\n' && !is_long) break;  // which toml++ refuses
                if (text[at] == '\\' && byte == '"') ++at;
                else if (text.substr(at, quotes) == three.substr(0, quotes)) break;
            }
            if (is_long) at += 2;
        }
    }
    return 0;
}

}  // namespace

Result<Settings> parse(std::string_view text, const std::string& name, Form form) {
    // A pyproject.toml that no tool can read is not for us to judge.
    const Code unreadable = form == Form::kPyproject ? Code::kUnsupported : Code::kInvalidArgument;
    if (text.size() > kMostBytes)
        return Status(unreadable, base::format("{}: larger than {}", name, base::human_bytes(kMostBytes)));
    if (const std::size_t line = line_of_stray_byte(text); line != 0)
        return Status(unreadable,
                      base::format("{}:{}: a letter that only a quoted text may have", name, line));
    toml::table table;
    try {
        table = toml::parse(text, std::string_view(name));
    } catch (const toml::parse_error& error) {
        return Status(unreadable, base::format("{}:{}: {}", name, error.source().begin.line,
                                               base::printable(error.description())));
    } catch (const std::invalid_argument& error) {
        return Status(unreadable, base::format("{}: is not TOML: {}", name, error.what()));
    }
    Reader reader(name);
    if (form == Form::kTraindbg) return reader.read(table);
    const toml::node_view<const toml::node> tool = std::as_const(table)["tool"]["traindbg"];
    if (!tool) return Settings{.name = name};
    if (!tool.is_table())
        return Status(Code::kInvalidArgument, base::format("{}: [tool.traindbg] is no table", name));
    return reader.read(*tool.as_table());
}

}  // namespace traindbg::settings

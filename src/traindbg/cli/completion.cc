#include "traindbg/cli/completion.h"

#include <algorithm>
#include <string_view>

#include "traindbg/base/format.h"
#include "traindbg/cli/verb.h"
#include "traindbg/model/tensor_info.h"

namespace traindbg::cli {
namespace {

std::string replaced(std::string text, std::string_view from, std::string_view to) {
    for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
        text.replace(at, from.size(), to);
    return text;
}

// Inside single quotes of any of the three shells.
std::string quoted(const std::string& text) { return replaced(text, "'", "'\\''"); }

// The first words that need a second one: "rules".
std::vector<std::string> parents(const CompletionTree& tree) {
    std::vector<std::string> words;
    for (const CompletionVerbEntry& verb : tree)
        if (const std::size_t space = verb.name.find(' '); space != std::string::npos)
            if (std::string word = verb.name.substr(0, space);
                std::find(words.begin(), words.end(), word) == words.end())
                words.push_back(std::move(word));
    return words;
}

std::vector<std::string> second_words(const CompletionTree& tree, const std::string& parent) {
    std::vector<std::string> words;
    for (const CompletionVerbEntry& verb : tree)
        if (verb.name.starts_with(parent + " ")) words.push_back(verb.name.substr(parent.size() + 1));
    return words;
}

std::vector<std::string> first_words(const CompletionTree& tree) {
    std::vector<std::string> words;
    for (const CompletionVerbEntry& verb : tree) {
        std::string word = verb.name.substr(0, verb.name.find(' '));
        if (std::find(words.begin(), words.end(), word) == words.end()) words.push_back(std::move(word));
    }
    return words;
}

// Shell code of bash that puts what may be the value of `option` into COMPREPLY.
std::string bash_values(const Option& option) {
    const auto words = [](const std::string& list) {
        return "COMPREPLY=($(compgen -W \"" + list + "\" -- \"$current\"))";
    };
    if (!option.choices.empty()) return words(base::join(option.choices, " "));
    switch (option.completes) {
        case Completes::kFile: return "COMPREPLY=($(compgen -f -- \"$current\"))";
        case Completes::kDirectory: return "COMPREPLY=($(compgen -d -- \"$current\"))";
        case Completes::kRun:
            return "COMPREPLY=($(compgen -d -W \"last $(traindbg ls --names 2>/dev/null)\" -- \"$current\"))";
        case Completes::kRule: return words("$(traindbg rules list --names 2>/dev/null)");
        case Completes::kCollection: return words(base::join(model::builtin_collections(), " "));
        case Completes::kNothing: break;
    }
    return "COMPREPLY=()";
}

std::string zsh_values(const Option& option) {
    if (!option.choices.empty()) return base::format("({})", base::join(option.choices, " "));
    switch (option.completes) {
        case Completes::kFile: return "_files";
        case Completes::kDirectory: return "_files -/";
        case Completes::kRun: return "_traindbg_runs";
        case Completes::kRule: return "_traindbg_rules";
        case Completes::kCollection:
            return base::format("({})", base::join(model::builtin_collections(), " "));
        case Completes::kNothing: break;
    }
    return " ";
}

// Text inside a specification of _arguments.
std::string zsh_text(const std::string& text) {
    return quoted(replaced(replaced(replaced(text, "[", "("), "]", ")"), ":", ";"));
}

std::string fish_values(const Option& option) {
    if (!option.choices.empty()) return base::format(" -xa '{}'", base::join(option.choices, " "));
    switch (option.completes) {
        case Completes::kFile: return " -rF";
        case Completes::kDirectory: return " -xa '(__fish_complete_directories)'";
        case Completes::kRun: return " -xa 'last (traindbg ls --names 2>/dev/null)'";
        case Completes::kRule: return " -xa '(traindbg rules list --names 2>/dev/null)'";
        case Completes::kCollection:
            return base::format(" -xa '{}'", base::join(model::builtin_collections(), " "));
        case Completes::kNothing: break;
    }
    return " -x";
}

std::string function_name(const std::string& verb) { return "_traindbg_" + replaced(verb, " ", "_"); }

}  // namespace

CompletionTree completion_tree() {
    CompletionTree tree;
    for (const VerbEntry& entry : all_verbs()) {
        const std::unique_ptr<Verb> verb = entry.make();
        OptionSet options(entry.name);
        verb->declare(options);
        CommonOptions common;
        common.declare(options);
        CompletionVerbEntry node{
            std::string(entry.name), std::string(entry.summary), {}, options.takes_command()};
        for (const OptionSet::Group& group : options.groups())
            node.options.insert(node.options.end(), group.options.begin(), group.options.end());
        tree.push_back(std::move(node));
    }
    return tree;
}

std::string bash_completion(const CompletionTree& tree) {
    std::string out =
        "# bash completion of traindbg; made by `traindbg completion bash`.\n"
        "_traindbg() {\n"
        "    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} "
        "verb=${COMP_WORDS[1]}\n"
        "    if ((COMP_CWORD == 1)); then\n"
        "        COMPREPLY=($(compgen -W \"";
    out += base::join(first_words(tree), " ");
    out += " help --help --version\" -- \"$current\"))\n        return\n    fi\n    case $verb in\n";
    for (const std::string& parent : parents(tree))
        out += base::format(
            "        {0})\n            if ((COMP_CWORD == 2)); then\n                COMPREPLY=($(compgen -W "
            "\"{1}\" -- "
            "\"$current\"))\n                return\n            fi\n            verb=\"{0} "
            "${{COMP_WORDS[2]}}\" ;;\n",
            parent, base::join(second_words(tree, parent), " "));
    out += "    esac\n    case $verb in\n";
    for (const CompletionVerbEntry& verb : tree) {
        out += "        '" + verb.name + "')\n            case $previous in\n";
        std::vector<std::string> spellings;
        std::string positional = "COMPREPLY=()";
        bool has_positional = false;
        for (const Option& option : verb.options) {
            if (option.positional) {
                if (!has_positional) positional = bash_values(option);
                has_positional = true;
                continue;
            }
            const std::vector<std::string> own = option.spellings();
            spellings.insert(spellings.end(), own.begin(), own.end());
            if (option.takes_value())
                out += base::format("                {}) {}; return ;;\n", base::join(own, "|"),
                                    bash_values(option));
        }
        out += "            esac\n";
        if (verb.takes_command) positional = "COMPREPLY=($(compgen -c -f -- \"$current\"))";
        out += base::format(
            "            if [[ $current == -* ]]; then\n                COMPREPLY=($(compgen -W \"{}\" -- "
            "\"$current\"))\n            else\n                {}\n            fi ;;\n",
            base::join(spellings, " "), positional);
    }
    return out + "    esac\n}\ncomplete -F _traindbg traindbg\n";
}

std::string zsh_completion(const CompletionTree& tree) {
    std::string out =
        "#compdef traindbg\n"
        "# zsh completion of traindbg; made by `traindbg completion zsh`.\n"
        "_traindbg_runs() { local -a runs; runs=(last ${(f)\"$(traindbg ls --names 2>/dev/null)\"}); compadd "
        "-a runs; "
        "_files -/ }\n"
        "_traindbg_rules() { local -a rules; rules=(${(f)\"$(traindbg rules list --names 2>/dev/null)\"}); "
        "compadd -a "
        "rules }\n";
    for (const CompletionVerbEntry& verb : tree) {
        out += function_name(verb.name) + "() {\n    _arguments -s \\\n";
        for (const Option& option : verb.options) {
            if (option.positional) {
                out +=
                    base::format("        ':{}:{}' \\\n", zsh_text(option.placeholder), zsh_values(option));
                continue;
            }
            for (const std::string& spelling : option.spellings()) {
                const std::string value =
                    option.takes_value()
                        ? base::format(":{}:{}", zsh_text(option.placeholder), zsh_values(option))
                        : "";
                out += base::format("        '{}{}[{}]{}' \\\n", option.repeatable ? "*" : "", spelling,
                                    zsh_text(option.help), value);
            }
        }
        if (verb.takes_command) out += "        '*::command:_normal' \\\n";
        out += "        && return\n}\n";
    }
    for (const std::string& parent : parents(tree)) {
        out += base::format(
            "{}() {{\n    if ((CURRENT == 2)); then\n        compadd {}\n        return\n    fi\n"
            "    local name=$words[2]\n    shift words; ((CURRENT--))\n    case $name in\n",
            function_name(parent), base::join(second_words(tree, parent), " "));
        for (const std::string& word : second_words(tree, parent))
            out += base::format("        {}) {} ;;\n", word, function_name(parent + " " + word));
        out += "    esac\n}\n";
    }
    out += "_traindbg() {\n    if ((CURRENT == 2)); then\n        local -a verbs\n        verbs=(\n";
    const std::vector<std::string> above = parents(tree);
    for (const CompletionVerbEntry& verb : tree)
        if (verb.name.find(' ') == std::string::npos)
            out += base::format("            '{}:{}'\n", verb.name, zsh_text(verb.summary));
    for (const std::string& parent : above) out += base::format("            '{0}:{0}'\n", parent);
    out +=
        "        )\n        _describe command verbs\n        return\n    fi\n    local name=$words[2]\n"
        "    shift words; ((CURRENT--))\n    case $name in\n";
    for (const std::string& word : first_words(tree))
        out += base::format("        {}) {} ;;\n", word, function_name(word));
    return out + "    esac\n}\n_traindbg \"$@\"\n";
}

std::string fish_completion(const CompletionTree& tree) {
    std::string out =
        "# fish completion of traindbg; made by `traindbg completion fish`.\n"
        "complete -c traindbg -f\n";
    const std::vector<std::string> above = parents(tree);
    for (const CompletionVerbEntry& verb : tree)
        if (verb.name.find(' ') == std::string::npos)
            out += base::format("complete -c traindbg -n __fish_use_subcommand -a {} -d '{}'\n", verb.name,
                                quoted(verb.summary));
    for (const std::string& parent : above) {
        out += base::format("complete -c traindbg -n __fish_use_subcommand -a {}\n", parent);
        for (const std::string& word : second_words(tree, parent))
            out += base::format(
                "complete -c traindbg -n '__fish_seen_subcommand_from {0}; and not "
                "__fish_seen_subcommand_from {2}' "
                "-a {1}\n",
                parent, word, base::join(second_words(tree, parent), " "));
    }
    for (const CompletionVerbEntry& verb : tree) {
        std::string condition =
            "__fish_seen_subcommand_from " + replaced(verb.name, " ", "; and __fish_seen_subcommand_from ");
        if (verb.takes_command)
            out +=
                base::format("complete -c traindbg -n '{}' -xa '(__fish_complete_subcommand)'\n", condition);
        for (const Option& option : verb.options) {
            std::string line = base::format("complete -c traindbg -n '{}'", condition);
            if (option.positional) {
                if (option.choices.empty() && option.completes == Completes::kNothing) continue;
                out += line + fish_values(option) + "\n";
                continue;
            }
            for (const std::string& spelling : option.spellings())
                line +=
                    spelling.starts_with("--") ? " -l " + spelling.substr(2) : " -s " + spelling.substr(1);
            if (option.takes_value()) line += fish_values(option);
            out += line + " -d '" + quoted(option.help) + "'\n";
        }
    }
    return out;
}

}  // namespace traindbg::cli

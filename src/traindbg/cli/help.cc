#include <string>
#include <vector>

#include "traindbg/base/format.h"
#include "traindbg/cli/verb.h"

namespace traindbg::cli {
namespace {

constexpr std::size_t kWidth = 100;
constexpr std::size_t kColumn = 32;  // where explanations begin

std::string heading(std::string_view text, bool colour) { return styled(text, Style::kBold, colour); }

std::string option_line(const Option& option) {
    std::string name = option.positional ? option.placeholder : base::join(option.spellings(), ", ");
    if (!option.positional && option.takes_value()) name += " " + option.placeholder;
    std::string line = "  " + padded(name, kColumn - 4) + "  ";
    if (name.size() > kColumn - 4) line += "\n" + std::string(kColumn, ' ');
    return line + wrapped(option.help, kWidth - kColumn, kColumn) + "\n";
}

}  // namespace

std::string help_page(const VerbEntry& entry, const OptionSet& options, bool colour) {
    std::string page = base::format("{} traindbg {} {}\n\n{}\n", heading("usage:", colour), entry.name,
                                    entry.usage, wrapped(entry.about, kWidth, 0));
    for (const OptionSet::Group& group : options.groups()) {
        if (group.options.empty()) continue;
        page += "\n" + heading(group.title + ":", colour) + "\n";
        for (const Option& option : group.options) page += option_line(option);
    }
    page += base::format("\n{}\n{}", heading("Examples:", colour), entry.examples);
    return page;
}

std::string program_help(bool colour) {
    std::string page =
        heading("usage:", colour) +
        " traindbg COMMAND [options]\n\n"
        "Watches a training from beside it, says what goes wrong in it, where, and what to change.\n\n" +
        heading("Commands:", colour) + "\n";
    for (const VerbEntry& entry : all_verbs())
        page += base::format("  {}  {}\n", padded(entry.name, 14), entry.summary);
    page += "\n" + heading("Start with:", colour) +
            "\n  traindbg run -- python train.py\n"
            "\ntraindbg COMMAND --help explains one of them.\n";
    return page;
}

}  // namespace traindbg::cli

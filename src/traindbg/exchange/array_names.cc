#include "traindbg/exchange/array_names.h"

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"

namespace traindbg::exchange {

std::string path_of(std::string_view name) {
    const std::string text = base::printable(name);
    std::string out;
    std::size_t begin = 0;
    while (true) {
        const std::size_t end = std::min(text.find('/', begin), text.size());
        const std::string part = text.substr(begin, end - begin);
        out += part.empty() || part == "." || part == ".." ? "_" : part;
        if (end == text.size()) return out;
        out += '/';
        begin = end + 1;
    }
}

std::string worker_prefix(model::WorkerId worker, bool several) {
    return several ? base::format("w{}/", worker) : std::string();
}

std::string UniqueNames::take(std::string name) {
    std::string candidate = name;
    for (std::uint64_t number = 2; !taken_.insert(candidate).second; ++number)
        candidate = base::format("{}~{}", name, number);
    return candidate;
}

}  // namespace traindbg::exchange

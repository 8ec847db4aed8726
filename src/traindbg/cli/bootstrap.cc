#include "traindbg/cli/bootstrap.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"

namespace traindbg::cli {
namespace {

namespace fs = std::filesystem;

bool is_bootstrap(const fs::path& directory) {
    std::error_code error;
    return fs::is_regular_file(directory / "sitecustomize.py", error);
}

// <prefix>/lib/python3.*/{site,dist}-packages/traindbg/_bootstrap, newest Python first.
std::vector<fs::path> installed_places(const fs::path& prefix) {
    std::vector<fs::path> places;
    std::error_code error;
    for (const char* library : {"lib", "lib64", "local/lib"})
        for (fs::directory_iterator entry(prefix / library, error), end; !error && entry != end;
             entry.increment(error))
            if (entry->path().filename().string().starts_with("python3"))
                for (const char* packages : {"site-packages", "dist-packages"})
                    places.push_back(entry->path() / packages / "traindbg" / "_bootstrap");
    std::sort(places.begin(), places.end(), std::greater<>());
    return places;
}

}  // namespace

std::string executable() {
    std::error_code error;
    const fs::path program = fs::read_symlink("/proc/self/exe", error);
    return error ? std::string() : program.string();
}

std::string executable_directory() { return fs::path(executable()).parent_path().string(); }

base::Result<std::string> find_bootstrap(const std::string& executable_directory) {
    if (const char* setting = std::getenv("TRAINDBG_BOOTSTRAP"); setting != nullptr && *setting != '\0') {
        if (is_bootstrap(setting)) return fs::absolute(setting).lexically_normal().string();
        return base::Status(
            base::Code::kNotFound,
            base::format("TRAINDBG_BOOTSTRAP={}: there is no sitecustomize.py in it; unset it or "
                         "name traindbg's own _bootstrap directory",
                         base::printable(setting)));
    }
    const fs::path here = executable_directory;
    std::vector<fs::path> places = installed_places(here.parent_path());
    places.push_back(here / ".." / "traindbg" / "_bootstrap");
    // A build directory inside the source tree, one or two levels down, or one that was told where.
    for (const char* up : {"..", "../..", "../../.."})
        places.push_back(here / up / "python" / "traindbg" / "_bootstrap");
    for (const fs::path& place : places)
        if (is_bootstrap(place.lexically_normal())) return place.lexically_normal().string();
    return base::Status(
        base::Code::kNotFound,
        base::format(
            "the Python side of traindbg was not found beside {}; install the traindbg package into the "
            "environment of your training, or set TRAINDBG_BOOTSTRAP to its _bootstrap directory",
            base::printable(executable_directory)));
}

std::string python_path_with(const std::string& directory, const char* python_path) {
    if (python_path == nullptr || *python_path == '\0') return directory;
    return directory + ":" + python_path;
}

}  // namespace traindbg::cli

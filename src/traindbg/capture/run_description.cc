#include "traindbg/capture/run_description.h"

#include <sys/random.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <array>
#include <nlohmann/json.hpp>
#include <string_view>

#include "traindbg/base/bytes.h"
#include "traindbg/base/clock.h"
#include "traindbg/base/format.h"
#include "traindbg/base/version.h"
#include "traindbg/model/checked_json.h"
#include "traindbg/model/run_meta.h"

namespace traindbg::capture {

using base::Status;

namespace {

std::string platform() {
    utsname system{};
    if (uname(&system) != 0) return {};
    return base::format("{} {} {}, {} cores", system.sysname, system.release, system.machine,
                        sysconf(_SC_NPROCESSORS_ONLN));
}

// A random UUID (version 4) from the kernel: the training's random numbers are not touched.
std::string make_uuid() {
    std::array<unsigned char, 16> bytes{};
    if (getrandom(bytes.data(), bytes.size(), GRND_NONBLOCK) != static_cast<ssize_t>(bytes.size())) return {};
    bytes[6] = static_cast<unsigned char>((bytes[6] & 0x0F) | 0x40);
    bytes[8] = static_cast<unsigned char>((bytes[8] & 0x3F) | 0x80);
    std::string out;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        if (i == 4 || i == 6 || i == 8 || i == 10) out += '-';
        out += base::format("{:02x}", bytes[i]);
    }
    return out;
}

std::string_view last_component(std::string_view path) {
    while (path.size() > 1 && path.back() == '/') path.remove_suffix(1);
    return path.substr(path.find_last_of('/') + 1);
}

}  // namespace

std::string host_name() {
    std::array<char, 256> name{};
    return gethostname(name.data(), name.size() - 1) == 0 ? std::string(name.data()) : std::string();
}

Status put_if_missing(storage::FileSystem& files, const std::string& path, const model::Json& json) {
    if (files.exists(path)) return Status::ok();
    return files.put_atomic(path, base::as_bytes(model::to_checked_text(json)));
}

Status prepare_run(storage::FileSystem& files, const storage::RunLayout& layout,
                   const model::CaptureConfig& config, const std::vector<std::string>& command) {
    TRAINDBG_RETURN_IF_ERROR(files.create_directories(layout.root));
    if (!files.exists(layout.run_json())) {
        model::RunMeta meta;
        meta.run_id = last_component(layout.root);
        meta.uuid = make_uuid();
        meta.command = command;
        std::array<char, 4096> directory{};
        if (getcwd(directory.data(), directory.size()) != nullptr) meta.working_directory = directory.data();
        meta.started_wall_nanos = base::wall_nanos();
        meta.host = host_name();
        meta.platform = platform();
        meta.traindbg = base::version();
        TRAINDBG_RETURN_IF_ERROR(put_if_missing(files, layout.run_json(), model::to_json(meta)));
    }
    return put_if_missing(files, layout.plan_json(), model::to_json(config));
}

}  // namespace traindbg::capture

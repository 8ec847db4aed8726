#include "traindbg/cli/notifying.h"

#include <chrono>
#include <cstdint>
#include <utility>
#include <vector>

#include "traindbg/cli/run_files.h"
#include "traindbg/cli/run_names.h"

namespace traindbg::cli {
namespace {

using base::Result;
using base::Status;

Result<std::vector<std::unique_ptr<actions::Channel>>> channels_of(const options::NotifyOptions& options) {
    std::vector<std::unique_ptr<actions::Channel>> channels;
    for (const std::string& target : options.targets) {
        auto channel = actions::make_channel(target);
        if (!channel.is_ok())
            return Status(base::Code::kInvalidArgument, "--notify: " + channel.status().message());
        channels.push_back(std::move(channel).value());
    }
    return channels;
}

std::chrono::nanoseconds seconds(double count) {
    return std::chrono::nanoseconds(static_cast<std::int64_t>(count * 1e9));
}

}  // namespace

Status check_targets(const options::NotifyOptions& options) { return channels_of(options).status(); }

Result<std::unique_ptr<actions::Notifier>> open_notifier(const options::NotifyOptions& options,
                                                         const std::string& run, storage::FileSystem& files) {
    if (options.targets.empty()) return std::unique_ptr<actions::Notifier>();
    TRAINDBG_ASSIGN_OR_RETURN(auto channels, channels_of(options));
    actions::NotifierOptions notifier;
    notifier.run_directory = run;
    notifier.run = base_name(run);
    notifier.run_identity = run;
    if (const auto meta = read_run_meta(run, files); meta.is_ok()) {
        notifier.run_identity = meta->uuid;
        notifier.host = meta->host;
    }
    notifier.dry_run = options.dry_run;
    notifier.cooldown = seconds(options.cooldown);
    return std::make_unique<actions::Notifier>(std::move(notifier), std::move(channels));
}

}  // namespace traindbg::cli

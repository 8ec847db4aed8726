#include "traindbg/options/store_options.h"

#include <optional>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"

namespace traindbg::options {

using base::Code;
using base::Status;

void RetentionOptions::declare(OptionSet& options) {
    declared_in = &options;
    options.count({.names = "--keep-last",
                   .placeholder = "N",
                   .help = "Keep the last N training steps in full; older ones go, but for those of --thin."},
                  keep_last, 1);
    options.count({.names = "--thin",
                   .placeholder = "K",
                   .help = "With --keep-last: of older steps, every K-th stays."},
                  thin, 1);
    options.count({.names = "--keep-tensors",
                   .placeholder = "N",
                   .help = "Keep whole tensors (--raw) of the last N training steps only."},
                  keep_tensors, 1);
    options.text(
        {.names = "--quota",
         .placeholder = "SIZE",
         .help = "How much one process of the training may record, as in 10GiB (the default of run); 0: "
                 "no limit."},
        quota);
}

Status RetentionOptions::apply(model::Retention& retention) const {
    if (keep_last != 0) retention.keep_last = keep_last;
    if (keep_tensors != 0) retention.keep_tensors = keep_tensors;
    if (thin != 0) {
        if (retention.keep_last == 0)
            return {Code::kInvalidArgument,
                    place_of(declared_in, "thin") +
                        ": says what stays of steps older than --keep-last; give that, too"};
        retention.thin = thin;
    }
    if (!quota.empty()) {
        const std::optional<std::uint64_t> bytes = base::parse_bytes(quota);
        if (!bytes)
            return {Code::kInvalidArgument,
                    base::format("{}: '{}' is no size; write it as 500MB or 10GiB",
                                 place_of(declared_in, "quota"), base::printable(quota))};
        retention.quota_bytes = *bytes;
    }
    return Status::ok();
}

void StoreOptions::declare(OptionSet& options) {
    declared_in = &options;
    options.group("Storage", true);
    options.text(
        {.names = "--overflow",
         .placeholder = "POLICY",
         .help = "What happens when the disk is too slow: keep_reductions_only (default) leaves out whole "
                 "tensors, block_for holds the training up for a moment and then drops steps, "
                 "drop_newest drops steps at once.",
         .choices = {"keep_reductions_only", "block_for", "drop_newest"}},
        overflow);
    options.text({.names = "--block-for",
                  .placeholder = "TIME",
                  .help = "How long a step may hold the training up (default 50 ms), as in 0.2s."},
                 block_for);
    options.text({.names = "--arena",
                  .placeholder = "SIZE",
                  .help = "Memory for whole tensors on their way to the disk (default 256 MiB, or 5 % of the "
                          "machine's if that is less)."},
                 arena);
    retention.declare(options);
}

Status StoreOptions::apply(model::CaptureConfig& config) const {
    if (const auto policy = model::parse_overflow_policy(overflow)) config.overflow = *policy;
    if (!block_for.empty()) {
        const std::optional<std::int64_t> nanos = base::parse_duration(block_for);
        constexpr std::int64_t kMost = 60'000'000'000;
        if (!nanos || *nanos > kMost)
            return {Code::kInvalidArgument,
                    base::format("{}: '{}' is no time of at most a minute; write it as 0.05s",
                                 place_of(declared_in, "block-for"), base::printable(block_for))};
        config.block_for_ms = static_cast<std::uint64_t>(*nanos / 1'000'000);
    }
    if (!arena.empty()) {
        const std::optional<std::uint64_t> bytes = base::parse_bytes(arena);
        if (!bytes || *bytes == 0)
            return {Code::kInvalidArgument,
                    base::format("{}: '{}' is no size; write it as 512MiB", place_of(declared_in, "arena"),
                                 base::printable(arena))};
        config.arena_bytes = *bytes;
    }
    return retention.apply(config.retention);
}

}  // namespace traindbg::options

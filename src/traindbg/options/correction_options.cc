#include "traindbg/options/correction_options.h"

namespace traindbg::options {
namespace {

constexpr std::uint64_t kSnapshotEvery = 100;

}  // namespace

void CorrectionOptions::declare(OptionSet& options) {
    options.flag(
        {.names = "--skip-bad-steps",
         .help = "Leave out optimizer steps whose gradients are not finite, or ten times larger than "
                 "any of the last 50."},
        skip_bad_steps);
    options.count({.names = "--snapshot-every",
                   .placeholder = "STEPS",
                   .help = "Keep copies of parameters and optimizer in memory for roll-back and "
                           "checkpoint-stop, so often (default: 100 with --on-finding of one of these, else "
                           "none); the last four are kept. 0: none."},
                  snapshot_every);
    options.number({.names = "--lr-factor",
                    .placeholder = "FACTOR",
                    .help = "What lower-lr and roll-back multiply the learning rate with (default 0.5)."},
                   lr_factor, 1e-6, 1);
    options.count({.names = "--max-corrections",
                   .placeholder = "N",
                   .help = "So many corrections at most: steps left out, learning rates lowered, roll-backs "
                           "(default 10)."},
                  most, 1);
}

model::Corrections CorrectionOptions::corrections(std::string_view on_finding, bool dry_run) const {
    model::Corrections out;
    out.skip_bad_steps = skip_bad_steps;
    const bool goes_back = on_finding == "roll-back" || on_finding == "checkpoint-stop";
    out.snapshot_every = snapshot_every;
    if (snapshot_every == kByAction) out.snapshot_every = goes_back ? kSnapshotEvery : 0;
    out.lr_factor = lr_factor;
    out.most = most;
    // All but steps that are left out is the supervisor's to ask for, which it does not then.
    if (dry_run) out.snapshot_every = 0;
    out.dry_run = dry_run && skip_bad_steps;
    return out;
}

}  // namespace traindbg::options

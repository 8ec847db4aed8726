// A run of the SageMaker Debugger client as steps of ours, so that rules can judge it.
//
// Statistics come from values where they were saved, else from reductions. A loss or metric is the mean of
// its value. Roles are told from collections and names (`SmdebugNames`): module types are not recorded there,
// so an activation is known by its module's name. A step's time is that of its first record.
//
// Ownership: the source owns its run. Threads: one at a time. Cost: as reading the values; memory for one
// step. New steps of a run that still grows are looked for every 200 ms.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "traindbg/base/status.h"
#include "traindbg/compat/smdebug_run.h"
#include "traindbg/model/step_source.h"
#include "traindbg/storage/file_system.h"

namespace traindbg::compat {

// What could not be made a part of a step.
struct SmdebugSkips {
    std::uint64_t texts = 0;    // no numbers
    std::uint64_t types = 0;    // elements that have no statistics, complex ones among them
    std::uint64_t no_norm = 0;  // reductions without l2 and without what it could be derived from
    std::uint64_t shapes = 0;   // shapes alone
    std::uint64_t late = 0;     // steps that came when later ones of their worker had been given
};

class SmdebugSource final : public model::StepSource {
  public:
    // `with_raw`: steps hold whole tensors, too.
    [[nodiscard]] static base::Result<std::unique_ptr<SmdebugSource>> open(
        const std::string& path, storage::FileSystem& files = storage::posix_file_system(),
        bool with_raw = false);
    ~SmdebugSource() override;

    [[nodiscard]] base::Result<std::optional<model::StepView>> next(
        std::chrono::nanoseconds patience) override;
    [[nodiscard]] bool ended() const override;
    // Nobody writes any more: ended() becomes true once all that is there was given.
    void finish_when_idle() noexcept;

    [[nodiscard]] const SmdebugRun& run() const noexcept;
    [[nodiscard]] const SmdebugSkips& skips() const noexcept;

  private:
    class Impl;
    explicit SmdebugSource(std::unique_ptr<Impl> impl) noexcept;
    std::unique_ptr<Impl> impl_;
};

}  // namespace traindbg::compat

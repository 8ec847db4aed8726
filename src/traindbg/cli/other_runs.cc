#include "traindbg/cli/other_runs.h"

#include <memory>
#include <utility>

#include "traindbg/cli/run_location.h"
#include "traindbg/cli/run_names.h"
#include "traindbg/compat/smdebug_source.h"
#include "traindbg/read/run.h"
#include "traindbg/rules/other_run.h"

namespace traindbg::cli {
namespace {

using base::Result;

// A source with the place that it reads from.
class LocatedSource final : public model::StepSource {
  public:
    LocatedSource(RunLocation location, std::unique_ptr<model::StepSource> source)
        : location_(std::move(location)), source_(std::move(source)) {}

    [[nodiscard]] Result<std::optional<model::StepView>> next(std::chrono::nanoseconds patience) override {
        return source_->next(patience);
    }
    [[nodiscard]] bool ended() const override { return source_->ended(); }

  private:
    RunLocation location_;
    std::unique_ptr<model::StepSource> source_;
};

Result<std::unique_ptr<model::StepSource>> open_run(const std::string& name, const std::string& root) {
    TRAINDBG_ASSIGN_OR_RETURN(RunLocation location, RunLocation::of(name, runs_root(root)));
    storage::FileSystem& files = location.files();
    std::unique_ptr<model::StepSource> source;
    if (compat::SmdebugRun::is_one(name, files)) {
        TRAINDBG_ASSIGN_OR_RETURN(auto opened, compat::SmdebugSource::open(name, files, /*with_raw=*/true));
        opened->finish_when_idle();
        source = std::move(opened);
    } else {
        TRAINDBG_ASSIGN_OR_RETURN(const std::string run, resolve_run(name, runs_root(root), files));
        TRAINDBG_ASSIGN_OR_RETURN(auto opened, read::RunTail::open(run, files, /*with_raw=*/true));
        opened->finish_when_idle();
        source = std::move(opened);
    }
    return std::unique_ptr<model::StepSource>(
        std::make_unique<LocatedSource>(std::move(location), std::move(source)));
}

}  // namespace

void open_other_runs_below(const std::string& root) {
    rules::set_other_run_opener([root](const std::string& name) { return open_run(name, root); });
}

}  // namespace traindbg::cli

#include "traindbg/cli/judging.h"

#include <algorithm>

#include "traindbg/cli/run_files.h"
#include "traindbg/cli/spread_judge.h"
#include "traindbg/compat/smdebug_source.h"
#include "traindbg/engine/engine.h"
#include "traindbg/read/run.h"

namespace traindbg::cli {

Spreading Spreading::of(const options::RuleOptions& options, const std::string& runs) {
    Spreading spreading;
    spreading.processes = options.processes;
    spreading.patience = std::chrono::nanoseconds(static_cast<std::int64_t>(options.process_timeout * 1e9));
    spreading.custom = options.custom;
    spreading.runs = runs;
    return spreading;
}

base::Status judge_stored(const std::string& run, engine::Engine& engine, bool with_raw,
                          storage::FileSystem& files, Unseen* unseen,
                          const std::function<void()>& after_step) {
    if (compat::SmdebugRun::is_one(run, files)) {
        TRAINDBG_ASSIGN_OR_RETURN(const auto source, compat::SmdebugSource::open(run, files, with_raw));
        source->finish_when_idle();
        TRAINDBG_RETURN_IF_ERROR(engine::judge(*source, engine, after_step));
        if (unseen != nullptr) *unseen = {source->run().damage().size(), {}};
        return base::Status::ok();
    }
    TRAINDBG_ASSIGN_OR_RETURN(const auto tail, read::RunTail::open(run, files, with_raw));
    if (const auto meta = read_run_meta(run, files); meta.is_ok()) engine.on_begin(meta->started_wall_nanos);
    tail->finish_when_idle();
    TRAINDBG_RETURN_IF_ERROR(engine::judge(*tail, engine, after_step));
    if (const auto end = read_run_end(run, files); end.is_ok()) engine.on_time(end->wall_nanos);
    if (unseen != nullptr) *unseen = {tail->damage().size(), tail->worker_gaps()};
    return base::Status::ok();
}

base::Result<model::Verdict> judge_run(const std::string& run, const std::vector<rules::RuleChoice>& choices,
                                       storage::FileSystem& files, Unseen* unseen, const Spreading& spreading,
                                       const std::function<void(const std::string& what)>& on_trouble) {
    if (spreading.processes <= 1 || choices.size() <= 1) {
        TRAINDBG_ASSIGN_OR_RETURN(const auto engine, engine::Engine::make(choices));
        TRAINDBG_RETURN_IF_ERROR(judge_stored(run, *engine, rules::want_raw(choices), files, unseen));
        return engine->verdict();
    }
    TRAINDBG_ASSIGN_OR_RETURN(const auto judge,
                              SpreadJudge::start(run, choices, spreading, /*is_live=*/false));
    if (on_trouble) judge->set_trouble_listener(on_trouble);
    while (!judge->is_done()) judge->attend(std::chrono::milliseconds(200));
    TRAINDBG_RETURN_IF_ERROR(judge->status());
    if (unseen != nullptr) *unseen = judge->unseen();
    return judge->verdict();
}

std::vector<rules::RuleChoice> rules_of_run(const std::string& run, storage::FileSystem& files,
                                            std::vector<std::string>* unknown) {
    auto kept = read_verdict(run, files);
    if (!kept.is_ok() || kept->choices.empty()) return rules::default_rules();
    // A run of another version may name rules that this one does not have.
    std::vector<rules::RuleChoice> choices;
    for (rules::RuleChoice& choice : kept->choices) {
        const auto entry = rules::find_rule(choice.name);
        if (!entry.is_ok()) {
            if (unknown != nullptr) unknown->push_back(choice.name);
            continue;
        }
        if (!rules::complete_parameters(*(*entry)->info, choice.parameters).is_ok())
            choice.parameters.clear();
        choices.push_back(std::move(choice));
    }
    return choices.empty() ? rules::default_rules() : choices;
}

}  // namespace traindbg::cli

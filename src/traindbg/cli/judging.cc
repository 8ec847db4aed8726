#include "traindbg/cli/judging.h"

#include <algorithm>

#include "traindbg/cli/run_files.h"
#include "traindbg/compat/smdebug_source.h"
#include "traindbg/engine/engine.h"
#include "traindbg/read/run.h"

namespace traindbg::cli {

base::Result<model::Verdict> judge_run(const std::string& run, const std::vector<rules::RuleChoice>& choices,
                                       storage::FileSystem& files, Unseen* unseen) {
    TRAINDBG_ASSIGN_OR_RETURN(const auto engine, engine::Engine::make(choices));
    if (compat::SmdebugRun::is_one(run, files)) {
        TRAINDBG_ASSIGN_OR_RETURN(const auto source,
                                  compat::SmdebugSource::open(run, files, rules::want_raw(choices)));
        source->finish_when_idle();
        TRAINDBG_RETURN_IF_ERROR(engine::judge(*source, *engine));
        if (unseen != nullptr) *unseen = {source->run().damage().size(), {}};
        return engine->verdict();
    }
    TRAINDBG_ASSIGN_OR_RETURN(const auto tail, read::RunTail::open(run, files, rules::want_raw(choices)));
    tail->finish_when_idle();
    TRAINDBG_RETURN_IF_ERROR(engine::judge(*tail, *engine));
    if (const auto end = read_run_end(run, files); end.is_ok()) engine->on_time(end->wall_nanos);
    if (unseen != nullptr) *unseen = {tail->damage().size(), tail->worker_gaps()};
    return engine->verdict();
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

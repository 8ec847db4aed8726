#include <vector>

#include "traindbg/cli/verb.h"

namespace traindbg::cli {

const std::vector<VerbEntry>& all_verbs() {
    static const std::vector<VerbEntry> verbs = {
        run_verb(),           set_verb(),       explain_plan_verb(), watch_verb(),
        check_verb(),         report_verb(),    ls_verb(),           show_verb(),
        get_verb(),           export_verb(),    import_verb(),       sync_verb(),
        verify_verb(),        compact_verb(),   gc_verb(),           rules_list_verb(),
        rules_explain_verb(), rules_new_verb(), rules_test_verb(),   doctor_verb(),
        completion_verb(),    version_verb(),
    };
    return verbs;
}

}  // namespace traindbg::cli

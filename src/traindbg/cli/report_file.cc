#include "traindbg/cli/report_file.h"

#include "traindbg/report/report.h"

namespace traindbg::cli {

base::Status write_report(read::Run& run, const model::Verdict& verdict, const std::string& path,
                          storage::FileSystem& files) {
    TRAINDBG_ASSIGN_OR_RETURN(const std::string page, report::html_report(run, verdict));
    return files.put_atomic(path, base::as_bytes(page));
}

}  // namespace traindbg::cli

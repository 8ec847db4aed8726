// A table as an ArrowArrayStream: what pandas, polars, DuckDB, pyarrow and others read without a copy and
// without a library between them and us.
//
// Each batch is a struct array whose children are the columns. Ownership: the stream owns its reader; an
// array owns its batch together with all arrays that came out of the same batch, so columns may be moved
// out, and everything may be released in any order and in any thread, after the stream, too.
// Errors: an errno value from `get_next` (EIO for a run that cannot be read, ENOMEM), the words from
// `get_last_error`; after an error the stream gives the same error again. Nothing throws.
#pragma once

#include <memory>

#include "traindbg/tables/arrow_abi.h"
#include "traindbg/tables/table_reader.h"

namespace traindbg::tables {

// `out` must be empty (its content is overwritten); its `release` ends the reader. False: no memory, `out`
// is empty.
[[nodiscard]] bool to_arrow_stream(std::unique_ptr<TableReader> reader, ArrowArrayStream* out) noexcept;

// One schema or one batch by itself. False: no memory, `out` is empty.
[[nodiscard]] bool to_arrow_schema(const std::vector<Field>& fields, ArrowSchema* out) noexcept;
[[nodiscard]] bool to_arrow_array(Batch batch, ArrowArray* out) noexcept;

}  // namespace traindbg::tables

#include "traindbg/storage/file_system.h"

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"

namespace traindbg::storage {

base::Result<base::ByteBuffer> read_whole(FileSystem& files, const std::string& path,
                                          std::uint64_t most_bytes) {
    TRAINDBG_ASSIGN_OR_RETURN(const std::unique_ptr<ReadFile> file, files.open(path));
    TRAINDBG_ASSIGN_OR_RETURN(const std::uint64_t size, file->size());
    if (size > most_bytes)
        return base::Status(base::Code::kResourceExhausted,
                            base::format("{}: is {} large; at most {} are expected here", path,
                                         base::human_bytes(size), base::human_bytes(most_bytes)));
    return file->read_at(0, static_cast<std::size_t>(size));
}

}  // namespace traindbg::storage

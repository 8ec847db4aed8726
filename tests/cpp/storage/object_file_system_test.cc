#include "traindbg/storage/object_file_system.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "storage/temporary_directory.h"
#include "traindbg/base/format.h"
#include "traindbg/storage/fault_object_store.h"
#include "traindbg/storage/object_pieces.h"

namespace traindbg::storage {
namespace {

using base::Code;
using traindbg::testing::TemporaryDirectory;

std::string text(const base::Result<base::ByteBuffer>& bytes) {
    if (!bytes.is_ok()) return "error: " + bytes.status().to_string();
    return {reinterpret_cast<const char*>(bytes->data()), bytes->size()};
}

std::string pattern(std::size_t size, unsigned seed = 1) {
    std::string all(size, '\0');
    for (std::size_t i = 0; i < size; ++i) all[i] = static_cast<char>((i * 2654435761U + seed) >> 13);
    return all;
}

class ObjectFiles : public ::testing::Test {
  protected:
    void put(const std::string& key, std::string_view content) {
        ASSERT_TRUE(inner_->put(key, base::as_bytes(content), {}).is_ok());
    }
    // Every look makes a list.
    ObjectFileSystem open_files(std::chrono::nanoseconds interval = std::chrono::nanoseconds(0)) {
        return ObjectFileSystem(store_, cache_, {"s3://b", "memory", interval, std::chrono::seconds(5)});
    }
    std::vector<std::string> names(FileSystem& files, const std::string& path) {
        const auto entries = files.list(path);
        if (!entries.is_ok()) return {entries.status().to_string()};
        std::vector<std::string> all;
        for (const DirectoryEntry& entry : *entries)
            all.push_back(entry.name + (entry.is_directory ? "/" : ""));
        return all;
    }

    TemporaryDirectory directory_;
    BlockCache cache_{directory_.path() + "/cache", std::uint64_t{64} << 20};
    std::unique_ptr<ObjectStore> inner_ = make_memory_object_store();
    FaultObjectStore store_{*inner_, {}};
};

TEST_F(ObjectFiles, PiecesAreOneFile) {
    put("runs/a/RUN.json", "{}");
    put("runs/a/w0000/000000.log.0000", "hello ");
    put("runs/a/w0000/000000.log.0001", "wor");
    put("runs/a/w0000/000000.log.0002", "ld");
    put("runs/a/w0000/000001.seg", "segment");
    ObjectFileSystem files = open_files();
    EXPECT_EQ(names(files, "s3://b/runs"), std::vector<std::string>{"a/"});
    EXPECT_EQ(names(files, "s3://b/runs/a"), (std::vector<std::string>{"RUN.json", "w0000/"}));
    EXPECT_EQ(names(files, "s3://b/runs/a/w0000/"), (std::vector<std::string>{"000000.log", "000001.seg"}));
    const auto file = files.open("s3://b/runs/a/w0000/000000.log");
    ASSERT_TRUE(file.is_ok()) << file.status().to_string();
    EXPECT_EQ(*(*file)->size(), 11U);
    for (std::size_t from = 0; from <= 12; ++from)
        for (std::size_t size = 0; size <= 12; ++size)
            EXPECT_EQ(text((*file)->read_at(from, size)),
                      from > 11 ? "" : std::string("hello world").substr(from, size));
    EXPECT_TRUE((*file)->read_at(UINT64_MAX, 5)->empty());
    EXPECT_EQ(text(read_whole(files, "s3://b/runs/a/RUN.json")), "{}");
    EXPECT_TRUE(files.exists("s3://b/runs/a/w0000"));
    EXPECT_FALSE(files.exists("s3://b/runs/a/w0001"));
    EXPECT_FALSE(files.exists("s3://b/runs/b/RUN.json"));
}

TEST_F(ObjectFiles, BehindAGapNothingIsRead) {
    put("a/RUN.json", "{}");
    put("a/w0000/000000.log.0000", "one");
    put("a/w0000/000000.log.0002", "three");
    put("a/w0000/000001.log.0001", "no beginning");
    ObjectFileSystem files = open_files();
    EXPECT_EQ(names(files, "s3://b/a/w0000"), std::vector<std::string>{"000000.log"});
    const auto file = files.open("s3://b/a/w0000/000000.log");
    ASSERT_TRUE(file.is_ok());
    EXPECT_EQ(*(*file)->size(), 3U);
}

TEST_F(ObjectFiles, AnOpenFileGrows) {
    put("a/RUN.json", "{}");
    put("a/w0000/000000.log.0000", "one");
    ObjectFileSystem files = open_files();
    const auto file = files.open("s3://b/a/w0000/000000.log");
    ASSERT_TRUE(file.is_ok());
    EXPECT_EQ(text((*file)->read_at(0, 100)), "one");
    put("a/w0000/000000.log.0001", "two");
    EXPECT_EQ(*(*file)->size(), 6U);
    EXPECT_EQ(text((*file)->read_at(2, 100)), "etwo");
    // Sealed: the pieces go; who has the file open keeps what it read, and learns of no more.
    ASSERT_TRUE(inner_->remove("a/w0000/000000.log.0001", {}).is_ok());
    ASSERT_TRUE(inner_->remove("a/w0000/000000.log.0000", {}).is_ok());
    EXPECT_EQ(*(*file)->size(), 6U);
    EXPECT_EQ(text((*file)->read_at(0, 3)), "one") << "from the cache";
}

TEST_F(ObjectFiles, LookingOftenCostsOneListPerInterval) {
    put("a/RUN.json", "{}");
    put("a/w0000/000000.log.0000", "one");
    ObjectFileSystem files = open_files(std::chrono::hours(1));
    EXPECT_EQ(names(files, "s3://b/a").size(), 2U);
    const std::uint64_t before = store_.calls();
    for (int i = 0; i < 1000; ++i) {
        EXPECT_EQ(names(files, "s3://b/a").size(), 2U);
        EXPECT_EQ(names(files, "s3://b/a/w0000").size(), 1U);
    }
    EXPECT_EQ(store_.calls(), before);
}

TEST_F(ObjectFiles, LargeFilesComeInFewRequestsAndOnlyOnce) {
    const std::string content = pattern(std::size_t{20} << 20);
    put("a/RUN.json", "{}");
    put("a/w0000/000000.blob", content);
    for (int pass = 0; pass < 2; ++pass) {
        FaultObjectStore counting(*inner_, {});
        BlockCache cache(directory_.path() + "/cache", std::uint64_t{64} << 20);
        ObjectFileSystem files(counting, cache,
                               {"s3://b", "memory", std::chrono::hours(1), std::chrono::seconds(5)});
        const auto file = files.open("s3://b/a/w0000/000000.blob");
        ASSERT_TRUE(file.is_ok());
        std::string all;
        while (all.size() < content.size()) all += text((*file)->read_at(all.size(), 100'000));
        EXPECT_TRUE(all == content);
        // Forward: 0.5, 1, 2, 4, 8 MiB ... from an empty cache, nothing from a full one.
        EXPECT_LE(counting.calls(ObjectCall::kGet), pass == 0 ? 8U : 0U);
        EXPECT_EQ(text((*file)->read_at(5'000'001, 1'000)), content.substr(5'000'001, 1'000));
    }
}

TEST_F(ObjectFiles, BlocksOfAnotherObjectAreNotTaken) {
    put("a/RUN.json", "{}");
    put("a/w0000/000000.seg", "first");
    {
        ObjectFileSystem files = open_files();
        EXPECT_EQ(text((*files.open("s3://b/a/w0000/000000.seg"))->read_at(0, 9)), "first");
    }
    put("a/w0000/000000.seg", "other");
    ObjectFileSystem files = open_files();
    EXPECT_EQ(text((*files.open("s3://b/a/w0000/000000.seg"))->read_at(0, 9)), "other");
}

TEST_F(ObjectFiles, WithoutAnETagNothingIsKept) {
    ObjectFaultPlan plan;
    plan.hides_etags = true;
    FaultObjectStore nameless(*inner_, plan);
    put("a/RUN.json", "{}");
    for (const char* content : {"first", "other"}) {
        put("a/w0000/000000.seg", content);
        ObjectFileSystem files(nameless, cache_, {"s3://b", "memory", {}, std::chrono::seconds(5)});
        EXPECT_EQ(text((*files.open("s3://b/a/w0000/000000.seg"))->read_at(0, 9)), content);
    }
    // Nor in the memory of one file system.
    ObjectFileSystem files(nameless, cache_, {"s3://b", "memory", {}, std::chrono::seconds(5)});
    for (const char* content : {"third", "fifth"}) {
        put("a/w0000/000000.seg", content);
        EXPECT_EQ(text((*files.open("s3://b/a/w0000/000000.seg"))->read_at(0, 9)), content);
    }
}

TEST_F(ObjectFiles, AnObjectThatIsReplacedWhileItIsReadIsDamage) {
    put("a/RUN.json", "{}");
    put("a/w0000/000000.seg", "first");
    ObjectFileSystem files = open_files(std::chrono::hours(1));
    const auto file = files.open("s3://b/a/w0000/000000.seg");
    ASSERT_TRUE(file.is_ok());
    put("a/w0000/000000.seg", "other");
    EXPECT_EQ((*file)->read_at(0, 9).status().code(), Code::kDataLoss);
}

TEST_F(ObjectFiles, AnOutageLeavesWhatWasKnown) {
    put("a/RUN.json", "{}");
    put("a/w0000/000000.log.0000", "one");
    ObjectFaultPlan plan;
    plan.fail_at_call = 4;
    FaultObjectStore failing(*inner_, plan);
    ObjectFileSystem files(failing, cache_,
                           {"s3://b", "m", std::chrono::nanoseconds(0), std::chrono::seconds(5)});
    const auto file = files.open("s3://b/a/w0000/000000.log");
    ASSERT_TRUE(file.is_ok());
    for (int i = 0; i < 5; ++i) EXPECT_EQ(*(*file)->size(), 3U);
    EXPECT_EQ(names(files, "s3://b/a").size(), 2U);
}

TEST_F(ObjectFiles, EveryFailingCallIsAnErrorAndNothingWorse) {
    put("a/RUN.json", "{}");
    put("a/w0000/000000.log.0000", "one");
    for (const Code code : {Code::kUnavailable, Code::kPermissionDenied, Code::kDataLoss})
        for (std::uint64_t n = 0; n < 6; ++n) {
            ObjectFaultPlan plan;
            plan.fail_at_call = n;
            plan.error = code;
            FaultObjectStore failing(*inner_, plan);
            BlockCache cache("", 0);
            ObjectFileSystem files(failing, cache,
                                   {"s3://b", "m", std::chrono::nanoseconds(0), std::chrono::seconds(5)});
            const auto file = files.open("s3://b/a/w0000/000000.log");
            if (!file.is_ok()) {
                EXPECT_EQ(file.status().code(), code);
                continue;
            }
            const auto bytes = (*file)->read_at(0, 9);
            if (bytes.is_ok()) EXPECT_EQ(text(bytes), "one");
            else EXPECT_EQ(bytes.status().code(), code);
        }
}

TEST_F(ObjectFiles, HostileKeysStayNames) {
    put("a/RUN.json", "{}");
    for (const char* key : {"a/../../etc/passwd", "a//x", "a/.", "a/..", "a/w0000/../x", "a/\n", "a/w0000/",
                            "a/000000.log.99999999", "a/x.log.0000", "a/x.log.+001", "a/x.log.00001"})
        put(key, "x");
    ObjectFileSystem files = open_files();
    const auto entries = files.list("s3://b/a");
    ASSERT_TRUE(entries.is_ok());
    for (const DirectoryEntry& entry : *entries) {
        EXPECT_NE(entry.name, "..");
        EXPECT_NE(entry.name, ".");
        EXPECT_NE(entry.name, "");
        EXPECT_EQ(entry.name.find('/'), std::string::npos);
    }
    EXPECT_EQ(text(read_whole(files, "s3://b/a/x.log")), "x") << "pieces, of a name that nothing reads";
}

TEST_F(ObjectFiles, NothingIsWritten) {
    ObjectFileSystem files = open_files();
    EXPECT_EQ(files.put_atomic("s3://b/x", {}).code(), Code::kUnsupported);
    EXPECT_EQ(files.create("s3://b/x").status().code(), Code::kUnsupported);
    EXPECT_EQ(files.create_directories("s3://b/x").code(), Code::kUnsupported);
    EXPECT_EQ(files.remove("s3://b/x").code(), Code::kUnsupported);
    EXPECT_EQ(files.open("/etc/passwd").status().code(), Code::kNotFound);
    EXPECT_EQ(files.open("s3://bucket-2/x").status().code(), Code::kNotFound);
}

TEST(Pieces, NamesAndBack) {
    EXPECT_EQ(piece_name("w0000/000003.log", 7), "w0000/000003.log.0007");
    EXPECT_EQ(piece_name("a.blob", 12345), "a.blob.12345");
    for (const std::uint32_t index : {0U, 9999U, 10000U, 999999999U}) {
        const std::string name = piece_name("x/000000.blob", index);
        const auto piece = parse_piece(name);
        ASSERT_TRUE(piece.has_value());
        EXPECT_EQ(piece->file, "x/000000.blob");
        EXPECT_EQ(piece->index, index);
    }
    for (const char* name : {"", ".", "a.log", "a.log.1", "a.log.001", "a.seg.0001", "a.log.00001",
                             "a.log.000x", "a.log.-001", "a.log.1234567890", "RUN.json"})
        EXPECT_FALSE(parse_piece(name).has_value()) << name;
}

class Cache : public ::testing::Test {
  protected:
    [[nodiscard]] std::vector<std::filesystem::path> all_files() const {
        std::vector<std::filesystem::path> all;
        for (const auto& entry : std::filesystem::recursive_directory_iterator(path_))
            if (entry.is_regular_file()) all.push_back(entry.path());
        return all;
    }
    TemporaryDirectory directory_;
    std::string path_ = directory_.path() + "/cache";
};

TEST_F(Cache, KeepsBlocksForTheUserAlone) {
    BlockCache cache(path_, 1 << 20);
    EXPECT_FALSE(cache.get("a").has_value());
    cache.put("a", base::as_bytes("content"));
    EXPECT_EQ(text(base::Result<base::ByteBuffer>(*cache.get("a"))), "content");
    EXPECT_EQ(text(base::Result<base::ByteBuffer>(*BlockCache(path_, 1 << 20).get("a"))), "content");
    EXPECT_FALSE(cache.get("b").has_value());
    struct stat info {};
    ASSERT_EQ(::stat(all_files().at(0).c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0600U);
    ASSERT_EQ(::stat(path_.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0700U);
}

TEST_F(Cache, DamageIsAMiss) {
    BlockCache cache(path_, 1 << 20);
    cache.put("a", base::as_bytes("content"));
    const auto file = all_files().at(0);
    const auto size = std::filesystem::file_size(file);
    for (std::size_t at = 0; at < size; ++at) {
        std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
        stream.seekg(static_cast<std::streamoff>(at));
        const int before = stream.get();
        stream.seekp(static_cast<std::streamoff>(at));
        stream.put(static_cast<char>(before ^ 1));
        stream.close();
        EXPECT_FALSE(cache.get("a").has_value()) << at;
        std::fstream back(file, std::ios::in | std::ios::out | std::ios::binary);
        back.seekp(static_cast<std::streamoff>(at));
        back.put(static_cast<char>(before));
    }
    EXPECT_TRUE(cache.get("a").has_value());
    std::filesystem::resize_file(file, 3);
    EXPECT_FALSE(cache.get("a").has_value());
}

TEST_F(Cache, StaysBelowItsBound) {
    constexpr std::uint64_t kBound = 1 << 20;
    const std::string block(50'000, 'x');
    BlockCache cache(path_, kBound);
    for (int i = 0; i < 200; ++i) {
        cache.put(std::to_string(i), base::as_bytes(block));
        std::uint64_t sum = 0;
        for (const auto& file : all_files()) sum += std::filesystem::file_size(file);
        ASSERT_LE(sum, kBound + block.size()) << i;
    }
    EXPECT_TRUE(cache.get("199").has_value());
    EXPECT_FALSE(cache.get("0").has_value()) << "the oldest went first";
}

TEST_F(Cache, ProcessesShareIt) {
    std::vector<pid_t> children;
    for (int child = 0; child < 4; ++child) {
        const pid_t pid = ::fork();
        if (pid == 0) {
            BlockCache cache(path_, 300'000);
            bool good = true;
            for (int i = 0; i < 300; ++i) {
                const std::string name = std::to_string(i % 17);
                const std::string content = pattern(20'000, static_cast<unsigned>(i % 17));
                if (const auto kept = cache.get(name))
                    good = good && text(base::Result<base::ByteBuffer>(*kept)) == content;
                else cache.put(name, base::as_bytes(content));
            }
            ::_exit(good ? 0 : 1);
        }
        children.push_back(pid);
    }
    for (const pid_t pid : children) {
        int status = 0;
        ::waitpid(pid, &status, 0);
        EXPECT_EQ(status, 0);
    }
}

TEST_F(Cache, WithoutAPlaceItKeepsNothing) {
    BlockCache none("", 1 << 20);
    none.put("a", base::as_bytes("x"));
    EXPECT_FALSE(none.get("a").has_value());
    BlockCache refused("/proc/traindbg-cache", 1 << 20);
    refused.put("a", base::as_bytes("x"));
    EXPECT_FALSE(refused.get("a").has_value());
}

}  // namespace
}  // namespace traindbg::storage
